import CVoice
import Glibc

// The networks see each frame relative to what came before, by exponential means (α = 0.99, a second):
//
//   levels        L[b] = 10 log₁₀ (mean of |X|² over band b + 10⁻¹⁰)       (L − mean of L) / 40
//   lower bins    X[k] for k < 96                                          X / √(mean of |X|)
//
// The bands are 32 of equal width on the scale of equivalent rectangular bandwidths (Glasberg & Moore 1990), but of at
// least two bins.

/// The bands of the networks.
enum VoiceBands {
  /// The number of bands, and of bins that are filtered rather than only scaled.
  static let count = 32, filteredBins = 96
  /// The number of bins in each band.
  static let widths: [Int] = {
    func scale(_ hertz: Double) -> Double { 9.265 * log1p(hertz / (24.7 * 9.265)) }
    func hertz(_ scale: Double) -> Double { 24.7 * 9.265 * (exp(scale / 9.265) - 1) }
    let step = scale(Double(FrameTransform.sampleRate / 2)) / Double(count)
    var (widths, last, extra): ([Int], Int, Int) = ([], 0, 0)
    for band in 1...count {
      let end = Int((hertz(Double(band) * step) / 50).rounded())
      let width = end - last - extra
      extra = max(0, 2 - width)
      widths.append(max(2, width))
      last = end
    }
    widths[count - 1] += 1
    widths[count - 1] -= widths.reduce(0, +) - FrameTransform.binCount
    return widths
  }()
  /// The band of each bin.
  static let bands = widths.enumerated().flatMap { Array(repeating: $0.offset, count: $0.element) }

  /// Adds the power of each band of a spectrum, times the square of `gain`, to `sums` from `place` on.
  static func add(powerOf spectrum: [Float], to sums: inout [Float], at place: Int) {
    var bin = 0
    for (band, width) in widths.enumerated() {
      var sum: Float = 0
      for index in bin..<bin + width {
        let (real, imaginary) = (spectrum[2 * index], spectrum[2 * index + 1])
        sum += real * real + imaginary * imaginary
      }
      sums[place + band] += sum
      bin += width
    }
  }
}

/// The running means, and a frame's features.
struct VoiceFeatures {
  private static let memory: Float = 0.99
  private var levels = (0..<VoiceBands.count).map { -60 - 30 * Float($0) / 31 }
  private var magnitudes = (0..<VoiceBands.filteredBins).map { 0.001 - 0.0009 * Float($0) / 95 }
  private var power = [Float](repeating: 0, count: VoiceBands.count)

  /// Takes the next frame, and writes its features.
  @unsafe
  mutating func take(_ spectrum: [Float], into target: UnsafeMutablePointer<Float>) {
    for band in 0..<VoiceBands.count { power[band] = 0 }
    VoiceBands.add(powerOf: spectrum, to: &power, at: 0)
    for (band, width) in VoiceBands.widths.enumerated() {
      let level = 10 * log10f(power[band] / Float(width) + 1e-10)
      levels[band] = level + Self.memory * (levels[band] - level)
      unsafe target[band] = (level - levels[band]) / 40
    }
    for bin in 0..<VoiceBands.filteredBins {
      let (real, imaginary) = (spectrum[2 * bin], spectrum[2 * bin + 1])
      let magnitude = (real * real + imaginary * imaginary).squareRoot()
      magnitudes[bin] = magnitude + Self.memory * (magnitudes[bin] - magnitude)
      let scale = 1 / magnitudes[bin].squareRoot()
      unsafe target[32 + bin] = real * scale
      unsafe target[128 + bin] = imaginary * scale
    }
  }
}
