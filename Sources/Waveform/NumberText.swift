// Numbers to text, fast: a million-number answer is a table look-up and one 8-byte store a number.
//
// An entry of the table holds the number's text and a comma in its lowest bytes (first character lowest), and their
// count in its highest byte: "-32768," is 7 characters, so 8 bytes hold both. The store writes all 8; the next number
// overwrites what was too much. 512 KiB, made once. Measured: 1–2 ns a number, against 14 for digits one by one.

enum NumberText {
  /// The entry for `value` is at `Int(UInt16(bitPattern: value))`.
  private static let signed: [UInt64] = (0...UInt16.max).map { entry(Int(Int16(bitPattern: $0))) }

  /// For 0 … 65535.
  private static let unsigned: [UInt64] = (0...UInt16.max).map { entry(Int($0)) }

  /// Appends "1,-2,3", no comma at the end.
  static func append(_ numbers: Span<Int16>, to text: inout [UInt8]) {
    let table = signed
    append(count: numbers.count, to: &text) { table[Int(UInt16(bitPattern: numbers[$0]))] }
  }

  /// Appends "1,2,3", no comma at the end.
  static func append(_ numbers: Span<UInt16>, to text: inout [UInt8]) {
    let table = unsigned
    append(count: numbers.count, to: &text) { table[Int(numbers[$0])] }
  }

  @inline(__always)
  private static func append(count: Int, to text: inout [UInt8], _ entry: (Int) -> UInt64) {
    guard count > 0 else { return }
    var end = text.count
    text.append(contentsOf: repeatElement(0, count: 7 * count + 1))
    var span = text.mutableSpan
    // Unsafe in general, since not every byte makes an Element; here each does. The stores are bounds-checked.
    var bytes = unsafe span.mutableBytes
    for index in 0..<count {
      let word = entry(index)
      bytes.storeBytes(of: word.littleEndian, toByteOffset: end, as: UInt64.self)
      end += Int(word >> 56)
    }
    text.removeLast(text.count - end + 1)
  }

  private static func entry(_ value: Int) -> UInt64 {
    var word: UInt64 = 0
    var length: UInt64 = 0
    for byte in "\(value),".utf8 {
      word |= UInt64(byte) << (8 * length)
      length += 1
    }
    return word | length << 56
  }
}
