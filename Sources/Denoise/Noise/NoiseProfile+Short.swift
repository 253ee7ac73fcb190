// A profile from a short region. The power of noise in a bin is exponentially distributed, so the mean of a few frames
// is far too low in some bins, where the noise is then let through, and too high in others. The neighbors say more:
//
//   P[k]   mean power of the region's frames, n of them that are independent: n = 1 + (frames − 1) / 2
//   S[k]   mean over 9 bins of the median of P over 17 bins (±167 Hz), divided by (1 − 1 / 9n)³, which is the median of
//          such a mean if its expected value is 1
//   b      = 4 / (n + 4) · max(0, 1 − n / 20)          0 from 0.5 s on, where P alone is better
//   λ[k]   = (1 − b) P[k] + b S[k]
//          = P[k] if P[k] > (1 + 3 / √n) S[k]: a tone, not chance
//
// The median leaves tones out of their neighbors' S. Figures for regions from 50 ms to 1 s are in
// Tests/Benchmarks/denoise.md.
extension NoiseProfile {
  private static let medianReach = 8
  private static let meanReach = 4

  /// Returns λ of one channel.
  /// - Parameters:
  ///   - power: P of each bin.
  ///   - frames: number of frames that P is the mean of; at least 1.
  static func shrunk(_ power: [Float], frames: Int64) -> [Float] {
    let independent = 1 + 0.5 * Float(frames - 1)
    let share = 4 / (independent + 4) * max(0, 1 - independent / 20)
    guard share > 0 else { return power }
    let bias = 1 - 1 / (9 * independent)
    let medians = power.indices.map { bin in
      let sorted = power[near(bin, medianReach, power.count)].sorted()
      return sorted[sorted.count / 2] / (bias * bias * bias)
    }
    let tone = 1 + 3 / independent.squareRoot()
    return power.indices.map { bin in
      let neighbors = medians[near(bin, meanReach, power.count)]
      let smooth = neighbors.reduce(0, +) / Float(neighbors.count)
      return power[bin] > tone * smooth ? power[bin] : (1 - share) * power[bin] + share * smooth
    }
  }

  private static func near(_ bin: Int, _ reach: Int, _ count: Int) -> Range<Int> {
    max(0, bin - reach)..<min(count, bin + reach + 1)
  }
}
