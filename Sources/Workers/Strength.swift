import Denoise

/// Names for how much noise is removed: the maximum reduction in decibels.
package enum Strength: String, Sendable, CaseIterable {
  case gentle, natural, strong

  /// 12, 18 or 25 dB; for `voice`, whose limit also holds for speech, 12, 20 or 30.
  package func reductionDB(_ method: DenoiseMethod) -> Double {
    switch self {
    case .gentle: 12
    case .natural: method == .voice ? 20 : 18
    case .strong: method == .voice ? 30 : 25
    }
  }
}
