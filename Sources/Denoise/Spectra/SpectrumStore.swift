/// The analyzed frames that segments still need: γ and the cepstrum of each, and the spectra of those not yet turned
/// into sound.
///
/// Row 0 of γ and of the cepstra is frame `firstFrame`; row 0 of the spectra is frame `firstSpectrum`. Once per segment
/// the rows are handed over, except for those that the next segment needs.
struct SpectrumStore: ~Copyable {
  let frame: AnalysisFrame
  let channels: Int
  /// γ, `binCount` values per frame. Its length stays at the maximum ever needed.
  private(set) var posterior: [Float]
  /// The cepstra of the same frames, also `binCount` values each; empty if the method doesn't use them.
  private(set) var cepstra: [Float]
  /// Alternating real and imaginary parts, `2 * binCount` values per channel, with the channels of a frame in a row.
  private(set) var spectra: [Float]
  private(set) var firstFrame: Int64
  private(set) var firstSpectrum: Int64
  private(set) var endFrame: Int64
  private let window: [Float]
  /// 1/λ, or 0 if a bin has no noise; γ is then `bias`.
  private let inverseNoise: [Float]
  private let bias: [Float]
  private let cepstralPrior: CepstralPrior?

  init(
    frame: AnalysisFrame, channels: Int, grid: SegmentGrid, noise: [Float], cepstralPrior: CepstralPrior?,
    startingAt first: Int64
  ) {
    self.frame = frame
    self.channels = channels
    firstFrame = first
    firstSpectrum = first
    endFrame = first
    window = frame.window()
    inverseNoise = noise.map { $0 > 0 ? 1 / $0 : 0 }
    bias = noise.map { $0 > 0 ? 0 : PriorSNR.largestPosterior }
    let frames = grid.segmentHops + grid.contextHops
    posterior = [Float](repeating: 0, count: (frames + grid.contextHops) * frame.binCount)
    self.cepstralPrior = cepstralPrior
    cepstra = cepstralPrior == nil ? [] : posterior
    spectra = [Float](repeating: 0, count: frames * channels * 2 * frame.binCount)
  }

  /// Returns the range of one frame's spectra, for all channels.
  func spectraRange(of index: Int64) -> Range<Int> {
    let size = channels * 2 * frame.binCount
    let start = Int(index - firstSpectrum) * size
    return start..<(start + size)
  }

  /// Analyzes the completed frame.
  mutating func append(_ sound: FrameCutter, _ fft: inout RealFFT) {
    let bins = frame.binCount
    let row = Int(endFrame - firstFrame) * bins, start = spectraRange(of: endFrame).lowerBound
    let window = self.window, samples = sound.samples
    for channel in 0..<channels {
      let samples = samples.span.extracting(sound.range(of: channel))
      let target = start + channel * 2 * bins
      fft.forward({ Kernels.multiply(samples, window.span, into: &$0) }) {
        Self.keep($0, in: &spectra, at: target)
        Self.measure($0, addingTo: channel > 0, in: &posterior, at: row)
      }
    }
    divide(row)
    if let cepstralPrior {
      let posterior = self.posterior
      var all = cepstra.mutableSpan
      var cepstrum = all._mutatingExtracting(row..<(row + bins))
      cepstralPrior.analyse(posterior.span.extracting(row..<(row + bins)), &fft, into: &cepstrum)
    }
    endFrame += 1
  }

  /// Hands over γ, the cepstra, and the spectra. Keeps the first two from `frame` and the spectra from `spectrum` on.
  /// - Parameter material: arrays of an earlier segment, whose memory is reused; replaced by what is handed over.
  mutating func handOver(
    keepingFrom frame: Int64, spectraFrom spectrum: Int64, as material: inout SegmentWorker.Material
  ) {
    let kept = max(frame, firstFrame)
    if material.posterior.isEmpty {
      material.posterior = [Float](repeating: 0, count: posterior.count)
      material.cepstra = [Float](repeating: 0, count: cepstra.count)
      material.spectra = [Float](repeating: 0, count: spectra.count)
    }
    let bins = self.frame.binCount
    let rows = (Int(kept - firstFrame) * bins)..<(Int(endFrame - firstFrame) * bins)
    Self.keep(posterior.span.extracting(rows), in: &material.posterior, at: 0)
    if cepstralPrior != nil { Self.keep(cepstra.span.extracting(rows), in: &material.cepstra, at: 0) }
    let left = spectraRange(of: spectrum).lowerBound..<spectraRange(of: endFrame).lowerBound
    Self.keep(spectra.span.extracting(left), in: &material.spectra, at: 0)
    firstFrame = kept
    firstSpectrum = spectrum
    swap(&posterior, &material.posterior)
    swap(&cepstra, &material.cepstra)
    swap(&spectra, &material.spectra)
  }

  @inline(__always)
  private static func keep(_ values: Span<Float>, in array: inout [Float], at start: Int) {
    var all = array.mutableSpan
    var target = all._mutatingExtracting(start..<(start + values.count))
    Kernels.copy(values, into: &target)
  }

  @inline(__always)
  private static func measure(
    _ spectrum: Span<Float>, addingTo others: Bool, in posterior: inout [Float], at start: Int
  ) {
    var all = posterior.mutableSpan
    var target = all._mutatingExtracting(start..<(start + spectrum.count / 2))
    if others { Kernels.addPower(of: spectrum, to: &target) } else { Kernels.power(of: spectrum, into: &target) }
  }

  /// Converts the power in the row at `start` to γ.
  private mutating func divide(_ start: Int) {
    let inverseNoise = self.inverseNoise, bias = self.bias
    var all = posterior.mutableSpan
    var row = all._mutatingExtracting(start..<(start + inverseNoise.count))
    let count = row.count, inverse = inverseNoise.span, offset = bias.span
    precondition(inverse.count == count && offset.count == count)
    for bin in 0..<count {
      row[bin] = Kernels.smaller(PriorSNR.largestPosterior, row[bin] * inverse[bin] + offset[bin])
    }
  }
}
