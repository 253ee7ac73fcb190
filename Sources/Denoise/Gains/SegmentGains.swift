import Glibc

/// Computes the gains of one segment from γ of its frames and of those around it.
struct SegmentGains: Sendable {
  private let method: DenoiseMethod
  private let priorSNR: PriorSNR
  /// The smoothing of speech in the cepstrum; nil if the method doesn't use it.
  let cepstralPrior: CepstralPrior?
  private let binCount: Int
  /// The minimum gain of each bin: the user's, or 1 if the profile has no noise there.
  private let floor: [Float]
  /// λ divided by its sum, for the frame's SNR.
  private let weights: [Float]

  /// - Parameter noise: λ of each bin, 0 if it has no noise.
  init(settings: DenoiseSettings, noise: [Float], frame: AnalysisFrame, sampleRate: Int) {
    method = settings.method
    priorSNR = PriorSNR(frame: frame, sampleRate: sampleRate, reductionDB: settings.reductionDB)
    cepstralPrior =
      settings.method == .spectralSubtraction
      ? nil : CepstralPrior(frame: frame, sampleRate: sampleRate, least: priorSNR.least)
    binCount = frame.binCount
    let least = Float(pow(10, -min(60, max(0, settings.reductionDB)) / 20))
    floor = noise.map { $0 > 0 ? least : 1 }
    let total = noise.reduce(0.0) { $0 + Double($1) }
    weights = noise.map { total > 0 ? Float(Double($0) / total) : 0 }
  }

  /// Writes G of the frames in `segment`, row by row.
  /// - Parameters:
  ///   - posterior: γ, one row of `binCount` values per frame.
  ///   - cepstra: the rows' cepstra, if there is a `cepstralPrior`.
  ///   - frames: number of rows to read.
  ///   - segment: the rows of the segment; those before and after are its context.
  ///   - fft: has the frame's length.
  ///   - logs: scratch space with one row per frame of the segment, like `gains`.
  ///   - gains: has room for one row per frame of the segment.
  func compute(
    posterior: [Float], cepstra: [Float], frames: Int, segment: Range<Int>, _ fft: inout RealFFT,
    logs: inout [Float], into gains: inout [Float]
  ) {
    let values = 0..<(frames * binCount)
    let posterior = posterior.span.extracting(values)
    var target = gains.mutableSpan
    guard let cepstralPrior else { return subtract(posterior, segment, &target) }
    cepstralPrior.smooth(cepstra.span.extracting(values), segment, &fft, into: &logs)
    followSpeech(posterior, logs.span, segment, &target)
  }

  /// Runs forward, storing ξf in the rows of `gains`, then backward, combining ξb of each frame with its ξf into the
  /// gain.
  private func followSpeech(
    _ posterior: Span<Float>, _ logs: Span<Float>, _ segment: Range<Int>, _ gains: inout MutableSpan<Float>
  ) {
    let rows = posterior.count / binCount
    var state = [Float](repeating: 0, count: binCount)
    var prior = state.mutableSpan
    for row in 0..<segment.upperBound {
      let current = posterior.extracting(range(of: row))
      if row == 0 {
        priorSNR.begin(&prior, posterior: current)
      } else {
        priorSNR.advance(&prior, from: posterior.extracting(range(of: row - 1)), to: current)
      }
      if row >= segment.lowerBound {
        var kept = gains._mutatingExtracting(range(of: row - segment.lowerBound))
        Kernels.copy(prior.span, into: &kept)
      }
    }
    for row in stride(from: rows - 1, through: segment.lowerBound, by: -1) {
      let current = posterior.extracting(range(of: row))
      if row == rows - 1 {
        priorSNR.begin(&prior, posterior: current)
      } else {
        priorSNR.advance(&prior, from: posterior.extracting(range(of: row + 1)), to: current)
      }
      if segment.contains(row) {
        let own = range(of: row - segment.lowerBound)
        var gain = gains._mutatingExtracting(own)
        decide(&gain, backward: prior.span, cepstral: logs.extracting(own), posterior: current)
      }
    }
  }

  /// - Parameter gain: holds ξf, replaced by G.
  @inline(__always)
  private func decide(
    _ gain: inout MutableSpan<Float>, backward: Span<Float>, cepstral: Span<Float>, posterior: Span<Float>
  ) {
    let count = gain.count
    let floor = self.floor.span
    precondition(backward.count == count && cepstral.count == count)
    precondition(posterior.count == count && floor.count == count)
    if method == .wiener {
      for bin in 0..<count {
        let prior = priorSNR.joined(forward: gain[bin], backward: backward[bin], cepstral: cepstral[bin])
        gain[bin] = Kernels.larger(floor[bin], Wiener.gain(prior: prior))
      }
    } else {
      for bin in 0..<count {
        let prior = priorSNR.joined(forward: gain[bin], backward: backward[bin], cepstral: cepstral[bin])
        gain[bin] = Kernels.larger(floor[bin], LogSpectralAmplitude.gain(prior: prior, posterior: posterior[bin]))
      }
    }
  }

  private func subtract(_ posterior: Span<Float>, _ segment: Range<Int>, _ gains: inout MutableSpan<Float>) {
    let floor = self.floor.span
    for row in segment {
      let current = posterior.extracting(range(of: row))
      let alpha = SpectralSubtraction.overSubtraction(posterior: current, weights: weights.span)
      var gain = gains._mutatingExtracting(range(of: row - segment.lowerBound))
      let count = gain.count
      precondition(current.count == count && floor.count == count)
      for bin in 0..<count {
        let wanted = SpectralSubtraction.gain(posterior: current[bin], overSubtraction: alpha, floor: floor[bin])
        gain[bin] = max(floor[bin], wanted)
      }
    }
  }

  @inline(__always)
  private func range(of row: Int) -> Range<Int> { (row * binCount)..<((row + 1) * binCount) }
}
