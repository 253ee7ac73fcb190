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
    if number < 0 { append(0x2d) }
    let magnitude = number.magnitude
    // The longest number has 19 digits.
    var (count, power) = (1, UInt64(10))
    while count < 19, magnitude >= power { (count, power) = (count + 1, power &* 10) }
    append(addingCapacity: count) { [count] output in
      unsafe output.withUnsafeMutableBufferPointer { room, initializedCount in
        var rest = magnitude
        for index in (0..<count).reversed() {
          unsafe room[index] = UInt8(truncatingIfNeeded: 0x30 + rest % 10)
          rest /= 10
        }
        initializedCount = count
      }
    }
  }
}
