// Text that is written as bytes: heads, log lines, and documents. Each line of a log and each head of a response is a
// dozen literals and numbers. Appending the UTF-8 of a String takes some 200 instructions, a literal 60; and a divisor
// that isn't a constant takes one of the processor's slowest instructions for each digit.

extension Array<UInt8> {
  /// Appends the UTF-8 of a literal.
  @inlinable
  package mutating func append(literal text: StaticString) {
    unsafe append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Appends a number in decimal digits, with a minus sign if it's negative.
  package mutating func append(decimal number: Int64) {
    append(addingCapacity: 20) { $0.append(decimal: number) }
  }
}
