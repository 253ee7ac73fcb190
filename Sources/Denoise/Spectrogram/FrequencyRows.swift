import Glibc

// The rows of a spectrogram, as weights on the bins of a transform.
//
// Between two bins, the power P is interpolated linearly. A row shows the mean of P between its edges a < b, in bins:
//
//   1 / (b − a) ∫ P dx = Σ_j P_j (H(b − j) − H(a − j)) / (b − a)
//   H(u) = ½ (1 + u)² for −1 ≤ u ≤ 0,  1 − ½ (1 − u)² for 0 ≤ u ≤ 1,  0 before, 1 after
//
// H is the integral of the triangle with which a bin contributes to P. So a row that is wider than a bin is the mean of
// its bins, and a narrower one is interpolated.
//
// The edges are equally far apart on the scale m(f):
//
//   linear   f
//   log      ln f
//   mel      3 f / 200 up to 1,000 Hz; above, 15 + 27 ln(f / 1000) / ln 6.4         (Slaney, Auditory Toolbox, 1998)

/// The weights of the bins in each row, the highest row first.
struct FrequencyRows {
  private struct Row {
    /// The first bin with a weight.
    var first: Int
    /// The weights of it and the next ones, in `weights`.
    var range: Range<Int>
  }

  private var rows: [Row] = []
  private var weights: [Float] = []

  /// Number of rows.
  var count: Int { rows.count }

  /// - Parameters:
  ///   - height: number of rows.
  ///   - factor: multiplied with all weights.
  init(of tile: SpectrogramTile, height: Int, factor: Double) {
    let scale = tile.frequencyScale, binsPerHz = Double(tile.window) / Double(tile.sampleRate)
    let (low, high) = (scale.value(at: tile.minHz), scale.value(at: tile.maxHz))
    let lastBin = tile.window / 2
    func edge(_ index: Int) -> Double {
      let hertz = scale.hertz(at: low + (high - low) * Double(index) / Double(height))
      return min(max(hertz * binsPerHz, 0), Double(lastBin))
    }
    for row in 0..<height {
      let b = edge(height - row)
      // Rows have a width, whatever is rounded.
      let a = min(edge(height - row - 1), b - 1e-6)
      let bins = max(Int(a.rounded(.down)), 0)...min(Int(b.rounded(.up)), lastBin)
      let start = weights.count
      weights += bins.map { bin in
        let share = Self.integral(b - Double(bin)) - Self.integral(a - Double(bin))
        return Float(share / (b - a) * factor)
      }
      rows.append(Row(first: bins.lowerBound, range: start..<weights.count))
    }
  }

  /// Calls `body` with the number of each row and its value, from the bins' power.
  @inline(__always)
  func apply(to power: Span<Float>, _ body: (Int, Float) -> Void) {
    let weights = weights.span
    for (number, row) in rows.enumerated() {
      let own = weights.extracting(row.range), bins = power.extracting(row.first..<row.first + own.count)
      var sum: Float = 0
      for index in own.indices { sum += own[index] * bins[index] }
      body(number, sum)
    }
  }

  private static func integral(_ u: Double) -> Double {
    switch u {
    case ...(-1): 0
    case ...0: 0.5 * (1 + u) * (1 + u)
    case ..<1: 1 - 0.5 * (1 - u) * (1 - u)
    default: 1
    }
  }
}

extension FrequencyScale {
  private static let stepsPerE = 27 / Glibc.log(6.4)

  /// Returns m(f).
  func value(at hertz: Double) -> Double {
    switch self {
    case .linear: hertz
    case .log: Glibc.log(hertz)
    case .mel: hertz <= 1000 ? 3 * hertz / 200 : 15 + Self.stepsPerE * Glibc.log(hertz / 1000)
    }
  }

  /// Returns the f with this m(f).
  func hertz(at value: Double) -> Double {
    switch self {
    case .linear: value
    case .log: exp(value)
    case .mel: value <= 15 ? 200 * value / 3 : 1000 * exp((value - 15) / Self.stepsPerE)
    }
  }
}
