import Glibc

/// Conversion between factors and decibels.
package enum Decibels {
  /// Returns the factor on samples that changes their level by `decibels`.
  package static func factor(_ decibels: Double) -> Double { pow(10, decibels / 20) }

  static func log10(_ value: Double) -> Double { Glibc.log10(value) }
}
