import Glibc

// Power subtraction: Berouti, Schwartz & Makhoul, "Enhancement of speech corrupted by acoustic noise", ICASSP 1979.
//
//   |S|² = |Y|² − α λ    if that exceeds β λ, else β λ              (λ: the noise profile)
//   α    = 4 − 3/20 SNR, with SNR in dB clamped to −5 … 20 (4.75 … 1)
//   SNR  = 10 log₁₀ (Σ |Y|² / Σ λ) over the frame's bins
//
// As a gain, with γ = |Y|² / λ and β the square of the user's floor:
//
//   G² = max(1 − α / γ, β / γ, β), at most 1
//
// The third term is our addition: as in the other methods, no bin is reduced by more than requested, and a floor of 0
// dB leaves the sound unchanged.
enum SpectralSubtraction {
  /// Returns α for one frame.
  /// - Parameters:
  ///   - posterior: γ of each bin.
  ///   - weights: λ of each bin, divided by the sum.
  static func overSubtraction(posterior: Span<Float>, weights: Span<Float>) -> Float {
    var ratio = 0.0
    for bin in 0..<weights.count { ratio += Double(posterior[bin] * weights[bin]) }
    guard ratio > 0 else { return 4.75 }
    let snr = min(20, max(-5, 10 * log10(ratio)))
    return Float(4 - 3 / 20 * snr)
  }

  /// Returns G, at most 1.
  @inline(__always)
  static func gain(posterior: Float, overSubtraction: Float, floor: Float) -> Float {
    let inverse = 1 / max(posterior, 1e-8)
    let power = floor * floor
    let squared = min(1, max(1 - overSubtraction * inverse, power * max(1, inverse)))
    return min(1, Kernels.squareRoot(squared))
  }
}
