/// Names for how much noise is taken away: decibels that it is turned down by at the most.
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
