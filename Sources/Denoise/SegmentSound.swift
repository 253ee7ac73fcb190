/// The sound of one segment, with what the one before reaches into it.
struct SegmentSound {
  /// The channels one after the other, `stride` samples each; the last of them are not final.
  var sum: [Float] = []
  private(set) var stride = 0
  /// The frame of the recording that `sum` begins at.
  private(set) var start: Int64 = 0
  /// How many samples of each channel are final.
  private(set) var finalCount = 0

  /// Becomes silence of another place.
  mutating func clear(from start: Int64, finalCount: Int, overlap: Int, channels: Int) {
    (self.start, self.finalCount, stride) = (start, finalCount, finalCount + overlap)
    if sum.count < channels * stride { sum = [Float](repeating: 0, count: channels * stride) }
    Kernels.clear(&sum)
  }
}

/// Gives segments out one after the other, interleaved, from a frame of the recording on.
struct SoundOutlet {
  private let channels: Int
  /// The frame of the recording up to which all was given out.
  private var position: Int64
  private var interleaved: [Float] = []

  init(channels: Int, from start: Int64) {
    self.channels = channels
    position = start
  }

  /// Gives out what of the segment is final and lies before `end`.
  mutating func emit<E: Error>(
    _ sound: SegmentSound, upTo end: Int64, _ output: (Span<Float>) throws(E) -> Void
  ) throws(E) {
    let from = Int(position - sound.start)
    let count = min(sound.finalCount, Int(end - sound.start)) - from
    guard count > 0 else { return }
    if interleaved.count < count * channels { interleaved = [Float](repeating: 0, count: count * channels) }
    interleave(sound, from: from, count: count)
    position += Int64(count)
    try output(interleaved.span.extracting(0..<(count * channels)))
  }

  private mutating func interleave(_ sound: SegmentSound, from: Int, count: Int) {
    for channel in 0..<channels {
      let start = channel * sound.stride + from
      let lane = sound.sum.span.extracting(start..<(start + count))
      // The distance is a constant in the usual cases, which lets the loops become vectors.
      switch channels {
      case 1: Self.interleave(lane, as: 0, of: 1, into: &interleaved)
      case 2: Self.interleave(lane, as: channel, of: 2, into: &interleaved)
      default: Self.interleave(lane, as: channel, of: channels, into: &interleaved)
      }
    }
  }

  @inline(__always)
  private static func interleave(_ lane: Span<Float>, as channel: Int, of channels: Int, into all: inout [Float]) {
    var whole = all.mutableSpan
    var part = whole._mutatingExtracting(0..<(lane.count * channels))
    Kernels.interleave(lane, as: channel, of: channels, into: &part)
  }
}
