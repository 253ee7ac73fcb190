import Glibc

// Whether a band whose level has changed holds noise, or tones that began. Noise is irregular both over the bins of a
// band and from tick to tick. A tone is a peak among the bins, and steady; a hum, whose harmonics fill a band, is
// steady; speech is irregular, but has peaks except in its pauses.
//
//   S[t,b]  = mean of log2 P − log2 of the mean of P, over the bins of b whose P is below the largest γ
//   T[t,b]  = mean of |log2 P[t] − log2 P[t − 1]| over these bins
//   L[t,b]  = mean of log2 P over all bins of b, + 0.4, by which noise's is below log2 of its mean
//   a tick has the texture of noise if S > −0.6, 0.75 < T < 2.2, and |L − m| < 2: noise stays at its level, drums and
//             struck strings decay; at least half of the bins must be below the largest γ, which hides the texture, and
//             L nearer to m than that is
//   c[t,b]  = 0 up to a share of 0.1 of such ticks, 1 from 0.2 on; among those within 1 s whose m is within 3 dB of
//             m[t,b], so that the ticks before a tone begins don't count for the tone; the rest may hold speech
//   h[t,b]  = whether more than half of those ticks have S > −1.3 and L as above: the harmonics of a hum fill a band,
//             a note's don't
//   C[t]    = mean of c over all bands, 0 for those without a change, mapped to 0 up to 0.25 and 1 from 0.45 on,
//             because noise that changes is wide
//
// P and m as in NoiseTracker.swift. For white noise, S is −0.3 and T 1.3, and 81 to 98 % of the ticks of a band have
// S and T of noise. For a tone, a chord, an organ, a string of 55 Hz, a hum, a singer's or a choir's note, 14 dB over
// the noise, it is less than 10 % in each band that they raise by over 5 dB, with few exceptions.
struct NoiseTexture {
  /// log2 of the largest γ.
  private static let largest = log2(PriorSNR.largestPosterior)
  private let bands: NoiseBands
  private let tickCount: Int
  /// Ticks on each side that are judged together.
  private let reach: Int
  /// 1 where a band has the texture of noise, otherwise 0: `[band][tick]`.
  private var noisy: [Int32]
  /// 1 where the power is as even across a band as a hum's.
  private var even: [Int32]

  init(bands: NoiseBands, tickCount: Int, reach: Int) {
    self.bands = bands
    self.tickCount = tickCount
    self.reach = reach
    noisy = [Int32](repeating: 0, count: bands.count * tickCount)
    even = noisy
  }

  /// Notes the texture of some bands at a tick.
  /// - Parameters:
  ///   - power: P of each bin.
  ///   - logs: log2 P of each bin.
  ///   - before: log2 P of each bin at the tick before.
  mutating func measure(
    _ wanted: [Int], at tick: Int, _ power: Span<Float>, _ logs: Span<Float>, after before: Span<Float>,
    _ changes: NoiseChanges
  ) {
    for band in wanted {
      let bins = bands.edges[band]..<bands.edges[band + 1]
      var (sum, total, steps, count, level): (Float, Float, Float, Float, Float) = (0, 0, 0, 0, 0)
      for bin in bins {
        level += logs[bin]
        let isMeasured: Float = power[bin] < PriorSNR.largestPosterior ? 1 : 0
        sum += isMeasured * power[bin]
        total += isMeasured * logs[bin]
        steps += isMeasured * abs(logs[bin] - before[bin])
        count += isMeasured
      }
      let distance = level / Float(bins.count) + 0.4 - changes[band, tick]
      guard tick > 0, 2 * count >= Float(bins.count), abs(distance) < min(2, Self.largest - changes[band, tick]) else {
        continue
      }
      let flatness = total / count - log2(sum / count), roughness = steps / count
      noisy[band * tickCount + tick] = flatness > -0.6 && roughness > 0.75 && roughness < 2.2 ? 1 : 0
      even[band * tickCount + tick] = flatness > -1.3 ? 1 : 0
    }
  }

  /// Returns c of a band at a tick.
  func certainty(of band: Int, at tick: Int, _ changes: NoiseChanges) -> Float {
    ramp(share(of: noisy, band, tick, changes), 0.1, 0.2)
  }

  /// Returns h of a band at a tick.
  func isEven(_ band: Int, at tick: Int, _ changes: NoiseChanges) -> Bool {
    share(of: even, band, tick, changes) > 0.5
  }

  private func share(of marks: [Int32], _ band: Int, _ tick: Int, _ changes: NoiseChanges) -> Float {
    let level = changes[band, tick]
    let ticks = max(0, tick - reach)..<min(tickCount, tick + reach + 1)
    let places = changes.places(of: band, ticks)
    let levels = changes.values.span.extracting(places), marks = marks.span.extracting(places)
    precondition(levels.count == marks.count)
    var (near, both): (Int32, Int32) = (0, 0)
    for index in levels.indices {
      let isNear: Int32 = abs(levels[index] - level) < 1 ? 1 : 0
      near &+= isNear
      both &+= isNear & marks[index]
    }
    return Float(both) / Float(near)
  }

  /// Returns C for the c of all bands, 0 where nothing changed.
  func breadth(_ certainties: [Float]) -> Float {
    ramp(certainties.reduce(0, +) / Float(certainties.count), 0.25, 0.45)
  }

  func ramp(_ value: Float, _ low: Float, _ high: Float) -> Float {
    min(1, max(0, (value - low) / (high - low)))
  }
}
