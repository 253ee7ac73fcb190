/// Cuts interleaved sound, received in pieces of any size, into overlapping frames of each channel.
///
/// ```
/// var position = 0
/// while cutter.fill(from: samples, &position) {
///   for channel in 0..<channels { use(cutter.samples.span.extracting(cutter.range(of: channel))) }
///   cutter.advance()
/// }
/// ```
/// Samples that aren't finite become 0, and larger ones than `sampleLimit` are clamped to it, so that no sum of powers
/// overflows a `Float` and no gain becomes NaN.
struct FrameCutter {
  /// 240 dB over full scale: (36 864 samples · 1e12)² · 32 channels is still below 3.4e38.
  static let sampleLimit: Float = 1e12

  let frame: AnalysisFrame
  let channels: Int
  /// The last samples of all channels, one channel after the other, `stride` apart.
  private(set) var samples: [Float]
  private let stride: Int
  /// Where the current frame begins in each channel's part. It advances by a hop, and returns to the front at the end
  /// of the part, every 16 hops, which is cheaper than moving the samples each time.
  private var start = 0
  /// Samples of the newest hop that have arrived.
  private var filled: Int

  /// - Parameter offset: samples of the first hop that precede the sound and are 0; less than a hop.
  init(frame: AnalysisFrame, channels: Int, offset: Int = 0) {
    precondition(channels > 0, "sound has at least one channel")
    precondition((0..<frame.hop).contains(offset), "the offset lies in the first hop")
    self.frame = frame
    self.channels = channels
    stride = frame.length + 16 * frame.hop
    samples = [Float](repeating: 0, count: channels * stride)
    filled = offset
  }

  /// Returns the current frame of a channel as a range of `samples`.
  func range(of channel: Int) -> Range<Int> {
    (channel * stride + start)..<(channel * stride + start + frame.length)
  }

  /// Consumes interleaved samples from `position` (in frames of sound) until a hop is full.
  /// - Returns: whether a hop is full; then read the frames and call `advance()`.
  mutating func fill(from source: Span<Float>, _ position: inout Int) -> Bool {
    let count = min(frame.hop - filled, source.count / channels - position)
    let channels = channels
    let sound = source.extracting((position * channels)..<((position + count) * channels))
    for channel in 0..<channels {
      let target = range(of: channel).upperBound - frame.hop + filled
      var all = samples.mutableSpan
      var part = all._mutatingExtracting(target..<(target + count))
      // The distance is a constant in the common cases, which lets the loops vectorize.
      switch channels {
      case 1: Kernels.deinterleave(sound, channel: 0, of: 1, into: &part)
      case 2: Kernels.deinterleave(sound, channel: channel, of: 2, into: &part)
      default: Kernels.deinterleave(sound, channel: channel, of: channels, into: &part)
      }
    }
    filled += count
    position += count
    return filled == frame.hop
  }

  /// Fills the rest of the hop with silence.
  mutating func fillWithSilence() {
    for channel in 0..<channels {
      let end = range(of: channel).upperBound
      for index in (end - frame.hop + filled)..<end { samples[index] = 0 }
    }
    filled = frame.hop
  }

  /// Discards the samples of the newest hop.
  mutating func discardHop() { filled = 0 }

  /// Makes room for the next hop.
  mutating func advance() {
    filled = 0
    start += frame.hop
    if start + frame.length <= stride { return }
    for channel in 0..<channels {
      let front = channel * stride
      for index in front..<(front + frame.length - frame.hop) { samples[index] = samples[index + start] }
    }
    start = 0
  }

  @inline(__always)
  static func limited(_ sample: Float) -> Float {
    // Unlike `isFinite`, a comparison lets the loop vectorize.
    sample.magnitude <= .greatestFiniteMagnitude
      ? Kernels.smaller(sampleLimit, Kernels.larger(-sampleLimit, sample)) : 0
  }
}
