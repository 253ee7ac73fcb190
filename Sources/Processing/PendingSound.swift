/// Samples given to the denoiser that it hasn't returned yet.
struct PendingSound {
  private var samples: [Float] = []
  /// The range of `samples` still in use.
  private var waiting = 0..<0

  mutating func append(_ more: Span<Float>) {
    makeRoom(for: more.count)
    let (start, count) = (waiting.upperBound, more.count)
    waiting = waiting.lowerBound..<(start + count)
    var all = samples.mutableSpan
    var target = all._mutatingExtracting(start..<(start + count))
    for index in 0..<count { target[index] = more[index] }
  }

  private mutating func makeRoom(for count: Int) {
    guard waiting.upperBound + count > samples.count else { return }
    let (start, kept) = (waiting.lowerBound, waiting.count)
    for index in 0..<kept { samples[index] = samples[start + index] }
    waiting = 0..<kept
    // Three times the size needed, so that samples are rarely moved.
    let missing = 3 * (kept + count) - samples.count
    if missing > 0 { samples += [Float](repeating: 0, count: missing) }
  }

  /// Passes the oldest `count` samples to `body`, then removes them.
  mutating func take<E: Error>(_ count: Int, _ body: (Span<Float>) throws(E) -> Void) throws(E) {
    precondition(count <= waiting.count, "no more than waits is taken")
    let end = waiting.lowerBound + count
    try body(samples.span.extracting(waiting.lowerBound..<end))
    waiting = end..<waiting.upperBound
  }
}
