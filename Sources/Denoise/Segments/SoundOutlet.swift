/// Joins the sums of segments, one after the other, and outputs them, starting at a frame of the recording.
///
/// Three hops of each segment's sum overlap the next segment's, and are added to it, so no sum depends on another.
struct SoundOutlet {
  private let channels: Int
  private let hop: Int
  /// The last three hops of the segment before, a row per channel.
  private let tails: RowRing
  /// A piece of interleaved sound: 128 KB, which stays in a processor's cache.
  private var sound: [Float]
  /// The frame of the recording up to which everything was output.
  private var position: Int64

  init(channels: Int, hop: Int, from start: Int64) {
    self.channels = channels
    self.hop = hop
    sound = [Float](repeating: 0, count: max(1, 32_768 / channels) * channels)
    tails = RowRing(width: 3 * hop, count: channels)
    for channel in 0..<channels { unsafe tails[Int64(channel)].update(repeating: 0, count: 3 * hop) }
    position = start
  }

  /// Outputs the next segment, as far as it is before `end`, a frame of the recording.
  /// - Parameters:
  ///   - segment: the numbers of its analysis frames.
  ///   - sums: see Synthesis; changed.
  mutating func emit<E: Error>(
    _ segment: Range<Int64>, _ sums: RowRing, upTo end: Int64, _ output: (Span<Float>) throws(E) -> Void
  ) throws(E) {
    let length = segment.count * hop, start = (segment.lowerBound - 3) * Int64(hop)
    for channel in 0..<channels {
      let (sum, tail) = unsafe (sums[Int64(channel)], tails[Int64(channel)])
      unsafe loops.add(sum, tail, tails.width)
      unsafe tail.update(from: sum + length, count: tails.width)
    }
    var from = Int(position - start)
    let to = Int(min(Int64(length), end - start))
    while from < to {
      let count = min(to - from, sound.count / channels)
      unsafe loops.interleave(&sound, sums[0] + from, sums.distance, channels, count)
      from += count
      position += Int64(count)
      try output(sound.span.extracting(0..<(count * channels)))
    }
  }
}
