import Foundation

/// A table whose rows are printed as they are measured.
struct Table {
  private(set) var failures = 0

  init(title: String) { print("\(title)\n") }

  /// `bound` is the promised value; empty if there is none.
  mutating func row(_ what: String, _ figure: String, _ bound: String, _ isMet: Bool) {
    let verdict = bound.isEmpty ? "" : isMet ? "  ok (\(bound))" : "  MISSED (\(bound))"
    let padding = String(repeating: " ", count: max(1, 58 - what.count))
    print("\(what)\(padding)\(figure)\(verdict)")
    fflush(nil)
    if !isMet { failures += 1 }
  }
}

/// Formats the median of ratios and their range: "1.2 × (1.18–1.31)".
func spread(_ ratios: [Double]) -> String {
  "\(rounded(median(ratios))) × (\(rounded(ratios.min() ?? 0))–\(rounded(ratios.max() ?? 0)))"
}

func median(_ values: [Double]) -> Double {
  let sorted = values.sorted()
  return sorted.isEmpty ? 0 : sorted[sorted.count / 2]
}

/// Formats a number with about three significant digits.
func rounded(_ value: Double) -> Double {
  let step = abs(value) >= 100 ? 1.0 : abs(value) >= 1 ? 100 : 1000
  return (value * step).rounded() / step
}
