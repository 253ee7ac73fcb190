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
    // The longest number has 19 digits.
    var digits = InlineArray<20, UInt8>(repeating: 0)
    var (start, rest) = (20, number.magnitude)
    repeat {
      start -= 1
      digits[start] = UInt8(truncatingIfNeeded: 0x30 + rest % 10)
      rest /= 10
    } while rest > 0
    if number < 0 { append(0x2d) }
    append(addingCapacity: 20 - start) { [start] output in
      for index in start..<20 { output.append(digits[index]) }
    }
  }
}
