import CKernels
import Glibc

// In hiss, a bin is drawn to the floor unless speech stands out around it:
//
//   B[k] = mean of ½ (ξf + ξb) over bins k − 16 … k + 15, about 670 Hz; beyond the ends, the last bin is repeated
//   p    = 0 up to B = −8.5 dB, 1 from −6.5 dB on, and linear between
//   G    ← floor + (1 − hiss (1 − p)) (G − floor)
//
// ξf and ξb as in PriorSNR.swift, where hiss also shortens the memory a. `hiss` is from 0 to 1, and where it's 0,
// everything keeps its bits; see Hiss.swift.
//
// This is the speech-presence factor of OM-LSA (Cohen & Berdugo, "Speech enhancement for non-stationary noise
// environments", Signal Processing 81, 2001), reduced to what pays here: one band instead of two and the whole frame,
// ξ instead of its logarithm, and no probability of each bin. ½ (ξf + ξb) is wide in time, because one of the two lasts
// after an onset and the other before an end.
struct HissGate: Sendable {
  /// Bins of a band, as `band_sums` takes them.
  static let width = 32

  private let least, most: Float

  init() {
    // The sum over the band of ξf + ξb.
    let scale = 2 * Double(Self.width)
    least = Float(scale * pow(10, -0.85))
    most = Float(scale * pow(10, -0.65))
  }

  /// The parameters of `draw_to_floor`.
  func rule(hiss: Float) -> gate_rule { gate_rule(least: least, slope: 1 / (most - least), share: hiss) }
}
