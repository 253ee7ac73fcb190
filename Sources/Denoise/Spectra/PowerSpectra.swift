/// Computes |X|² of every analysis frame entirely inside the sound; both profile builders use it.
struct PowerSpectra: ~Copyable {
  /// A hop whose samples are all within one 16-bit step counts as digital silence.
  static let silentPeak: Float = 1 / 32768

  let frame: AnalysisFrame
  private let window: [Float]
  private var fft: RealFFT
  private var cutter: FrameCutter
  private var power: [Float]
  private var soundFrames: Int64 = 0
  private var analysisFrames: Int64 = 0
  /// Number of hops in the current stretch, up to the four of a frame.
  private var hops = 0

  init(frame: AnalysisFrame, channels: Int) {
    self.frame = frame
    window = frame.window()
    fft = RealFFT(length: frame.length)
    cutter = FrameCutter(frame: frame, channels: channels)
    power = [Float](repeating: 0, count: frame.binCount)
  }

  /// Calls `body` for each channel of each completed frame, with its power in each bin and whether one of its hops is
  /// digital silence.
  mutating func append(_ samples: Span<Float>, _ body: (Int, Span<Float>, Bool) -> Void) {
    precondition(samples.count.isMultiple(of: cutter.channels), "samples come in whole frames")
    soundFrames += Int64(samples.count / cutter.channels)
    var position = 0
    while cutter.fill(from: samples, &position) {
      hops = min(hops + 1, 4)
      if hops == 4 {
        analysisFrames += 1
        for channel in 0..<cutter.channels { analyse(channel, body) }
      }
      cutter.advance()
    }
  }

  /// Starts a new stretch: no frame spans the gap before it.
  mutating func beginStretch() {
    hops = 0
    cutter.discardHop()
  }

  /// Returns the number of analysis frames.
  /// - Throws: `regionTooShort` if the sound is shorter than two of them.
  func checkedFrameCount() throws(DenoiseError) -> Int64 {
    let needed = 2 * Int64(frame.length)
    guard soundFrames >= needed else { throw .regionTooShort(frames: soundFrames, needed: needed) }
    return analysisFrames
  }

  private mutating func analyse(_ channel: Int, _ body: (Int, Span<Float>, Bool) -> Void) {
    let window = self.window, sound = cutter.samples
    let samples = sound.span.extracting(cutter.range(of: channel))
    fft.forward({ Kernels.multiply(samples, window.span, into: &$0) }) {
      Self.measure($0, into: &power)
    }
    body(channel, power.span, hasSilentHop(samples))
  }

  @inline(__always)
  private static func measure(_ spectrum: Span<Float>, into power: inout [Float]) {
    var target = power.mutableSpan
    Kernels.power(of: spectrum, into: &target)
  }

  private func hasSilentHop(_ samples: Span<Float>) -> Bool {
    for start in stride(from: 0, to: frame.length, by: frame.hop) {
      var peak: Float = 0
      for index in start..<(start + frame.hop) { peak = max(peak, samples[index].magnitude) }
      if peak <= Self.silentPeak { return true }
    }
    return false
  }
}
