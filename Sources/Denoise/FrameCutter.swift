/// Cuts interleaved sound, given in pieces of any size, into overlapping frames, one channel after the other.
///
/// ```
/// var position = 0
/// while cutter.fill(from: samples, &position) { use(cutter.frames.span); cutter.advance() }
/// ```
/// What is not a finite number becomes 0, and what is larger than `sampleLimit` is cut to it, so that no sum of
/// powers overflows a `Float` and no gain becomes NaN.
struct FrameCutter {
  /// 240 dB over full scale: (36 864 samples · 1e12)² · 32 channels is still under 3.4e38.
  static let sampleLimit: Float = 1e12

  let frame: AnalysisFrame
  let channels: Int
  /// The last `frame.length` samples of each channel, the channels one after the other.
  private(set) var frames: [Float]
  /// Samples of the newest hop that are there already.
  private var filled: Int

  /// - Parameter offset: samples of the first hop that lie before the sound and are 0; less than a hop.
  init(frame: AnalysisFrame, channels: Int, offset: Int = 0) {
    precondition(channels > 0, "sound has at least one channel")
    precondition((0..<frame.hop).contains(offset), "the offset lies in the first hop")
    self.frame = frame
    self.channels = channels
    frames = [Float](repeating: 0, count: channels * frame.length)
    filled = offset
  }

  /// Takes interleaved samples from `position` (counted in frames of sound) on, until a hop is full.
  /// - Returns: whether one is; then the frames are to be read, and `advance()` called.
  mutating func fill(from samples: Span<Float>, _ position: inout Int) -> Bool {
    let count = min(frame.hop - filled, samples.count / channels - position)
    for channel in 0..<channels {
      var target = channel * frame.length + frame.length - frame.hop + filled
      var source = position * channels + channel
      for _ in 0..<count {
        frames[target] = Self.limited(samples[source])
        target += 1
        source += channels
      }
    }
    filled += count
    position += count
    return filled == frame.hop
  }

  /// Fills the hop up with silence.
  mutating func fillWithSilence() {
    for channel in 0..<channels {
      let end = (channel + 1) * frame.length
      for index in (end - frame.hop + filled)..<end { frames[index] = 0 }
    }
    filled = frame.hop
  }

  /// Makes room for the next hop.
  mutating func advance() {
    let kept = frame.length - frame.hop
    for channel in 0..<channels {
      let start = channel * frame.length
      for index in start..<(start + kept) { frames[index] = frames[index + frame.hop] }
    }
    filled = 0
  }

  @inline(__always)
  static func limited(_ sample: Float) -> Float {
    if sample.magnitude <= sampleLimit { return sample }
    return sample.isFinite ? (sample < 0 ? -sampleLimit : sampleLimit) : 0
  }
}
