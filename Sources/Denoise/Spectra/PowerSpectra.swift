/// Computes |X|² of every analysis frame entirely inside the sound; both profile builders use it.
struct PowerSpectra: ~Copyable {
  /// The hops that are digital silence.
  enum Silence {
    /// None.
    case none
    /// Those whose samples are all the same.
    case constant
    /// Those whose samples are all within one 16-bit step.
    case quiet
  }

  private static let silentPeak: Float = 1 / 32768

  let frame: AnalysisFrame
  private let channels: Int
  private let silence: Silence
  private let window: [Float]
  private let transform: PairTransform
  /// The next frame, and the one before it.
  private var block: FrameBlock
  private var previous: FrameBlock
  /// Of two channels.
  private let power: RowRing
  private var soundFrames: Int64 = 0
  /// Number of hops in the current stretch, up to the four of a frame.
  private var hops = 0

  init(frame: AnalysisFrame, channels: Int, silence: Silence) {
    self.frame = frame
    self.channels = channels
    self.silence = silence
    window = frame.window()
    transform = PairTransform(length: frame.length)
    block = FrameBlock(frame: frame, channels: channels, count: 1)
    previous = FrameBlock(frame: frame, channels: channels, count: 1)
    power = RowRing(width: frame.binCount, count: 2)
  }

  /// Calls `body` for each channel of each completed frame, with its power in each bin and whether one of its hops is
  /// digital silence.
  mutating func append(_ samples: Span<Float>, _ body: (Int, Span<Float>, Bool) -> Void) {
    precondition(samples.count.isMultiple(of: channels), "samples come in whole frames")
    soundFrames += Int64(samples.count / channels)
    var position = 0
    while block.fill(from: samples, &position) {
      hops = min(hops + 1, 4)
      if hops == 4 {
        for channel in stride(from: 0, to: channels, by: 2) { analyse(channel, body) }
      }
      swap(&block, &previous)
      block.follow(previous)
    }
  }

  /// Starts a new stretch: no frame spans the gap before it.
  mutating func beginStretch() {
    hops = 0
    block.discard()
  }

  /// Throws `regionTooShort` if the sound is shorter than `needed` frames.
  func check(hasFrames needed: Int64) throws(DenoiseError) {
    guard soundFrames >= needed else { throw .regionTooShort(frames: soundFrames, needed: needed) }
  }

  /// Measures a channel together with the next one, or, if it's the last, with itself.
  private func analyse(_ channel: Int, _ body: (Int, Span<Float>, Bool) -> Void) {
    let last = min(channel + 1, channels - 1), bins = frame.binCount
    let samples = unsafe (channel...last).map { unsafe block.samples(of: block.firstFrame, channel: $0) }
    let sounding = unsafe loops.window_pair(
      transform.input, samples[0], samples[last - channel], window, frame.length)
    transform.run()
    unsafe loops.pair_power(power[0], power[1], transform.output, bins, false)
    for index in 0...(last - channel) {
      let row = unsafe power[Int64(index)]
      // Rounding leaves traces of each channel in the other.
      let scale: Float = sounding & (1 << index) == 0 ? 0 : 0.25
      for bin in 0..<bins { unsafe row[bin] *= scale }
      let sound = unsafe Span(_unsafeStart: samples[index], count: frame.length)
      body(channel + index, unsafe Span(_unsafeStart: row, count: bins), hasSilentHop(sound))
    }
  }

  private func hasSilentHop(_ samples: Span<Float>) -> Bool {
    guard silence != .none else { return false }
    for start in stride(from: 0, to: frame.length, by: frame.hop) {
      var (least, most) = (samples[start], samples[start])
      for index in start..<(start + frame.hop) {
        least = min(least, samples[index])
        most = max(most, samples[index])
      }
      let isSilent = silence == .constant ? least == most : max(-least, most) <= Self.silentPeak
      if isSilent { return true }
    }
    return false
  }
}
