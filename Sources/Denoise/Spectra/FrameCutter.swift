/// Cuts interleaved sound, given in pieces of any size, into overlapping frames, one channel after the other.
///
/// ```
/// var position = 0
/// while cutter.fill(from: samples, &position) {
///   for channel in 0..<channels { use(cutter.samples.span.extracting(cutter.range(of: channel))) }
///   cutter.advance()
/// }
/// ```
/// What is not a finite number becomes 0, and what is larger than `sampleLimit` is cut to it, so that no sum of
/// powers overflows a `Float` and no gain becomes NaN.
struct FrameCutter {
  /// 240 dB over full scale: (36 864 samples · 1e12)² · 32 channels is still under 3.4e38.
  static let sampleLimit: Float = 1e12

  let frame: AnalysisFrame
  let channels: Int
  /// The last samples of each channel, the channels one after the other, `stride` apart.
  private(set) var samples: [Float]
  private let stride: Int
  /// Where the current frame begins in each channel's part. It moves on by a hop, and to the front at the end of the
  /// part, once every 16 hops, which is cheaper than moving the samples each time.
  private var start = 0
  /// Samples of the newest hop that are there already.
  private var filled: Int

  /// - Parameter offset: samples of the first hop that lie before the sound and are 0; less than a hop.
  init(frame: AnalysisFrame, channels: Int, offset: Int = 0) {
    precondition(channels > 0, "sound has at least one channel")
    precondition((0..<frame.hop).contains(offset), "the offset lies in the first hop")
    self.frame = frame
    self.channels = channels
    stride = frame.length + 16 * frame.hop
    samples = [Float](repeating: 0, count: channels * stride)
    filled = offset
  }

  /// Where the current frame of a channel lies in `samples`.
  func range(of channel: Int) -> Range<Int> {
    (channel * stride + start)..<(channel * stride + start + frame.length)
  }

  /// Takes interleaved samples from `position` (counted in frames of sound) on, until a hop is full.
  /// - Returns: whether one is; then the frames are to be read, and `advance()` called.
  mutating func fill(from source: Span<Float>, _ position: inout Int) -> Bool {
    let count = min(frame.hop - filled, source.count / channels - position)
    let channels = channels
    let sound = source.extracting((position * channels)..<((position + count) * channels))
    for channel in 0..<channels {
      let target = range(of: channel).upperBound - frame.hop + filled
      var all = samples.mutableSpan
      var part = all._mutatingExtracting(target..<(target + count))
      // The distance is a constant in the usual cases, which lets the loops become vectors.
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

  /// Fills the hop up with silence.
  mutating func fillWithSilence() {
    for channel in 0..<channels {
      let end = range(of: channel).upperBound
      for index in (end - frame.hop + filled)..<end { samples[index] = 0 }
    }
    filled = frame.hop
  }

  /// Forgets what there is of the newest hop.
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
    // A comparison, unlike `isFinite`, leaves the loop vectors.
    sample.magnitude <= .greatestFiniteMagnitude
      ? Kernels.smaller(sampleLimit, Kernels.larger(-sampleLimit, sample)) : 0
  }
}
