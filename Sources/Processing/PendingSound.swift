/// Samples given to the denoiser that it hasn't returned yet, in the pieces that were given.
struct PendingSound {
  /// Oldest first.
  private var pieces: [[Float]] = []
  /// How many samples of the first piece were taken.
  private var taken = 0

  /// Appends samples of whole frames.
  mutating func append(_ samples: Span<Float>) {
    guard !samples.isEmpty else { return }
    pieces.append(unsafe samples.withUnsafeBufferPointer { unsafe Array($0) })
  }

  /// Passes the oldest `wanted` samples to `body`, in parts of whole frames, then removes them.
  mutating func take<E: Error>(_ wanted: Int, _ body: (Span<Float>) throws(E) -> Void) throws(E) {
    var left = wanted
    while left > 0 {
      precondition(!pieces.isEmpty, "no more than waits is taken")
      let piece = pieces[0], end = min(taken + left, piece.count)
      try body(piece.span.extracting(taken..<end))
      left -= end - taken
      taken = end
      guard end == piece.count else { continue }
      pieces.removeFirst()
      taken = 0
    }
  }
}
