import Glibc

/// The levels of a frame's bands, in steps of 1/16 dB, and its texture: integers, so that sums over a sliding window
/// stay exact.
struct BandLevels: ~Copyable {
  /// How irregular a frame is; see NoiseRegionFinder.swift. In steps of 1/256 octave.
  struct Texture: Equatable {
    static let stepsPerOctave: Float = 256
    /// R, or noise's R if the frame before isn't known.
    var roughness: Int32 = 512
    /// F
    var flatness: Int32 = 0

    /// Returns T, in octaves, if this is the sum over `count` frames.
    func tonality(count: Int) -> Double {
      let mean = octaves(count)
      return max(0, 1.85 - mean.roughness) + max(0, -0.95 - mean.flatness)
    }

    /// Returns whether noise without any tone is as irregular, if this is the sum over `count` frames.
    func isIrregular(count: Int) -> Bool {
      let mean = octaves(count)
      return mean.roughness >= 1.92 && mean.flatness >= -0.8
    }

    private func octaves(_ count: Int) -> (roughness: Double, flatness: Double) {
      let steps = Double(Self.stepsPerOctave) * Double(count)
      return (Double(roughness) / steps, Double(flatness) / steps)
    }
  }

  static let stepsPerDB = 16.0
  /// Maximum number of bands.
  static let limit = 20
  /// One level per band, and 0 after the last.
  typealias Row = InlineArray<20, Int32>

  /// The levels of the newest frame.
  private(set) var levels = Row(repeating: 0)
  /// The texture of the newest frame.
  private(set) var texture = Texture()
  /// log2 of each bin of the first frame and of the newest one; empty if that was silent, and nil before the first.
  private(set) var first, newest: [Float]?
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
    measureTexture()
    let (power, edges, steps) = (self.power, self.edges, Self.stepsPerOctave)
    let bins = power.span
    for band in 0..<(edges.count - 1) {
      var sum: Float = 0
      for bin in edges[band]..<edges[band + 1] { sum += bins[bin] }
      levels[band] = Self.rounded(log2(sum / Float(edges[band + 1] - edges[band])) * steps)
    }
  }

  /// Begins a part of the recording whose frame before isn't known.
  mutating func begin() { (first, newest) = (nil, nil) }

  /// Counts a frame of digital silence.
  mutating func skip() { follow(first: [], newest: []) }

  /// Continues after a part that was measured elsewhere.
  /// - Returns: the roughness of the part's first frame.
  @discardableResult
  mutating func follow(first: [Float], newest: [Float]) -> Int32 {
    let roughness = roughness(of: first)
    self.first = self.first ?? first
    self.newest = newest
    return roughness
  }

  private mutating func measureTexture() {
    // A bin without any sound is far below one step of 16 bits.
    for bin in power.indices { power[bin] = max(power[bin], Self.leastPower) }
    var logs = power
    // The mean of a logarithm and itself.
    unsafe loops.mean_octaves(&logs, power, logs.count)
    texture.flatness = flatness(of: logs)
    texture.roughness = follow(first: logs, newest: logs)
  }

  private func flatness(of logs: [Float]) -> Int32 {
    var (total, bands): (Float, Float) = (0, 0)
    for (start, end) in zip(edges, edges.dropFirst()) where end - start >= 3 {
      let count = Float(end - start)
      total += logs[start..<end].reduce(0, +) / count - log2(power[start..<end].reduce(0, +) / count)
      bands += 1
    }
    return bands > 0 ? Self.rounded(total / bands * Texture.stepsPerOctave) : 0
  }

  private func roughness(of logs: [Float]) -> Int32 {
    guard let newest, newest.count == logs.count, !logs.isEmpty, count > 0 else { return Texture().roughness }
    var total: Float = 0
    for (start, end) in zip(edges, edges.dropFirst()) {
      var sum: Float = 0
      for bin in start..<end { sum += abs(logs[bin] - newest[bin]) }
      total += sum / Float(end - start)
    }
    return Self.rounded(total / Float(count) * Texture.stepsPerOctave)
  }

  private static let leastPower: Float = 1e-3
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
