/// Formats numbers for sentences.
package enum Words {
  /// "1 frame", "2 frames".
  package static func count(_ number: some BinaryInteger, _ noun: String) -> String {
    number == 1 ? "1 \(noun)" : "\(number) \(noun)s"
  }

  /// Seconds rounded to the millisecond, without a decimal point if whole.
  package static func seconds(_ seconds: Double) -> String {
    let rounded = (seconds * 1000).rounded() / 1000
    return Int64(exactly: rounded).map { "\($0)" } ?? "\(rounded)"
  }
}
