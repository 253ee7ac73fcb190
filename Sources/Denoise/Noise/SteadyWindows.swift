import Glibc

/// Slides windows of 1 s and ½ s over the band levels of successive frames and keeps the steadiest.
struct SteadyWindows {
  /// A range of frames that may be noise.
  struct Window {
    /// The analysis frames.
    var frames: Range<Int>
    /// S, including the penalty of a window of ½ s, in dB.
    var deviation: Double
    /// The level of the mean square, in dB relative to one step.
    var levelDB: Double
    /// The mean level of each band, in steps.
    var means: BandLevels.Row
    /// How far the level exceeds the expected range of noise, in dB; set when all windows are known.
    var excess = 0.0
    /// M, in dB; set when all frames are known.
    var mismatch = 0.0
    /// The value by which windows are compared.
    var cost: Double { deviation + 0.05 * levelDB + 0.3 * excess + 0.25 * mismatch }
  }

  /// The penalty factor of a window of ½ s, which is more likely than one of 1 s to be steady by chance.
  private static let shortPenalty = 1.22
  /// The largest S of a window of noise, in dB.
  static let largestDeviation = 5.0

  /// The largest M of a window that others are compared with, in dB.
  private static let largestMismatch = 6.0

  /// How many of the first windows the loudest is chosen from, and which scores they must have: at least this much, and
  /// at most that much under the best.
  private static let rivalCount = 4
  private static let leastRivalScore = 0.3
  private static let rivalMargin = 0.2
  /// How much louder it must be, in dB: noise with faint speech in it is hardly louder.
  private static let leastRise = 4.0

  /// The range of noise levels above the quietest steady window, in dB.
  private static let levelRange = 10.0

  private var histogram: LevelHistogram
  private var long: Slider
  private var short: Slider

  init(bandCount: Int, framesPerSecond: Double) {
    histogram = LevelHistogram(bandCount: bandCount)
    let frames = max(4, Int(framesPerSecond.rounded()))
    long = Slider(bandCount: bandCount, length: frames, penalty: 1, longest: Int(5 * framesPerSecond))
    short = Slider(bandCount: bandCount, length: (frames + 1) / 2, penalty: Self.shortPenalty, longest: 0)
  }

  /// Adds the next frame. If it's silent, its levels are ignored.
  mutating func append(_ levels: BandLevels.Row, meanSquare: Double) {
    if meanSquare <= NoiseRegionFinder.silence {
      long.appendSilence()
      short.appendSilence()
    } else {
      histogram.append(levels)
      long.append(levels, meanSquare)
      short.append(levels, meanSquare)
    }
  }

  /// Returns the best windows that don't overlap, best first, with their scores.
  consuming func finish(limit: Int) -> [(Window, score: Double)] {
    var candidates = long.finish() + short.finish()
    for index in candidates.indices {
      candidates[index].mismatch = histogram.mismatch(of: candidates[index].means)
    }
    let usual = candidates.filter { $0.mismatch < Self.largestMismatch }
    guard let quietest = (usual.isEmpty ? candidates : usual).map(\.levelDB).min() else { return [] }
    // A steady window far above the quietest one is a tone or a chord, not noise.
    for index in candidates.indices {
      candidates[index].excess = max(0, candidates[index].levelDB - quietest - Self.levelRange)
    }
    candidates.sort { ($0.cost, $0.frames.lowerBound) < ($1.cost, $1.frames.lowerBound) }
    var chosen: [Window] = []
    for window in candidates
    where chosen.count < limit && !chosen.contains(where: { $0.frames.overlaps(window.frames) }) {
      chosen.append(window)
    }
    // At 2 dB or less, noise can't be steadier; at the limit of 5 dB, the score is 0.4.
    let scored = chosen.map { window in
      (window, score: min(1, max(0, 1 - 0.2 * (window.cost - 0.05 * quietest - 2))))
    }
    return Self.promotingLoudest(scored)
  }

  /// Moves the loudest of the first windows to the front if it's nearly as good and much louder, with the score of the
  /// best.
  private static func promotingLoudest(_ windows: [(Window, score: Double)]) -> [(Window, score: Double)] {
    guard let best = windows.first else { return [] }
    let rivals = windows.prefix(rivalCount).filter { $0.score >= max(leastRivalScore, best.score - rivalMargin) }
    guard let loudest = rivals.max(by: { $0.0.levelDB < $1.0.levelDB }),
      loudest.0.levelDB >= best.0.levelDB + leastRise
    else { return windows }
    return [(loudest.0, best.score)] + windows.filter { $0.0.frames != loudest.0.frames }
  }
}

/// Slides windows of one length.
private struct Slider {
  /// Maximum number of candidates, more than are ever requested, because some will overlap those of the other length.
  private static let limit = 48

  private let bandCount: Int
  private let length: Int
  private let penalty: Double
  /// Maximum length of an extended window, in frames.
  private let longest: Int
  /// The levels and mean squares of the last `length` frames; the next frame goes to index `next`.
  private var ring: [BandLevels.Row]
  private var squares: [Double]
  private var next = 0
  private var filled = 0
  private var sums = BandLevels.Row(repeating: 0)
  private var sumsOfSquares = BandLevels.Row(repeating: 0)
  private var frameCount = 0
  private var current: SteadyWindows.Window?
  private var kept: [SteadyWindows.Window] = []

  init(bandCount: Int, length: Int, penalty: Double, longest: Int) {
    self.bandCount = bandCount
    self.length = length
    self.penalty = penalty
    self.longest = longest
    ring = [BandLevels.Row](repeating: BandLevels.Row(repeating: 0), count: length)
    squares = [Double](repeating: 0, count: length)
  }

  mutating func append(_ levels: BandLevels.Row, _ meanSquare: Double) {
    let oldest = filled == length ? ring[next] : BandLevels.Row(repeating: 0)
    ring[next] = levels
    for band in 0..<BandLevels.limit {
      let (old, new) = (oldest[band], levels[band])
      // A level is at most 4,000 steps, and a window has at most 34 frames.
      sums[band] &+= new &- old
      sumsOfSquares[band] &+= new &* new &- old &* old
    }
    squares[next] = meanSquare
    next = next + 1 == length ? 0 : next + 1
    filled = min(length, filled + 1)
    frameCount += 1
    if filled == length { consider() }
  }

  mutating func appendSilence() {
    frameCount += 1
    keep()
    (next, filled) = (0, 0)
    (sums, sumsOfSquares) = (BandLevels.Row(repeating: 0), BandLevels.Row(repeating: 0))
  }

  mutating func finish() -> [SteadyWindows.Window] {
    keep()
    return kept
  }

  /// S of the last `length` frames, in dB.
  private var deviation: Double {
    let count = Double(length)
    // First the roots, which then take half the time; those after the last band are 0.
    var roots = InlineArray<20, Double>(repeating: 0)
    for band in 0..<BandLevels.limit {
      let mean = Double(sums[band]) / count
      let variance = Double(sumsOfSquares[band]) / count - mean * mean
      roots[band] = (variance > 0 ? variance : 0).squareRoot()
    }
    var sum = 0.0
    for band in 0..<BandLevels.limit { sum += roots[band] }
    return sum / Double(bandCount) / BandLevels.stepsPerDB
  }

  private mutating func consider() {
    let deviation = penalty * deviation
    let frames = (frameCount - length)..<frameCount
    guard deviation <= SteadyWindows.largestDeviation else {
      if let current, frames.lowerBound >= current.frames.upperBound { keep() }
      return
    }
    let power = squares.reduce(0, +) / Double(length)
    var means = BandLevels.Row(repeating: 0)
    for band in 0..<bandCount { means[band] = sums[band] / Int32(length) }
    let window = SteadyWindows.Window(frames: frames, deviation: deviation, levelDB: 10 * log10(power), means: means)
    guard let best = current else {
      current = window
      return
    }
    if frames.lowerBound < best.frames.upperBound {
      // An extended window is replaced only by a clearly better one.
      let margin = best.frames.count > length ? 0.5 : 0
      if window.cost < best.cost - margin { current = window }
    } else if best.frames.count + length <= longest, abs(window.levelDB - best.levelDB) < 1.5,
      window.deviation < best.deviation + 0.5
    {
      current?.frames = best.frames.lowerBound..<frames.upperBound
    } else {
      keep()
      current = window
    }
  }

  /// Finalizes the current candidate.
  private mutating func keep() {
    guard let current else { return }
    kept.append(current)
    self.current = nil
    if kept.count > Self.limit, let worst = kept.indices.max(by: { kept[$0].cost < kept[$1].cost }) {
      kept.remove(at: worst)
    }
  }
}
