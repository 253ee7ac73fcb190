/// How often each level occurred in each band over a whole recording, in steps of 1 dB. 25 KB.
struct LevelHistogram {
  /// The share of frames in which even a busy band contains only noise.
  private static let quantile = 0.2
  private static let stepsPerDB = Int32(BandLevels.stepsPerDB)
  /// Levels are from −30 dB, the least that BandLevels measures, to 250.
  private static let least: Int32 = -30
  private static let count = 320

  private let bandCount: Int
  /// `[band][level]`
  private var counts: [UInt32]
  private var total: UInt32 = 0

  init(bandCount: Int) {
    self.bandCount = bandCount
    counts = [UInt32](repeating: 0, count: bandCount * Self.count)
  }

  /// Adds a frame's levels.
  mutating func append(_ levels: BandLevels.Row) {
    total += 1
    for band in 0..<bandCount {
      let level = min(Int32(Self.count) - 1, max(0, levels[band] / Self.stepsPerDB - Self.least))
      counts[band * Self.count + Int(level)] += 1
    }
  }

  /// Returns M of a window with these mean levels, in dB; see NoiseRegionFinder.swift.
  func mismatch(of means: BandLevels.Row) -> Double {
    guard bandCount > 0 else { return 0 }
    let differences = (0..<bandCount).map { Double(means[$0]) / BandLevels.stepsPerDB - quiet($0) }.sorted()
    return max(0, -differences[bandCount / 2] - 6)
  }

  /// Q of a band, in dB.
  private func quiet(_ band: Int) -> Double {
    let wanted = Self.quantile * Double(total)
    var below = 0.0
    for level in 0..<Self.count {
      below += Double(counts[band * Self.count + level])
      if below >= wanted { return Double(Int32(level) + Self.least) + 0.5 }
    }
    return 0
  }
}
