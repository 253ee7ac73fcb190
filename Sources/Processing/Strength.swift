/// Names for how much noise is removed: the maximum reduction in decibels.
package enum Strength: String, Sendable, CaseIterable {
  case gentle, natural, strong

  /// 12, 18 or 25 dB.
  package var reductionDB: Double {
    switch self {
    case .gentle: 12
    case .natural: 18
    case .strong: 25
    }
  }
}
