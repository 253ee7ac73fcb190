import Glibc

/// The levels of a frame's bands, in steps of 1/16 dB: integers, so that sums over a sliding window stay exact.
struct BandLevels: ~Copyable {
  static let stepsPerDB = 16.0
  /// Maximum number of bands.
  static let limit = 20
  /// One level per band, and 0 after the last.
  typealias Row = InlineArray<20, Int32>

  /// The levels of the newest frame.
  private(set) var levels = Row(repeating: 0)
  /// Number of bands.
  var count: Int { edges.count - 1 }

  private var fft: RealFFT
  private let window: [Float]
  private var power: [Float]
  /// The first bin of each band, followed by the end of the last one.
  private let edges: [Int]

  /// Creates bands for frames of one length.
  /// - Parameters:
  ///   - length: samples per frame.
  ///   - sampleRate: in Hz.
  init(length: Int, sampleRate: Double) {
    fft = RealFFT(length: length)
    window = (0..<length).map { index in
      let root = sin(Double.pi * Double(index) / Double(length))
      return Float(root * root)
    }
    power = [Float](repeating: 0, count: fft.binCount)
    edges = Self.edges(length: length, sampleRate: sampleRate)
  }

  /// Returns bands of equal frequency ratio; bands narrower than a bin are merged.
  private static func edges(length: Int, sampleRate: Double) -> [Int] {
    let (low, high) = (100.0, min(8000, 0.45 * sampleRate))
    var edges: [Int] = []
    for band in 0...limit {
      let hertz = low * pow(high / low, Double(band) / Double(limit))
      let bin = max(1, Int((hertz * Double(length) / sampleRate).rounded()))
      if bin > edges.last ?? 0 { edges.append(bin) }
    }
    return edges
  }

  mutating func measure(_ samples: [Float]) {
    let window = self.window
    fft.forward({ Kernels.multiply(samples.span, window.span, into: &$0) }) { Self.measure($0, into: &self.power) }
    let (power, edges, steps) = (self.power, self.edges, Self.stepsPerOctave)
    let bins = power.span
    for band in 0..<(edges.count - 1) {
      var sum: Float = 0
      for bin in edges[band]..<edges[band + 1] { sum += bins[bin] }
      // The mean over the bins. A band without any sound is far below one step of 16 bits.
      let mean = max(sum / Float(edges[band + 1] - edges[band]), 1e-3)
      levels[band] = Self.rounded(log2(mean) * steps)
    }
  }

  private static let stepsPerOctave = Float(10 * log10(2.0) * stepsPerDB)

  /// Rounds half away from zero, like `rounded()` but without its call into libm.
  @inline(__always)
  private static func rounded(_ value: Float) -> Int32 {
    let whole = Int32(value)
    let rest = value - Float(whole)
    return whole + (rest >= 0.5 ? 1 : rest <= -0.5 ? -1 : 0)
  }

  @inline(__always)
  private static func measure(_ spectrum: Span<Float>, into power: inout [Float]) {
    var target = power.mutableSpan
    Kernels.power(of: spectrum, into: &target)
  }
}
