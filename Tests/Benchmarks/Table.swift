import Foundation

/// Rows of figures, printed as they are measured.
struct Table {
  private(set) var failures = 0

  init(title: String) { print("\(title)\n") }

  /// `bound` says what was promised, empty where nothing was.
  mutating func row(_ what: String, _ figure: String, _ bound: String, _ isMet: Bool) {
    let verdict = bound.isEmpty ? "" : isMet ? "  ok (\(bound))" : "  MISSED (\(bound))"
    let padding = String(repeating: " ", count: max(1, 58 - what.count))
    print("\(what)\(padding)\(figure)\(verdict)")
    fflush(nil)
    if !isMet { failures += 1 }
  }
}

func median(_ values: [Double]) -> Double {
  let sorted = values.sorted()
  return sorted.isEmpty ? 0 : sorted[sorted.count / 2]
}

/// Three significant figures or so.
func rounded(_ value: Double) -> Double {
  let step = abs(value) >= 100 ? 1.0 : abs(value) >= 1 ? 100 : 1000
  return (value * step).rounded() / step
}
