import Glibc

/// Slides windows of 1 s and of ½ s over the band levels of successive frames and keeps the steadiest of them.
struct SteadyWindows {
  /// A stretch that may be noise.
  struct Window: Equatable {
    /// Analysis frames.
    var frames: Range<Int>
    /// S, what a window of ½ s counts more for included, in dB.
    var deviation: Double
    /// Of the stretch's mean square, in dB of one step.
    var levelDB: Double
    /// How far the level is above the range that noise is expected in, in dB; told by all windows together.
    var excess = 0.0
    /// What windows are compared by.
    var cost: Double { deviation + 0.05 * levelDB + 0.3 * excess }
  }

  /// What a window of ½ s counts for, as it is steadier by chance than one of 1 s.
  private static let shortPenalty = 1.22
  /// S over which a window holds more than noise, in dB.
  static let largestDeviation = 5.0

  /// Over the quietest steady window, in dB: the noise of a recording lies within it.
  private static let levelRange = 10.0

  private var long: Slider
  private var short: Slider

  init(bandCount: Int, framesPerSecond: Double) {
    let frames = max(4, Int(framesPerSecond.rounded()))
    long = Slider(bandCount: bandCount, length: frames, penalty: 1, longest: Int(5 * framesPerSecond))
    short = Slider(bandCount: bandCount, length: (frames + 1) / 2, penalty: Self.shortPenalty, longest: 0)
  }

  mutating func append(_ levels: [Int32], meanSquare: Double) {
    long.append(levels, meanSquare)
    short.append(levels, meanSquare)
  }

  mutating func appendSilence() {
    long.appendSilence()
    short.appendSilence()
  }

  /// The best windows that do not overlap, best first, with their scores.
  consuming func finish(limit: Int) -> [(Window, score: Double)] {
    var candidates = long.finish() + short.finish()
    guard let quietest = candidates.map(\.levelDB).min() else { return [] }
    // What stands still far above the quietest stretch is a tone or a chord rather than the noise under it.
    for index in candidates.indices {
      candidates[index].excess = max(0, candidates[index].levelDB - quietest - Self.levelRange)
    }
    candidates.sort { ($0.cost, $0.frames.lowerBound) < ($1.cost, $1.frames.lowerBound) }
    var chosen: [Window] = []
    for window in candidates
    where chosen.count < limit && !chosen.contains(where: { $0.frames.overlaps(window.frames) }) {
      chosen.append(window)
    }
    // 2 dB or less is as steady as noise can be, at the 5 dB that are just taken 0.4 are left.
    return chosen.map { window in
      (window, min(1, max(0, 1 - 0.2 * (window.cost - 0.05 * quietest - 2))))
    }
  }
}

/// Windows of one length.
private struct Slider {
  /// Candidates kept at the most: more than are ever asked for, as some will overlap those of the other length.
  private static let limit = 48

  private let bandCount: Int
  private let length: Int
  private let penalty: Double
  /// Frames that a window may be prolonged to.
  private let longest: Int
  /// The levels and mean squares of the last `length` frames, the next one's place being `next`.
  private var ring: [Int32]
  private var squares: [Double]
  private var next = 0
  private var filled = 0
  private var sums: [Int32]
  private var sumsOfSquares: [Int32]
  private var frameCount = 0
  private var current: SteadyWindows.Window?
  private var kept: [SteadyWindows.Window] = []

  init(bandCount: Int, length: Int, penalty: Double, longest: Int) {
    self.bandCount = bandCount
    self.length = length
    self.penalty = penalty
    self.longest = longest
    ring = [Int32](repeating: 0, count: length * bandCount)
    squares = [Double](repeating: 0, count: length)
    sums = [Int32](repeating: 0, count: bandCount)
    sumsOfSquares = [Int32](repeating: 0, count: bandCount)
  }

  mutating func append(_ levels: [Int32], _ meanSquare: Double) {
    let isFull = filled == length
    let row = next * bandCount
    for band in 0..<bandCount {
      let (old, new) = (isFull ? ring[row + band] : 0, levels[band])
      sums[band] += new - old
      sumsOfSquares[band] += new * new - old * old
      ring[row + band] = new
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
    for band in 0..<bandCount { (sums[band], sumsOfSquares[band]) = (0, 0) }
  }

  mutating func finish() -> [SteadyWindows.Window] {
    keep()
    return kept
  }

  /// S of the last `length` frames, in dB.
  private var deviation: Double {
    var sum = 0.0
    let count = Double(length)
    for band in 0..<bandCount {
      let mean = Double(sums[band]) / count
      sum += max(0, Double(sumsOfSquares[band]) / count - mean * mean).squareRoot()
    }
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
    let window = SteadyWindows.Window(frames: frames, deviation: deviation, levelDB: 10 * log10(power))
    guard let best = current else {
      current = window
      return
    }
    if frames.lowerBound < best.frames.upperBound {
      // One that was prolonged makes place only for what is clearly better.
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

  /// The present candidate is final.
  private mutating func keep() {
    guard let current else { return }
    kept.append(current)
    self.current = nil
    if kept.count > Self.limit, let worst = kept.indices.max(by: { kept[$0].cost < kept[$1].cost }) {
      kept.remove(at: worst)
    }
  }
}
