import CKernels
import Glibc

// The a-priori SNR: decision-directed, forward and backward in time, combined with the one from the cepstrum.
//
//   γ[t]  = min(|Y[t]|² / λ, 1e4)                                            a-posteriori SNR
//   ξf[t] = max(a G²[t−1] γ[t−1] + (1 − a) max(γ[t] − 1, 0), ξmin)           G[t−1] = LSA(ξf[t−1], γ[t−1])
//   ξb[t] = the same from the end, with t + 1 for t − 1
//   ξd[t] = √(ξf[t] ξb[t])
//   ξ[t]  = ξd[t]^0.6 ξc[t]^0.4, at least ξmin                               ξc: see CepstralPrior.swift
//
//   a = 0.98^(hop / 16 ms), 0.985 at a hop of 12 ms
//   in hiss (see Hiss.swift), 0.97 instead of 0.98 if ξmin is −24 dB, and 0.975 if it's −18
//   ξmin = the user's maximum reduction, clamped to −24 … −18 dB
//   without a previous frame, G² γ is max(γ − 1, 0) of the frame itself
//
// ξf is Ephraim & Malah's (1984, equation 51) and reacts to an onset one frame too late. ξb is late in the other
// direction, so their mean preserves onsets and ends: PESQ 1.83 → 1.86, STOI .870 → .884, SI-SDR 10.8 → 11.4 compared
// with ξf alone. A recording is complete when it is cleaned, so the future is available.
//
// ξmin follows the reduction because what it lets through below the floor is inaudible, and what it smooths above the
// floor is musical noise. With a floor of −18 dB, ξmin −25 → −18 dB lowers the log kurtosis ratio from .31 to .23, for
// PESQ 1.827 → 1.822; at −25 dB, −25 → −24 lowers it from .58 to .56 at no cost.
//
// Tried on the 40 clips with a floor of −25 dB and ξd alone (PESQ / STOI / SI-SDR / log kurtosis ratio: 1.864 / .8780 /
// 11.86 / .56), and rejected:
//
//   ξmin −30 dB                                              1.864 / .8779 / 11.87 / .61
//   ξd = (ξf + ξb) / 2                                       1.826 / .8783 / 11.84 / .56
//   their power mean of exponent ¼                           1.856 / .8785 / 11.89 / .56
//   + a fifth (in dB) of γ − 1 over three frames             1.832 / .8816 / 11.89 / .71
//   speech presence by ξ, q = 0.3, gain to its power         1.868 / .8765 / 11.86 / .58
//   presence by ξ around the bin, 7 frames by 5 bins         1.805 / .8702 / 11.70 / .41
//   a floor 12 dB higher with speech in the vicinity         1.864 / .8780 / 11.85 / .56
//   λ relearned where ξ indicates noise, half (in dB)        1.861 / .8775 / 11.86 / .56
//   the same within 1 s                                      1.863 / .8770 / 11.84 / .57
//   amplitudes of χ distribution, μ = 0.7, not 1 (Breithaupt,
//     Krawczyk & Martin, ICASSP 2008), log amplitude         1.868 / .8777 / 11.97 / .68
//   μ = 0.5                                                  1.848 / .8761 / 11.99 / .74
//   μ = 0.5, amplitude                                       1.810 / .8817 / 11.85 / .70
//   half (in dB) of ln (γ − 1) smoothed over 0.15 s in time
//     and 500 Hz in frequency                                1.849 / .8818 / 11.58 / .50
//
// With ξc, 1.890 / .8864 / 12.03 / .47.
//
// The recursions forget: anything more than 0.8 s away has no effect (figures in SegmentGrid.swift). Each bin has its
// own recursion; within a frame, the loop over bins has no dependencies, so it vectorizes.
// `advance_prior` in CKernels is one step of it, and `joined` the last two equations.
struct PriorSNR {
  static let largestPosterior: Float = 1e4

  /// ξmin
  let least: Float
  /// a
  private let memory: Double
  /// What is added to a in hiss.
  private let change: Double

  init(frame: AnalysisFrame, sampleRate: Int, reductionDB: Double) {
    let hopSeconds = Double(frame.hop) / Double(sampleRate)
    memory = pow(0.98, hopSeconds / 0.016)
    let leastDB = -min(24, max(18, reductionDB))
    change = pow(0.99 + leastDB / 1200, hopSeconds / 0.016) - memory
    least = Float(pow(10, leastDB / 10))
  }

  /// Computes ξ of a frame.
  /// - Parameters:
  ///   - frame: the frame.
  ///   - neighbor: the frame before it in the direction of the recursion; nil for the first.
  ///   - hiss: how much of the frame's noise is hiss, from 0 to 1.
  ///   - posterior: γ of both.
  ///   - old: ξ of the neighbor.
  ///   - new: receives ξ; may be `old`.
  @unsafe
  func advance(
    to frame: Int64, from neighbor: Int64?, hiss: Float, _ posterior: PosteriorRows, _ old: Row, into new: Row
  ) {
    let entered = unsafe posterior[frame]
    if let neighbor {
      let memory = memory + Double(hiss) * change
      let rule = prior_rule(least: least, memory: Float(memory), novelty: Float(1 - memory))
      unsafe loops.advance_prior(new, old, posterior[neighbor], entered, rule, posterior.measured.width)
    } else {
      for bin in 0..<posterior.measured.width { unsafe new[bin] = max(entered[bin] - 1, least) }
    }
  }
}
