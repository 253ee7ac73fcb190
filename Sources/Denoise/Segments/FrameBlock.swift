/// Consecutive analysis frames of sound that is received interleaved, in pieces of any size.
///
/// ```
/// var position = 0
/// while block.fill(from: samples, &position) {
///   use(block.samples(of: block.firstFrame, channel: 0))
///   swap(&block, &next)
///   block.follow(next)
/// }
/// ```
/// Frame h covers the hops h − 3 … h, so a block begins with the last three hops of the one before. Samples that aren't
/// finite become 0, and larger ones than `sampleLimit` are clamped to it, so that no sum of powers overflows a `Float`
/// and no gain becomes NaN.
struct FrameBlock {
  /// 240 dB over full scale: (36 864 samples · 1e12)² · 32 channels is still below 3.4e38.
  static let sampleLimit: Float = 1e12

  /// Number of frames.
  let count: Int
  /// The number of its first frame in the recording.
  private(set) var firstFrame: Int64
  private let hop: Int
  private let channels: Int
  /// A row per channel.
  private let samples: RowRing
  /// Samples of each channel that are there, including the first three hops.
  private var filled: Int

  /// Creates a block that is preceded by silence.
  init(frame: AnalysisFrame, channels: Int, count: Int, firstFrame: Int64 = 0) {
    self.count = count
    self.firstFrame = firstFrame
    self.channels = channels
    hop = frame.hop
    samples = RowRing(width: (count + 3) * frame.hop, count: channels)
    filled = 0
    appendSilence(3 * hop)
  }

  /// Returns the address of a channel's samples of a frame. If the frame isn't the last one, those of the next frame
  /// begin a hop later.
  @unsafe
  func samples(of frame: Int64, channel: Int) -> Row {
    unsafe samples[Int64(channel)] + Int(frame - firstFrame) * hop
  }

  /// Consumes interleaved samples from `position` (in frames of sound) until the block is full.
  /// - Returns: whether it is full.
  mutating func fill(from source: Span<Float>, _ position: inout Int) -> Bool {
    let count = min(samples.width - filled, source.count / channels - position)
    if count > 0 {
      unsafe source.withUnsafeBufferPointer { source in
        guard let sound = source.baseAddress else { return }
        for channel in 0..<channels {
          unsafe loops.deinterleave(
            samples[Int64(channel)] + filled, sound + position * channels + channel, channels, Self.sampleLimit, count)
        }
      }
      filled += count
      position += count
    }
    return filled == samples.width
  }

  /// Appends at most as many samples of silence as there is room for.
  mutating func appendSilence(_ wanted: Int) {
    let count = min(wanted, samples.width - filled)
    for channel in 0..<channels { unsafe (samples[Int64(channel)] + filled).update(repeating: 0, count: count) }
    filled += count
  }

  /// Discards what was received since the beginning of the block.
  mutating func discard() { filled = 3 * hop }

  /// Becomes the block after `other`, which has separate memory and the same size.
  mutating func follow(_ other: FrameBlock) {
    firstFrame = other.firstFrame + Int64(other.count)
    filled = 3 * hop
    for channel in 0..<channels {
      unsafe samples[Int64(channel)].update(
        from: other.samples(of: firstFrame, channel: channel), count: filled)
    }
  }
}
