/// What is final of one segment's sound.
struct SegmentSound {
  /// The frame of the recording that it begins at.
  var start: Int64 = 0
  /// How many frames it has.
  var count = 0
  /// Interleaved; the first `count` frames of them.
  var samples: [Float] = []
}

/// Gives segments out one after the other, from a frame of the recording on.
struct SoundOutlet {
  private let channels: Int
  /// The frame of the recording up to which all was given out.
  private var position: Int64

  init(channels: Int, from start: Int64) {
    self.channels = channels
    position = start
  }

  /// Gives out what of the segment lies before `end`.
  mutating func emit<E: Error>(
    _ sound: SegmentSound, upTo end: Int64, _ output: (Span<Float>) throws(E) -> Void
  ) throws(E) {
    let from = Int(position - sound.start)
    let count = min(sound.count, Int(end - sound.start)) - from
    guard count > 0 else { return }
    position += Int64(count)
    try output(sound.samples.span.extracting((from * channels)..<((from + count) * channels)))
  }
}
