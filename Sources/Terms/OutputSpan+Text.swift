// Text of a known maximum length, such as a response's head or a line of the log, is written into room that is
// reserved once: a literal then takes a few instructions, because its length is known when the code is compiled.

extension OutputSpan<UInt8> {
  /// Appends the UTF-8 of a literal. There must be room for it.
  @inlinable @inline(__always)
  package mutating func append(literal text: StaticString) {
    let count = text.utf8CodeUnitCount
    precondition(count <= freeCapacity, "room must be reserved first")
    unsafe withUnsafeMutableBufferPointer { room, initializedCount in
      guard let start = room.baseAddress else { return }
      unsafe (start + initializedCount).update(from: text.utf8Start, count: count)
      initializedCount += count
    }
  }

  /// Appends bytes. There must be room for them.
  @inlinable @inline(__always)
  package mutating func append(copying bytes: borrowing Span<UInt8>) {
    precondition(bytes.count <= freeCapacity, "room must be reserved first")
    unsafe bytes.withUnsafeBufferPointer { bytes in
      unsafe withUnsafeMutableBufferPointer { room, initializedCount in
        guard let start = room.baseAddress, let source = bytes.baseAddress else { return }
        unsafe (start + initializedCount).update(from: source, count: bytes.count)
        initializedCount += bytes.count
      }
    }
  }

  /// Appends a number in decimal digits, with a minus sign if it's negative. There must be room for it: 20 bytes are
  /// enough for any.
  package mutating func append(decimal number: Int64) {
    if number < 0 { append(0x2d) }
    let magnitude = number.magnitude
    // The longest number has 19 digits.
    var (count, power) = (1, UInt64(10))
    while count < 19, magnitude >= power { (count, power) = (count + 1, power &* 10) }
    precondition(count <= freeCapacity, "room must be reserved first")
    unsafe withUnsafeMutableBufferPointer { [count] room, initializedCount in
      var rest = magnitude
      for index in (initializedCount..<initializedCount + count).reversed() {
        unsafe room[index] = UInt8(truncatingIfNeeded: 0x30 + rest % 10)
        rest /= 10
      }
      initializedCount += count
    }
  }
}
