import CKernels
import Glibc

// Noise whose level or color changes is followed where the change is certain; everything else keeps the profile.
//
//   P[t,k]  = mean of γ of frames 4 t and 4 t + 2                            t: a tick of 48 ms; γ: over the profile
//   p       = 1 / (1 + (1 + x) exp(−P/Λ · x / (1 + x)))                      probability of speech; x = 15 dB
//   p̄       ← 0.9 p̄ + 0.1 p, and where p̄ > 0.99, p is at most 0.99
//   Λ       ← 0.8 Λ + 0.2 (p Λ + (1 − p) P)                                  memories per 16 ms
//   r[t,k]  = ½ log2 (Λf Λb), at least log2 max(Λf, Λb) − 1                  f: forward; b: backward, from Λf's end
//   m[t,b]  = median of r's mean over the bins of band b, over 1 s around t
//   g[t,b]  = 0 up to a change of `least`, 1 from `full` on, and linear between; higher for a fall than for a rise
//   v[t,k]  = g (m + mean of r[·,k] − m over 0.8 s around t)                 g and m between the bands' middles
//   γ       ← γ 2^−v
//
// Λ is the tracker of Gerkmann & Hendriks, "Unbiased MMSE-based noise power estimation with low complexity and low
// tracking delay", IEEE Trans. ASLP 20 (2012). By itself it follows changes well, but it costs .02 PESQ and 0.7 dB on
// ordinary noise: it varies from frame to frame, and speech leaks into it. The mean over a band and the median over a
// second remove both, and keep a step sharp. Because the median follows the noise, the last term is what changes only
// in some bins of a band, such as a hum, and may be slow. Where g is 0, γ keeps its bits.
//
// A rise must have the texture of noise, c of NoiseTexture, and with `always`, so must most of what rises at a tick: up
// to half of it, g is 0, and from 0.8 on unchanged. Or it's a hum: the lowest band rises, and all bands that rise
// without that texture begin below 500 Hz, rise by less than 20 dB, and are filled (h). Without this, whatever lasted
// was learned: a piano at 50 dB of SI-SDR was left with 2, drums at 57 dB with 15, and an organ lost 21 dB.
//
// Λ is at least −20 dB. Digital silence, P < 1e−6, leaves it unchanged: after it, the noise is as loud as before.
//
// After a rise of 20 dB, Λf follows only after 1.5 s, and so does Λb before a fall. So the larger one counts if they
// are over two octaves apart: that leaves −14 dB of the noise there instead of −2.
//
// Before Λf is trusted, it has C frames to forget its start. Where the noise is over 6 dB louder than the profile,
// Λf starts at the lower quartile of the first 1.5 s of each band; from far below, it would take seconds.
//
// A stretch r consists of frames r S + C …< (r + 1) S + C, so that a segment and its context lie in the stretches up to
// the segment's own. Each stretch is tracked by itself, with `contextHops` frames on both sides. So a recording of any
// length takes constant memory, and a part has the bits of the whole.

/// When noise that changes is followed.
package enum NoiseAdaptation: String, Codable, Sendable, CaseIterable {
  /// From a rise of 3.5 dB, if the added sound has the texture of noise or is a hum, or from a fall of 6.5 dB.
  case always
  /// Only after changes of 5 to 15 dB up or 8 dB down, and only if what changed has the texture of noise in many bands
  /// (see NoiseTexture), for recordings whose listener didn't ask for it.
  case ifCertain = "if_certain"
}

/// Follows the noise through one stretch after another.
struct NoiseTracker: Sendable {
  /// The limits of a change, in octaves of power: below `least` it's ignored, and from `full` on followed completely.
  private struct Limits {
    let least, full: Float

    init(dB least: Double, _ full: Double) {
      self.least = Float(least / 10 / log10(2))
      self.full = Float(full / 10 / log10(2))
    }

    func share(of change: Float) -> Float { min(1, max(0, (change - least) / (full - least))) }
  }

  private let binCount: Int
  private let bands: NoiseBands
  private let rule: tracking_rule
  /// How much a bin without speech changes Λ in a tick; 0 if it has no noise.
  private let novelty: [Float]
  private let rise, fall: Limits
  /// Whether a change must have the texture of noise.
  private let mustBeNoise: Bool
  /// A louder change is more likely a sound, in octaves of power.
  private static let largestRise = Float(15 / 10 / log10(2.0))
  /// A louder tone is more likely a note.
  private static let largestHum = Float(20 / 10 / log10(2.0))
  /// The least P whose texture is measured.
  private static let leastPower: Float = 1e-6
  /// Ticks on each side of the median and of the slow mean, and of the start.
  private let medianReach, meanReach, startTicks: Int

  /// - Parameter noise: λ of each frame.
  init(frame: AnalysisFrame, sampleRate: Int, noise: FrameNoise, adaptation: NoiseAdaptation) {
    let tick = 4 * Double(frame.hop) / Double(sampleRate), odds = pow(10, 1.5)
    binCount = frame.binCount
    bands = NoiseBands(frame: frame, sampleRate: sampleRate)
    rule = tracking_rule(
      odds: Float(1 + odds), slope: Float(-odds / (1 + odds) / log(2)), memory: Float(pow(0.9, tick / 0.016)),
      least: 0.01, silence: 1e-6)
    let novelty = Float(1 - pow(0.8, tick / 0.016))
    self.novelty = (0..<frame.binCount).map { noise.hasNoise(inBin: $0) ? novelty : 0 }
    switch adaptation {
    case .always: (rise, fall) = (Limits(dB: 3.5, 5.5), Limits(dB: 6.5, 9))
    case .ifCertain: (rise, fall) = (Limits(dB: 5, 7), Limits(dB: 8, 10))
    }
    mustBeNoise = adaptation == .ifCertain
    medianReach = Int((0.5 / tick).rounded())
    meanReach = Int((0.4 / tick).rounded())
    startTicks = max(1, Int((1.5 / tick).rounded()))
  }

  /// Writes γ of a stretch's frames relative to the noise as it was then.
  /// - Parameters:
  ///   - stretch: its frames.
  ///   - context: the frames of the stretch and around it, whose γ relative to the profile is read.
  /// - Returns: whether anything changed.
  func follow(
    _ stretch: Range<Int64>, context: Range<Int64>, _ rows: FrameRows, _ space: TrackingSpace
  ) -> Bool {
    guard !stretch.isEmpty else { return false }
    let own = ticks(of: stretch), all = ticks(of: context), offset = Int(own.lowerBound - all.lowerBound)
    var changes = track(all, context, rows, space)
    changes.takeMedians(reach: medianReach, ignoring: -fall.least...rise.least)
    let texture = texture(of: changes, all, context, rows)
    var hasChanged = false
    var near = 0..<0
    for (index, tick) in zip(offset..., own) {
      let shares = self.shares(of: changes, at: index, texture)
      // Whole pairs: the cepstra need both frames.
      let frames = max(4 * tick, stretch.lowerBound / 2 * 2)..<min(4 * tick + 4, (stretch.upperBound + 1) / 2 * 2)
      guard shares.contains(where: { $0 > 0 }) else {
        for frame in frames { rows.posterior.keep(frame) }
        continue
      }
      hasChanged = true
      let next = max(0, index - meanReach)..<min(all.count, index + meanReach + 1)
      slide(near, to: next, from: all.lowerBound, space)
      near = next
      let details = (0..<bands.count).map { changes[$0, index] - changes.mean($0, over: near) }
      rescale(frames, shares, details, 1 / Float(near.count), rows, space)
    }
    return hasChanged
  }

  /// Returns g of each band.
  private func shares(of changes: NoiseChanges, at tick: Int, _ texture: NoiseTexture?) -> [Float] {
    let shares = (0..<bands.count).map { band in
      let change = changes[band, tick]
      return max(rise.share(of: change), fall.share(of: -change))
    }
    guard let texture, shares.contains(where: { $0 > 0 }) else { return shares }
    let certain = shares.indices.map { band in
      let isPossible = shares[band] > 0 && (!mustBeNoise || changes[band, tick] < Self.largestRise)
      return isPossible ? texture.certainty(of: band, at: tick, changes) : 0
    }
    if mustBeNoise {
      let breadth = texture.breadth(certain)
      return zip(shares, certain).map { $0 * $1 * breadth }
    }
    let risen = shares.indices.filter { shares[$0] > 0 && changes[$0, tick] > 0 }
    let tonal = risen.filter { certain[$0] < 1 }
    // The lowest and the highest band may hold only one harmonic.
    let isHum =
      risen.first == 0 && tonal.allSatisfy { $0 < bands.humCount && changes[$0, tick] < Self.largestHum }
      && tonal.dropFirst().dropLast().allSatisfy { texture.isEven($0, at: tick, changes) }
    if isHum { return shares }
    let (all, noisy) = risen.reduce((0, 0)) { ($0.0 + shares[$1], $0.1 + shares[$1] * certain[$1]) }
    let breadth = texture.ramp(noisy / max(all, .leastNormalMagnitude), 0.5, 0.8)
    return shares.indices.map { shares[$0] * (changes[$0, tick] < 0 ? 1 : certain[$0] * breadth) }
  }

  /// Returns the texture of the bands that change at any tick; nil if none does.
  private func texture(
    of changes: NoiseChanges, _ ticks: Range<Int64>, _ frames: Range<Int64>, _ rows: FrameRows
  ) -> NoiseTexture? {
    let wanted = (0..<bands.count).filter { band in
      (0..<ticks.count).contains { changes[band, $0] > rise.least || changes[band, $0] < -fall.least }
    }
    guard !wanted.isEmpty else { return nil }
    var texture = NoiseTexture(bands: bands, tickCount: ticks.count, reach: 2 * medianReach)
    let measured = rows.posterior.measured
    var power = [Float](repeating: 0, count: binCount)
    var (logs, before) = (power, power)
    for (index, tick) in ticks.enumerated() {
      let first = max(4 * tick, frames.lowerBound), second = max(first, min(4 * tick + 2, frames.upperBound - 1))
      for bin in 0..<binCount {
        unsafe power[bin] = max(Self.leastPower, 0.5 * (measured[first][bin] + measured[second][bin]))
      }
      swap(&logs, &before)
      logs = power
      // The mean of a logarithm and itself.
      unsafe loops.mean_octaves(&logs, power, binCount)
      texture.measure(wanted, at: index, power.span, logs.span, after: before.span, changes)
    }
    return texture
  }

  /// The numbers of the groups of four frames that these frames are in.
  private func ticks(of frames: Range<Int64>) -> Range<Int64> { frames.lowerBound / 4..<(frames.upperBound + 3) / 4 }

  private func measure(_ row: Row, into changes: inout NoiseChanges, at index: Int) {
    let row = unsafe Span(_unsafeStart: row, count: binCount)
    for band in 0..<bands.count { changes[band, index] = bands.mean(band, of: row) }
  }

  // MARK: Λ

  /// Computes r of the ticks, and returns its mean in each band.
  private func track(
    _ ticks: Range<Int64>, _ frames: Range<Int64>, _ rows: FrameRows, _ space: TrackingSpace
  ) -> NoiseChanges {
    let presence = unsafe space.presence
    var level = unsafe space.level
    start(at: ticks.prefix(startTicks), frames, rows, space)
    unsafe presence.update(repeating: 0, count: binCount)
    for tick in ticks {
      let next = unsafe space.octaves[tick]
      unsafe advance(to: tick, from: level, into: next, frames, rows, space)
      unsafe level = next
    }
    let last = unsafe level
    unsafe level = space.level
    unsafe level.update(from: last, count: binCount)
    unsafe presence.update(repeating: 0, count: binCount)
    var changes = NoiseChanges(bandCount: bands.count, tickCount: ticks.count)
    for (index, tick) in ticks.enumerated().reversed() {
      unsafe advance(to: tick, from: level, into: level, frames, rows, space)
      let octaves = unsafe space.octaves[tick]
      unsafe loops.mean_octaves(octaves, level, binCount)
      unsafe measure(octaves, into: &changes, at: index)
    }
    return changes
  }

  /// Computes Λ of a tick from that of the tick before, or after; `next` may be `level`.
  private func advance(
    to tick: Int64, from level: Row, into next: Row, _ frames: Range<Int64>, _ rows: FrameRows, _ space: TrackingSpace
  ) {
    let first = max(4 * tick, frames.lowerBound), second = min(4 * tick + 2, frames.upperBound - 1)
    let measured = rows.posterior.measured
    unsafe loops.follow_noise(
      next, level, space.presence, measured[first], measured[max(first, second)], novelty, rule, binCount)
  }

  /// Sets Λ of each bin before the first tick, from the first ones.
  private func start(
    at ticks: Range<Int64>, _ frames: Range<Int64>, _ rows: FrameRows, _ space: TrackingSpace
  ) {
    let octaves = unsafe space.change, profile = unsafe space.sum
    var levels = NoiseChanges(bandCount: bands.count, tickCount: ticks.count)
    for (index, tick) in ticks.enumerated() {
      let posterior = unsafe rows.posterior.measured[max(4 * tick, frames.lowerBound)]
      unsafe octaves.update(from: posterior, count: binCount)
      unsafe loops.mean_octaves(octaves, posterior, binCount)
      unsafe measure(octaves, into: &levels, at: index)
    }
    let starts = (0..<bands.count).map { band in
      let sorted = (0..<ticks.count).map { levels[band, $0] }.sorted()
      // The mean logarithm of noise is 0.83 octaves below the logarithm of its mean.
      let octaves = sorted[sorted.count / 4] + 0.83
      return octaves > 2 ? octaves : 0
    }
    unsafe space.level.update(repeating: 1, count: binCount)
    guard starts.contains(where: { $0 > 0 }) else { return }
    unsafe spread(starts.map { -$0 }, into: octaves)
    unsafe profile.update(repeating: 1, count: binCount)
    unsafe loops.rescale(space.level, profile, octaves, PriorSNR.largestPosterior, binCount)
  }

  // MARK: Changes

  /// Turns the sum of r over the ticks `old` into that over `new`; both are counted from `first`.
  private func slide(_ old: Range<Int>, to new: Range<Int>, from first: Int64, _ space: TrackingSpace) {
    let sum = unsafe space.sum
    func add(_ ticks: Range<Int>, _ sign: Float) {
      for tick in ticks {
        let row = unsafe space.octaves[first + Int64(tick)]
        for bin in 0..<binCount { unsafe sum[bin] += sign * row[bin] }
      }
    }
    if old.overlaps(new) {
      add(old.upperBound..<new.upperBound, 1)
      add(old.lowerBound..<new.lowerBound, -1)
    } else {
      unsafe sum.update(repeating: 0, count: binCount)
      add(new, 1)
    }
  }

  // MARK: γ

  /// - Parameters:
  ///   - shares: g of each band.
  ///   - details: m of each band, less its slow mean.
  ///   - scale: 1 / the number of ticks in `space.sum`.
  private func rescale(
    _ frames: Range<Int64>, _ shares: [Float], _ details: [Float], _ scale: Float, _ rows: FrameRows,
    _ space: TrackingSpace
  ) {
    let (share, change, sum) = unsafe (space.share, space.change, space.sum)
    unsafe spread(shares, into: share)
    unsafe spread(details, into: change)
    for bin in 0..<binCount {
      let octaves = unsafe share[bin] * (change[bin] + scale * sum[bin])
      unsafe change[bin] = novelty[bin] > 0 ? octaves : 0
    }
    for frame in frames {
      unsafe loops.rescale(
        rows.posterior.change(frame), rows.posterior.measured[frame], change, PriorSNR.largestPosterior, binCount)
    }
  }

  private func spread(_ values: [Float], into row: Row) {
    var target = unsafe MutableSpan(_unsafeStart: row, count: binCount)
    bands.spread(values, into: &target)
  }
}

/// Scratch space for the tracking of a stretch.
final class TrackingSpace: @unchecked Sendable {  // only one stretch is tracked at a time
  /// log2 Λf of each tick, then r.
  let octaves: RowRing
  private let others: RowRing

  init(frame: AnalysisFrame, grid: SegmentGrid) {
    // A stretch with both its contexts; the first and the last tick may be partly outside.
    octaves = RowRing(width: frame.binCount, count: (grid.segmentHops + 2 * grid.trackingHops) / 4 + 3)
    others = RowRing(width: frame.binCount, count: 5)
  }

  /// Λ of the last tick.
  @unsafe var level: Row { unsafe others[0] }
  /// p̄ of the last tick.
  @unsafe var presence: Row { unsafe others[1] }
  /// Any bins' octaves.
  @unsafe var change: Row { unsafe others[2] }
  /// g of each bin.
  @unsafe var share: Row { unsafe others[3] }
  /// The sum of r over the ticks near the current one.
  @unsafe var sum: Row { unsafe others[4] }
}
