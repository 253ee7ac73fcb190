/// The analysed frames that segments still need: γ of each, and the spectra of those not yet turned into sound.
///
/// Frame `firstFrame` is row 0 of γ, frame `firstSpectrum` row 0 of the spectra. Once per segment the rows are handed
/// over, but for those that the next one needs.
struct SpectrumStore: ~Copyable {
  let frame: AnalysisFrame
  let channels: Int
  /// γ, `binCount` values a frame.
  private(set) var posterior: [Float]
  /// Real and imaginary parts in turn, `2 * binCount` values a channel, the channels of a frame together.
  private(set) var spectra: [Float]
  private(set) var firstFrame: Int64
  private(set) var firstSpectrum: Int64
  private(set) var endFrame: Int64
  private let posteriorCapacity: Int
  private let spectraCapacity: Int
  private let window: [Float]
  /// 1/λ, and 0 where there is no noise; γ is then `bias`.
  private let inverseNoise: [Float]
  private let bias: [Float]

  init(frame: AnalysisFrame, channels: Int, grid: SegmentGrid, noise: [Float], startingAt first: Int64) {
    self.frame = frame
    self.channels = channels
    firstFrame = first
    firstSpectrum = first
    endFrame = first
    window = frame.window()
    inverseNoise = noise.map { $0 > 0 ? 1 / $0 : 0 }
    bias = noise.map { $0 > 0 ? 0 : PriorSNR.largestPosterior }
    posterior = []
    spectra = []
    posteriorCapacity = (grid.segmentHops + 2 * grid.contextHops) * frame.binCount
    spectraCapacity = (grid.segmentHops + grid.contextHops) * channels * 2 * frame.binCount
    posterior.reserveCapacity(posteriorCapacity)
    spectra.reserveCapacity(spectraCapacity)
  }

  /// The spectra of one frame, all channels.
  func spectraRange(of index: Int64) -> Range<Int> {
    let size = channels * 2 * frame.binCount
    let start = Int(index - firstSpectrum) * size
    return start..<(start + size)
  }

  /// Analyses the frame that is full.
  mutating func append(_ sound: FrameCutter, _ fft: inout RealFFT) {
    let bins = frame.binCount
    let row = posterior.count, start = spectra.count
    let window = self.window, samples = sound.samples
    posterior.append(contentsOf: repeatElement(0, count: bins))
    spectra.append(contentsOf: repeatElement(0, count: channels * 2 * bins))
    for channel in 0..<channels {
      let samples = samples.span.extracting(sound.range(of: channel))
      let target = start + channel * 2 * bins
      fft.forward({ Kernels.multiply(samples, window.span, into: &$0) }) {
        Self.keep($0, in: &spectra, at: target)
        Self.addPower(of: $0, in: &posterior, at: row)
      }
    }
    divide(row)
    endFrame += 1
  }

  /// Gives γ and the spectra away and goes on with those of γ from `frame` and of the spectra from `spectrum` on.
  /// - Parameter material: arrays of an earlier segment, whose memory is used again; then what is given away.
  mutating func handOver(
    keepingFrom frame: Int64, spectraFrom spectrum: Int64, as material: inout SegmentWorker.Material
  ) {
    let kept = max(frame, firstFrame)
    material.posterior.removeAll(keepingCapacity: true)
    material.spectra.removeAll(keepingCapacity: true)
    material.posterior.reserveCapacity(posteriorCapacity)
    material.spectra.reserveCapacity(spectraCapacity)
    material.posterior.append(contentsOf: posterior[(Int(kept - firstFrame) * self.frame.binCount)...])
    material.spectra.append(contentsOf: spectra[spectraRange(of: spectrum).lowerBound...])
    firstFrame = kept
    firstSpectrum = spectrum
    swap(&posterior, &material.posterior)
    swap(&spectra, &material.spectra)
  }

  @inline(__always)
  private static func keep(_ spectrum: Span<Float>, in spectra: inout [Float], at start: Int) {
    var all = spectra.mutableSpan
    var target = all._mutatingExtracting(start..<(start + spectrum.count))
    Kernels.copy(spectrum, into: &target)
  }

  @inline(__always)
  private static func addPower(of spectrum: Span<Float>, in posterior: inout [Float], at start: Int) {
    var all = posterior.mutableSpan
    var target = all._mutatingExtracting(start..<(start + spectrum.count / 2))
    Kernels.addPower(of: spectrum, to: &target)
  }

  /// Makes γ of the power in the row that begins at `start`.
  private mutating func divide(_ start: Int) {
    let inverseNoise = self.inverseNoise, bias = self.bias
    var all = posterior.mutableSpan
    var row = all._mutatingExtracting(start..<(start + inverseNoise.count))
    let count = row.count, inverse = inverseNoise.span, offset = bias.span
    precondition(inverse.count == count && offset.count == count)
    for bin in 0..<count {
      row[bin] = min(PriorSNR.largestPosterior, row[bin] * inverse[bin] + offset[bin])
    }
  }
}
