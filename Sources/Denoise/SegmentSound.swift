/// The final part of one segment's sound.
struct SegmentSound {
  /// The frame of the recording at which it begins.
  var start: Int64 = 0
  /// Number of frames.
  var count = 0
  /// Interleaved; only the first `count` frames are valid.
  var samples: [Float] = []
}

/// Outputs segments one after the other, starting at a frame of the recording.
struct SoundOutlet {
  private let channels: Int
  /// The frame of the recording up to which everything was output.
  private var position: Int64

  init(channels: Int, from start: Int64) {
    self.channels = channels
    position = start
  }

  /// Outputs the part of the segment before `end`.
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
