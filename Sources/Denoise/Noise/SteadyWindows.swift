import Glibc

/// Slides windows of 1 s and ½ s over successive frames and keeps those that are most likely noise.
struct SteadyWindows {
  /// A range of frames that may be noise.
  struct Window {
    /// The analysis frames.
    var frames: Range<Int>
    /// S, including the penalty of a window of ½ s, in dB.
    var deviation: Double
    /// T, in octaves.
    var tonality: Double
    /// Whether it's as irregular as noise without any tone.
    var isIrregular: Bool
    /// The level of the mean square, in dB relative to one step.
    var levelDB: Double
    /// The mean level of each band, in steps.
    var means: BandLevels.Row
    /// How far the level exceeds the expected range of noise, in dB; set when all windows are known.
    var excess = 0.0
    /// M, in dB; set when all frames are known.
    var mismatch = 0.0
    /// The frames whose noise this is, if it's another elsewhere.
    var span: Range<Int>?
    /// The value by which windows are compared.
    var cost: Double {
      deviation + SteadyWindows.tonalPenalty * tonality + 0.05 * levelDB + 0.3 * excess + 0.25 * mismatch
    }

    /// Returns how much louder it is than another, in ascending order of the bands, in dB.
    func rises(over other: Window, _ bandCount: Int) -> [Double] {
      (0..<bandCount).map { Double(means[$0] - other.means[$0]) / BandLevels.stepsPerDB }.sorted()
    }
  }

  /// The penalty factor of a window of ½ s, which is more likely than one of 1 s to be steady by chance.
  private static let shortPenalty = 1.22
  /// The largest S of a window of noise, and of the quietest one if there is no other, in dB.
  static let largestDeviation = 5.0
  static let largestUnsteadyDeviation = 6.5
  /// How much quieter than the recording that one must be, in dB.
  private static let leastFall = 4.0
  /// The factor of T, in dB per octave, and the largest T of noise.
  private static let tonalPenalty = 6.0
  static let largestTonality = 0.15

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

  private let bandCount: Int
  private var histogram: LevelHistogram
  private var moments = QuietMoments()
  private var long: Slider
  private var short: Slider
  /// Frames per second, and frames so far, with and without silence.
  private let second: Int
  private var frameCount = 0
  private var soundCount = 0.0
  /// The sum of the mean squares of all frames.
  private var power = 0.0

  init(bandCount: Int, framesPerSecond: Double) {
    self.bandCount = bandCount
    histogram = LevelHistogram(bandCount: bandCount)
    second = max(4, Int(framesPerSecond.rounded()))
    long = Slider(bandCount: bandCount, length: second, penalty: 1, longest: Int(5 * framesPerSecond))
    short = Slider(bandCount: bandCount, length: (second + 1) / 2, penalty: Self.shortPenalty, longest: 0)
  }

  /// Adds the next frame.
  mutating func append(_ frame: NoiseFrame) {
    frameCount += 1
    guard !frame.isSilent else {
      moments.append(nil)
      long.appendSilence()
      short.appendSilence()
      return
    }
    soundCount += 1
    power += frame.meanSquare
    histogram.append(frame.levels)
    moments.append(sum(frame.levels))
    long.append(frame)
    short.append(frame)
  }

  private func sum(_ levels: BandLevels.Row) -> Int32 {
    var sum: Int32 = 0
    for band in 0..<bandCount { sum += levels[band] }
    return sum
  }

  /// Returns the best windows that don't overlap, best first, with their scores.
  consuming func finish(limit: Int) -> [(Window, score: Double)] {
    var candidates = long.finish() + short.finish()
    if candidates.isEmpty, let quiet = long.quietest, quiet.levelDB < 10 * log10(power / soundCount) - Self.leastFall {
      candidates = [quiet]
    }
    let leastTonality = candidates.map(\.tonality).min() ?? 0
    for index in candidates.indices {
      candidates[index].mismatch = histogram.mismatch(of: candidates[index].means)
      candidates[index].tonality -= leastTonality
    }
    let usual = candidates.filter { $0.mismatch < Self.largestMismatch }
    guard let quietest = (usual.isEmpty ? candidates : usual).map(\.levelDB).min() else { return [] }
    // A steady window far above the quietest one is a tone or a chord, not noise.
    for index in candidates.indices {
      candidates[index].excess = max(0, candidates[index].levelDB - quietest - Self.levelRange)
    }
    // At 2 dB or less, noise can't be steadier; at the limit of 5 dB, the score is 0.4.
    func score(_ window: Window) -> Double { min(1, max(0, 1 - 0.2 * (window.cost - 0.05 * quietest - 2))) }
    let first = Self.apart(candidates, limit: limit)
    var chosen = promotingLoudest(first.map { ($0, score: score($0)) })
    let others = lastingChanges(from: &chosen[0].0, among: candidates)
    guard !others.isEmpty else { return chosen }
    chosen.removeAll { window in others.contains { $0.frames.overlaps(window.0.frames) } }
    let all = chosen + others.map { ($0, score: score($0)) }
    return Array(all.sorted { $0.score > $1.score }.prefix(limit))
  }

  /// Returns the best windows that don't overlap, best first.
  private static func apart(_ candidates: [Window], limit: Int) -> [Window] {
    var chosen: [Window] = []
    for window in candidates.sorted(by: { ($0.cost, $0.frames.lowerBound) < ($1.cost, $1.frames.lowerBound) })
    where chosen.count < limit && !chosen.contains(where: { $0.frames.overlaps(window.frames) }) {
      chosen.append(window)
    }
    return chosen
  }

  /// Moves the loudest of the first windows to the front if it's nearly as good, much louder, and louder in all
  /// bands or, if it's irregular, in a few, with the score of the best.
  private func promotingLoudest(_ windows: [(Window, score: Double)]) -> [(Window, score: Double)] {
    guard let best = windows.first else { return [] }
    let rivals = windows.prefix(Self.rivalCount).filter { rival in
      guard rival.score >= max(Self.leastRivalScore, best.score - Self.rivalMargin) else { return false }
      let rises = rival.0.rises(over: best.0, bandCount), few = bandCount / 10
      guard rises[few] >= 1.5 else { return rival.0.isIrregular && rises[few] >= -2 && rises[bandCount / 2] < 2 }
      return rival.0.isIrregular || rises[bandCount - 1 - few] - rises[few] <= 8
    }
    guard let loudest = rivals.max(by: { $0.0.levelDB < $1.0.levelDB }),
      loudest.0.levelDB >= best.0.levelDB + Self.leastRise
    else { return windows }
    return [(loudest.0, best.score)] + windows.filter { $0.0.frames != loudest.0.frames }
  }

  /// Returns the best windows of the times before and after which the recording is never as quiet as in `best`, if what
  /// makes it louder there is noise, and sets the spans of all.
  private func lastingChanges(from best: inout Window, among candidates: [Window]) -> [Window] {
    let limit = sum(best.means) + Int32(6 * BandLevels.stepsPerDB) * Int32(bandCount)
    guard let quiet = moments.range(notAbove: limit) else { return [] }
    let (start, end) = (min(quiet.lowerBound, best.frames.lowerBound), max(quiet.upperBound, best.frames.upperBound))
    var others: [Window] = []
    for span in [0..<start, end..<frameCount] where span.count >= 2 * second {
      let louder = candidates.filter { window in
        guard span.contains(window.frames.lowerBound), window.frames.upperBound <= span.upperBound else { return false }
        let rises = window.rises(over: best, bandCount), few = bandCount / 10
        return rises[few] >= 5 && rises[bandCount / 2] >= 8 && rises[bandCount - 1 - few] - rises[few] <= 20
      }.map { window in
        var window = window
        (window.excess, window.mismatch, window.span) = (0, 0, span)
        return window
      }
      let apart = Self.apart(louder, limit: 2)
      if let first = apart.first, apart.reduce(0, { $0 + $1.frames.count }) >= second - 1 { others.append(first) }
    }
    guard !others.isEmpty else { return [] }
    let before = others.first { $0.frames.upperBound <= start }, after = others.last { $0.frames.lowerBound >= end }
    best.span = (before == nil ? 0 : start)..<(after == nil ? frameCount : end)
    return others
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
  private var textures: [BandLevels.Texture]
  private var next = 0
  private var filled = 0
  private var sums = BandLevels.Row(repeating: 0)
  private var sumsOfSquares = BandLevels.Row(repeating: 0)
  private var texture = BandLevels.Texture(roughness: 0, flatness: 0)
  private var frameCount = 0
  private var current: SteadyWindows.Window?
  private var kept: [SteadyWindows.Window] = []
  /// The quietest window whose S is a little too large.
  private(set) var quietest: SteadyWindows.Window?

  init(bandCount: Int, length: Int, penalty: Double, longest: Int) {
    self.bandCount = bandCount
    self.length = length
    self.penalty = penalty
    self.longest = longest
    ring = [BandLevels.Row](repeating: BandLevels.Row(repeating: 0), count: length)
    squares = [Double](repeating: 0, count: length)
    textures = [BandLevels.Texture](repeating: texture, count: length)
  }

  mutating func append(_ frame: NoiseFrame) {
    let levels = frame.levels, oldest = filled == length ? ring[next] : BandLevels.Row(repeating: 0)
    ring[next] = levels
    if filled == length {
      texture.roughness -= textures[next].roughness
      texture.flatness -= textures[next].flatness
    }
    texture.roughness += frame.texture.roughness
    texture.flatness += frame.texture.flatness
    textures[next] = frame.texture
    for band in 0..<BandLevels.limit {
      let (old, new) = (oldest[band], levels[band])
      // A level is at most 4,000 steps, and a window has at most 34 frames.
      sums[band] &+= new &- old
      sumsOfSquares[band] &+= new &* new &- old &* old
    }
    squares[next] = frame.meanSquare
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
    texture = BandLevels.Texture(roughness: 0, flatness: 0)
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
    let deviation = penalty * deviation, tonality = texture.tonality(count: length)
    let frames = (frameCount - length)..<frameCount
    guard deviation <= SteadyWindows.largestDeviation, tonality < SteadyWindows.largestTonality else {
      if let current, frames.lowerBound >= current.frames.upperBound { keep() }
      if deviation <= SteadyWindows.largestUnsteadyDeviation, tonality < SteadyWindows.largestTonality {
        let window = window(frames, deviation, tonality)
        if window.levelDB < quietest?.levelDB ?? .infinity { quietest = window }
      }
      return
    }
    let window = window(frames, deviation, tonality)
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

  private func window(_ frames: Range<Int>, _ deviation: Double, _ tonality: Double) -> SteadyWindows.Window {
    let power = squares.reduce(0, +) / Double(length)
    var means = BandLevels.Row(repeating: 0)
    for band in 0..<bandCount { means[band] = sums[band] / Int32(length) }
    return SteadyWindows.Window(
      frames: frames, deviation: deviation, tonality: tonality, isIrregular: texture.isIrregular(count: length),
      levelDB: 10 * log10(power), means: means)
  }

  /// Finalizes the current candidate. Up to four of each level stay, whatever others cost, for noise that changes.
  private mutating func keep() {
    guard let current else { return }
    kept.append(current)
    self.current = nil
    guard kept.count > Self.limit else { return }
    var counts: [Int: Int] = [:]
    for window in kept { counts[Self.class(of: window), default: 0] += 1 }
    let common = kept.indices.filter { counts[Self.class(of: kept[$0]), default: 0] > 4 }
    if let worst = common.max(by: { kept[$0].cost < kept[$1].cost }) { kept.remove(at: worst) }
  }

  private static func `class`(of window: SteadyWindows.Window) -> Int { Int(window.levelDB / 8) }
}
