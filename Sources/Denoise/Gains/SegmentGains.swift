import Glibc

/// Computes the gains of one segment from γ of its frames and of those around it.
struct SegmentGains: Sendable {
  private let method: DenoiseMethod
  let isResidue: Bool
  private let priorSNR: PriorSNR
  private let hissGate = HissGate()
  private let pauseGate: PauseGate
  /// The factor from γ to |Y|² / λ; see `Denoiser.level`.
  private let scale: Float
  /// The smoothing of speech in the cepstrum; nil if the method doesn't use it.
  let cepstralPrior: CepstralPrior?
  private let binCount: Int
  /// The minimum gain of each bin: the user's, or 1 if the profile has no noise there.
  private let floor: [Float]
  private let noise: FrameNoise

  /// - Parameter noise: λ of each frame.
  init(settings: DenoiseSettings, noise: FrameNoise, frame: AnalysisFrame, sampleRate: Int) {
    method = settings.method
    isResidue = settings.output == .residue
    priorSNR = PriorSNR(frame: frame, sampleRate: sampleRate, reductionDB: settings.reductionDB)
    cepstralPrior =
      settings.method == .spectralSubtraction
      ? nil : CepstralPrior(frame: frame, sampleRate: sampleRate, least: priorSNR.least)
    binCount = frame.binCount
    let least = Float(pow(10, -min(60, max(0, settings.reductionDB)) / 20))
    floor = (0..<frame.binCount).map { noise.hasNoise(inBin: $0) ? least : 1 }
    self.noise = noise
    pauseGate = PauseGate(frame: frame, sampleRate: sampleRate, hasNoise: noise.hasNoise(inBin:))
    scale = Denoiser.factor(of: settings.method)
  }

  /// Computes as below, but as if the recording ended before each onset and began at it. If frames of the segment
  /// contain an onset that isn't within it, also computes the last frame before that onset.
  func compute(
    _ segment: Range<Int64>, context: Range<Int64>, around onsets: [Onset], _ rows: FrameRows, _ workspace: Workspace
  ) {
    let shares = pauseGate.shares(segment, context: context, scale: scale, noise: noise, rows.posterior)
    var bounds = [context.lowerBound] + onsets.map(\.frame)
    for (previous, onset) in zip(bounds, bounds.dropFirst())
    where (segment.lowerBound - 3...segment.lowerBound) ~= onset {
      compute((onset - 1)..<onset, context: previous..<onset, endsAtOnset: true, rows, workspace)
      finish((onset - 1)..<onset, shares, of: segment, rows)
    }
    bounds.append(context.upperBound)
    for (start, end) in zip(bounds, bounds.dropFirst()) where (start..<end).overlaps(segment) {
      compute(
        (start..<end).clamped(to: segment), context: start..<end, endsAtOnset: end < context.upperBound, rows, workspace
      )
    }
    finish(segment, shares, of: segment, rows)
  }

  /// Lowers the gains of frames that contain only noise to the floor (see PauseGate.swift). For the residue, then
  /// replaces G by 1 − G: because the transforms are linear, residue and result add up to the original.
  private func finish(_ frames: Range<Int64>, _ shares: [Float], of segment: Range<Int64>, _ rows: FrameRows) {
    for frame in frames {
      let gain = unsafe rows.gains[frame], share = shares[Int(frame - segment.upperBound) + shares.count]
      if share < 1 {
        for bin in 0..<binCount { unsafe gain[bin] = floor[bin] + share * (gain[bin] - floor[bin]) }
      }
      guard isResidue else { continue }
      for bin in 0..<binCount { unsafe gain[bin] = 1 - gain[bin] }
    }
  }

  /// Writes G of the frames in `segment`, before `finish`.
  /// - Parameter context: the frames of the segment and around it, whose analysis is read.
  func compute(
    _ segment: Range<Int64>, context: Range<Int64>, endsAtOnset: Bool = false, _ rows: FrameRows, _ workspace: Workspace
  ) {
    if let cepstralPrior {
      cepstralPrior.smooth(segment, context: context, rows, workspace)
      followSpeech(segment, context, endsAtOnset, rows, workspace)
    } else {
      subtract(segment, rows)
    }
  }

  /// Runs forward, storing ξf in the rows of G, then backward, combining ξb of each frame with its ξf into the gain.
  private func followSpeech(
    _ segment: Range<Int64>, _ context: Range<Int64>, _ endsAtOnset: Bool, _ rows: FrameRows, _ workspace: Workspace
  ) {
    let gains = rows.gains, posterior = rows.posterior, state = unsafe workspace.scratch[0]
    var prior = unsafe state
    for frame in context.lowerBound..<segment.upperBound {
      let next = unsafe segment.contains(frame) ? gains[frame] : state
      let neighbor = frame == context.lowerBound ? nil : frame - 1
      unsafe priorSNR.advance(
        to: frame, from: neighbor, hiss: noise.hiss(of: frame), posterior, prior, into: next)
      unsafe prior = next
    }
    let apply = unsafe method == .wiener ? loops.wiener_gain : loops.amplitude_gain
    for frame in (segment.lowerBound..<context.upperBound).reversed() {
      let neighbor = frame == context.upperBound - 1 ? nil : frame + 1
      if endsAtOnset, neighbor == nil, segment.contains(frame) {
        // ξb = ξf, because γ alone would let noise through.
        unsafe state.update(from: gains[frame], count: binCount)
      } else {
        unsafe priorSNR.advance(
          to: frame, from: neighbor, hiss: noise.hiss(of: frame), posterior, state, into: state)
      }
      guard segment.contains(frame) else { continue }
      let hiss = noise.hiss(of: frame), sums = unsafe workspace.sums[0]
      if hiss > 0 { unsafe loops.band_sums(sums, gains[frame], state, binCount) }
      unsafe apply(
        gains[frame], state, rows.logs[frame], posterior[frame], floor, CepstralPrior.share, priorSNR.least,
        binCount)
      if hiss > 0 { unsafe loops.draw_to_floor(gains[frame], floor, sums, hissGate.rule(hiss: hiss), binCount) }
    }
  }

  private func subtract(_ segment: Range<Int64>, _ rows: FrameRows) {
    let floor = self.floor.span
    var (place, weights) = (FrameNoise.Place?.none, [Float]())
    for frame in segment {
      let next = noise.place(of: frame)
      if next != place { (place, weights) = (next, noise.weights(of: frame)) }
      let posterior = unsafe Span(_unsafeStart: rows.posterior[frame], count: binCount)
      let alpha = SpectralSubtraction.overSubtraction(posterior: posterior, weights: weights.span)
      let gain = unsafe rows.gains[frame]
      for bin in 0..<binCount {
        let wanted = SpectralSubtraction.gain(posterior: posterior[bin], overSubtraction: alpha, floor: floor[bin])
        unsafe gain[bin] = max(floor[bin], wanted)
      }
    }
  }
}
