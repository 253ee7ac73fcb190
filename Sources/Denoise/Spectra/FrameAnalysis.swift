/// Analyzes frames: the spectra of all channels, γ, and, unless the noise is tracked first, the cepstrum of γ. Frames
/// 2 p and 2 p + 1 share transforms; no pair depends on another.
struct FrameAnalysis: Sendable {
  private let channels: Int
  private let length: Int
  private let hop: Int
  private let binCount: Int
  private let window: [Float]
  private let noise: FrameNoise
  private let cepstralPrior: CepstralPrior?
  private let onsetFinder: OnsetFinder
  private let isTracked: Bool

  /// - Parameters:
  ///   - noise: λ of each frame.
  ///   - isTracked: whether γ isn't final yet; see NoiseTracker.
  init(
    frame: AnalysisFrame, channels: Int, noise: FrameNoise, cepstralPrior: CepstralPrior?, onsetFinder: OnsetFinder,
    isTracked: Bool = false
  ) {
    self.isTracked = isTracked
    self.channels = channels
    length = frame.length
    hop = frame.hop
    binCount = frame.binCount
    window = frame.window()
    self.noise = noise
    self.cepstralPrior = cepstralPrior
    self.onsetFinder = onsetFinder
  }

  /// Analyzes a block, which consists of whole pairs.
  func analyse(_ block: FrameBlock, into rows: FrameRows, _ workspace: Workspace) {
    for frame in stride(from: block.firstFrame, to: block.firstFrame + Int64(block.count), by: 2) {
      let (first, second) = unsafe (rows.posterior.measured[frame], rows.posterior.measured[frame + 1])
      for channel in 0..<channels {
        let spectrum = unsafe rows.spectrum(ofPair: frame / 2, channel: channel)
        unsafe transform(block.samples(of: frame, channel: channel), into: spectrum, workspace.transform)
        unsafe loops.pair_power(first, second, spectrum, binCount, channel > 0)
      }
      unsafe noise.makePosterior(first, of: frame, workspace)
      unsafe noise.makePosterior(second, of: frame + 1, workspace)
      if !isTracked { cepstralPrior?.analyse(frame, rows, workspace.transform) }
    }
    onsetFinder.find(in: block, rows.onsets)
  }

  /// Computes the cepstra of tracked frames, which begin with a pair.
  func analyseCepstra(_ frames: Range<Int64>, _ rows: FrameRows, _ workspace: Workspace) {
    guard let cepstralPrior else { return }
    for frame in stride(from: frames.lowerBound / 2 * 2, to: frames.upperBound, by: 2) {
      cepstralPrior.analyse(frame, rows, workspace.transform)
    }
  }

  /// Computes the spectrum of two frames. Notes which of them isn't silent, because rounding leaves traces of each in
  /// the other.
  private func transform(_ samples: Row, into spectrum: Row, _ transform: PairTransform) {
    let sounding = unsafe loops.window_pair(transform.input, samples, samples + hop, window, length)
    unsafe transform.run(into: spectrum)
    unsafe spectrum[2 * length] = Float(sounding)
  }
}
