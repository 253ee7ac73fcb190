import CKernels

/// The loops of CKernels, number by number in the same order of operations: the definition of their results.
enum PlainLoops {
  static func larger(_ a: Float, _ b: Float) -> Float { a > b ? a : b }
  static func smaller(_ a: Float, _ b: Float) -> Float { a < b ? a : b }

  static func log2(_ x: Float) -> Float {
    let exponent = Float(Int32(truncatingIfNeeded: x.bitPattern >> 23) - 127)
    let t = Float(bitPattern: x.bitPattern & 0x007f_ffff | 0x3f80_0000) - 1
    let low = 0.442_544_23 - t * 0.275_593_09
    let high = 0.181_925_09 - t * (0.095_925_05 - t * 0.025_827_01)
    return exponent + (t + t * (1 - t) * (low + t * t * high))
  }

  static func exp2(_ x: Float) -> Float {
    let shifted = x + 12_582_912
    let t = x - (shifted - 12_582_912)
    let power = 1 + t * (0.693_124_41 + t * (0.240_241_53 + t * (0.055_905_81 + t * 0.009_580_83)))
    return Float(bitPattern: power.bitPattern &+ shifted.bitPattern << 23)
  }

  static func scaledExponential(_ v: Float) -> Float {
    let low = 1 + v * 0.195_223_9
    let high = 0.033_020_928 + v * (0.001_496_251_8 + v * 0.000_244_866_96)
    let root = 0.865_623_52 / (low + v * v * high)
    let square = root * root
    return v + square * square
  }

  static func cleanedPower(prior: Float, posterior: Float) -> Float {
    let ratio = prior / (1 + prior)
    return smaller(posterior, ratio * scaledExponential(ratio * posterior))
  }

  static func amplitudeGain(prior: Float, posterior: Float) -> Float {
    let limited = larger(posterior, 1e-8), sum = 1 + prior
    let inverse = 1 / (sum * limited), ratio = prior * limited * inverse
    let squared = ratio * scaledExponential(ratio * posterior) * (sum * inverse)
    return smaller(1, squared).squareRoot()
  }

  static func joined(forward: Float, backward: Float, cepstral: Float, share: Float, least: Float) -> Float {
    let directed = 0.5 * log2(forward * backward)
    let joined = directed + share * (cepstral - directed)
    return larger(exp2(smaller(60, larger(joined, -60))), least)
  }

  static func advance(prior: Float, left: Float, entered: Float, _ rule: prior_rule) -> Float {
    let cleaned = cleanedPower(prior: prior, posterior: left)
    return larger(rule.least, rule.memory * cleaned + rule.novelty * larger(0, entered - 1))
  }

  /// Returns the sums of 16 values of a + b around each bin and beyond the last.
  static func bandSums(_ a: [Float], _ b: [Float]) -> [Float] {
    let sums = (-16..<(a.count + 15)).map { (index: Int) -> Float in
      let bin = min(a.count - 1, max(0, index))
      return a[bin] + b[bin]
    }
    return inFours(inFours(sums, apart: 1), apart: 4)
  }

  private static func inFours(_ row: [Float], apart step: Int) -> [Float] {
    (0..<(row.count - 3 * step)).map { index -> Float in
      let first = row[index] + row[index + step], second = row[index + 2 * step] + row[index + 3 * step]
      return first + second
    }
  }

  static func drawn(_ gain: Float, floor: Float, band: Float, _ rule: gate_rule) -> Float {
    let speech = smaller(1, larger(0, rule.slope * (band - rule.least)))
    return floor + (1 - rule.share * (1 - speech)) * (gain - floor)
  }

  static func followNoise(
    level: Float, presence: Float, power: Float, novelty: Float, _ rule: tracking_rule
  ) -> (level: Float, presence: Float) {
    let likely = 1 / (1 + rule.odds * exp2(larger(-60, rule.slope * power / level)))
    let mean = likely + rule.memory * (presence - likely)
    let speech = mean > 0.99 ? smaller(0.99, likely) : likely
    let moved = larger(rule.least, level + novelty * (1 - speech) * (power - level))
    return (power < rule.silence ? level : moved, mean)
  }

  static func meanOctaves(_ a: Float, _ b: Float) -> Float {
    0.5 * log2(larger(a * b, 0.25 * larger(a * a, b * b)))
  }

  static func spreadBands(_ values: [Float], shares: [Float], ends: [Int32]) -> [Float] {
    shares.indices.map { bin in
      let band = ends.firstIndex { bin < $0 } ?? 0
      let step = band + 1 < values.count ? values[band + 1] - values[band] : 0
      return values[band] + shares[bin] * step
    }
  }

  static func limited(_ sample: Float, _ limit: Float) -> Float {
    sample.isFinite ? smaller(limit, larger(-limit, sample)) : 0
  }

  /// Returns a + i b, real and imaginary parts in turn.
  static func pair(_ a: [Float], _ b: [Float]) -> [Float] { zip(a, b).flatMap { [$0, $1] } }

  /// Returns the row as one half of a symmetric sequence.
  static func mirrored(_ row: [Float]) -> [Float] { row + row[1..<(row.count - 1)].reversed() }

  /// Returns four times the power of each bin of the two frames whose transform is z.
  static func pairPower(_ z: [Float]) -> (a: [Float], b: [Float]) {
    let length = z.count / 2
    var a = [4 * (z[0] * z[0])], b = [4 * (z[1] * z[1])]
    for k in 1...(length / 2) {
      let re = z[2 * k], im = z[2 * k + 1], mirroredRe = z[2 * (length - k)], mirroredIm = z[2 * (length - k) + 1]
      a.append((re + mirroredRe) * (re + mirroredRe) + (im - mirroredIm) * (im - mirroredIm))
      b.append((im + mirroredIm) * (im + mirroredIm) + (re - mirroredRe) * (re - mirroredRe))
    }
    return (a, b)
  }

  /// Returns the transform z of two frames with the gains g and h applied.
  static func pairGains(_ z: [Float], _ g: [Float], _ h: [Float]) -> [Float] {
    let length = z.count / 2
    var out = z
    for k in [0, length / 2] { (out[2 * k], out[2 * k + 1]) = (g[k] * z[2 * k], h[k] * z[2 * k + 1]) }
    for k in 1..<(length / 2) {
      let m = length - k, s = 0.5 * (g[k] + h[k]), d = 0.5 * (g[k] - h[k])
      (out[2 * k], out[2 * k + 1]) = (s * z[2 * k] + d * z[2 * m], s * z[2 * k + 1] - d * z[2 * m + 1])
      (out[2 * m], out[2 * m + 1]) = (s * z[2 * m] + d * z[2 * k], s * z[2 * m + 1] - d * z[2 * k + 1])
    }
    return out
  }

  /// Returns a sample as Requantiser.swift defines it, and whether it's beyond full scale.
  static func requantised(
    _ cleaned: Float, original: Float, number: UInt32, scale: Float, dither: Float
  ) -> (sample: Float, isClipped: Bool) {
    let exact = cleaned * scale
    let isSilent = original == 0 && exact.magnitude < 0.5
    let wanted = max(-scale, min(scale, exact + (isSilent ? 0 : dither * triangle(number))))
    return (min(scale - 1, wanted.rounded(.toNearestOrEven)) * (1 / scale), exact.magnitude > scale)
  }

  private static func triangle(_ number: UInt32) -> Float {
    var hash = number &+ 0x7f4a_7c15
    hash = (hash ^ hash >> 16) &* 0x85eb_ca6b
    hash = (hash ^ hash >> 13) &* 0xc2b2_ae35
    hash ^= hash >> 16
    return Float(Int32(hash & 0xffff) + Int32(hash >> 16) - 65_536)
  }
}
