// Text of unknown length that is written as bytes. Appending the UTF-8 of a String takes some 200 instructions, and a
// literal 90; see OutputSpan+Text.swift for what takes less.

extension Array<UInt8> {
  /// Appends the UTF-8 of a literal.
  @inlinable
  package mutating func append(literal text: StaticString) {
    unsafe append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }
}
