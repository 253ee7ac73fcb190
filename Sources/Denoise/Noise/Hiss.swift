import Glibc

// How much of a noise is hiss: steady and broad, such as that of a preamplifier, a tape, or rain. In hiss, a band in
// which speech doesn't clearly stand out holds only noise, so everything in it can go; see HissGate.swift. In other
// noise it can't: a street's bands are loud or quiet by the moment, and its high ones hold more speech than noise.
//
// Both are measured in the noise's bands (NoiseBands) whose middle is at least 200 Hz and which end below 7.6 kHz, or
// 0.475 times the sample rate if that is less. With P[t,b] the mean power of band b, of n bins, in frame t of the
// region, and L = 10 log10 P:
//
//   E²      = mean over b of (variance of L over t − 4.34² / 0.75 n), at least 0
//             the rest is what chance causes in steady noise, whose bins are 0.75 n independent ones
//   steady  = 1 up to E = 1.7 dB, 0 from 2.3 dB on, and linear between
//             times 0 up to 14 frames, 1 from 38 (0.5 s) on, because in a short time everything is steady
//   tilt    = slope of the regression of 10 log10 (mean of λ in b) on log2 (middle of b), in dB per octave
//   broad   = 1 from −4.5 dB per octave on, 0 up to −7.5, and linear between
//   hiss    = steady · broad
//
// The 1.5 s before the 40 clips:        E            tilt
//   white, pink noise, rain             0.3 … 1.1    0, −3.0, −2.5 … −3.1
//   mains hum with harmonics            0            −6.2 … −7.7
//   airplane, wind                      0.8 … 1.9    −8.6 … −10.3
//   street, washer                      1.9 … 4.2    −7.8 … −9.4
//   café, train                         3.4 … 4.3    −7.9 … −8.7
//
// Noise that is broad but unsteady must be left out: with crackle, gusts of white noise, and a train and a café made as
// bright as rain, all with E over 2.3, a gate with somewhat lower limits cost .04, .04, .03, and .01 PESQ.

/// Measures how steady the noise of a region is, in one channel.
struct SteadinessMeter {
  /// In dB
  private static let steady = 1.7
  private static let unsteady = 2.3
  /// In frames
  private static let fewest = 14.0
  private static let enough = 38.0
  /// The power of digital silence.
  private static let least: Float = 1e-14

  private let bands: [Range<Int>]
  private var sums: [Double]
  private var squares: [Double]
  private var count = 0.0

  init(frame: AnalysisFrame, sampleRate: Int) {
    bands = Hiss.bands(frame: frame, sampleRate: sampleRate)
    sums = [Double](repeating: 0, count: bands.count)
    squares = sums
  }

  /// Adds a frame's power in each bin.
  mutating func append(_ power: Span<Float>) {
    count += 1
    for (index, band) in bands.enumerated() {
      var sum: Float = 0
      for bin in band { sum += power[bin] }
      let level = 10 * log10(Double(max(sum / Float(band.count), Self.least)))
      sums[index] += level
      squares[index] += level * level
    }
  }

  /// From 0 to 1.
  var steadiness: Float {
    guard count > Self.fewest, !bands.isEmpty else { return 0 }
    var excess = 0.0
    for (index, band) in bands.enumerated() {
      let mean = sums[index] / count, chance = 10 / log(10.0)
      excess += squares[index] / count - mean * mean - chance * chance / (0.75 * Double(band.count))
    }
    let deviation = max(0, excess / Double(bands.count)).squareRoot()
    let steady = min(1, max(0, (Self.unsteady - deviation) / (Self.unsteady - Self.steady)))
    return Float(steady * min(1, (count - Self.fewest) / (Self.enough - Self.fewest)))
  }
}

enum Hiss {
  /// In Hz
  private static let lowest = 200.0
  private static let highest = 7600.0
  /// In dB per octave
  private static let broad = -4.5
  private static let steep = -7.5

  /// Returns the bins of the bands in which both are measured.
  /// - Parameter lowest: the least middle of a band, in Hz.
  static func bands(frame: AnalysisFrame, sampleRate: Int, lowest: Double = Hiss.lowest) -> [Range<Int>] {
    let edges = NoiseBands(frame: frame, sampleRate: sampleRate).edges
    let width = Double(sampleRate) / Double(frame.length), end = min(highest, 0.475 * Double(sampleRate))
    return zip(edges, edges.dropFirst()).map { $0..<$1 }.filter { band in
      middle(of: band) * width >= lowest && Double(band.upperBound) * width < end
    }
  }

  /// Returns how broad noise is, from 0 to 1; 0 at a rate too low to tell.
  /// - Parameter level: λ of each bin.
  static func breadth(of level: [Float], frame: AnalysisFrame, sampleRate: Int) -> Float {
    let bands = bands(frame: frame, sampleRate: sampleRate)
    guard bands.count >= 3 else { return 0 }
    let octaves = bands.map { log2(middle(of: $0)) }
    let levels = bands.map { band in
      10 * log10(max(1e-14, band.reduce(0.0) { $0 + Double(level[$1]) } / Double(band.count)))
    }
    let mean = octaves.reduce(0, +) / Double(bands.count)
    let slope =
      zip(octaves, levels).reduce(0.0) { $0 + ($1.0 - mean) * $1.1 }
      / octaves.reduce(0.0) { $0 + ($1 - mean) * ($1 - mean) }
    return Float(min(1, max(0, (slope - steep) / (broad - steep))))
  }

  private static func middle(of band: Range<Int>) -> Double { Double(band.lowerBound + band.upperBound - 1) / 2 }
}
