import Storage

/// A statement's arguments as libpq wants them: bytea in the binary format, everything else as text, whose type the
/// server infers.
@safe struct EncodedArguments {
  /// All values, each with a zero byte behind it.
  private var bytes: [UInt8] = []
  /// Where each value begins, or nil for NULL.
  private var offsets: [Int?] = []
  private var lengths: [Int32] = []
  private var formats: [Int32] = []

  init(_ arguments: [SQLValue]) throws(PostgresError) {
    for argument in arguments {
      switch argument {
      case .null: append(nil, format: 0)
      case .integer(let number): append(String(number).utf8, format: 0)
      // The shortest text that is read as the same number.
      case .real(let number): append(number.description.utf8, format: 0)
      case .text(let text):
        // libpq would take the rest for nothing.
        guard !text.utf8.contains(0) else { throw .nulInText }
        append(text.utf8, format: 0)
      case .blob(let blob): append(blob, format: 1)
      }
    }
  }

  private mutating func append(_ value: (some Collection<UInt8>)?, format: Int32) {
    offsets.append(value == nil ? nil : bytes.count)
    lengths.append(Int32(value?.count ?? 0))
    formats.append(format)
    guard let value else { return }
    bytes += value
    bytes.append(0)
  }

  private mutating func append(_: Void?, format: Int32) { append([UInt8]?.none, format: format) }

  /// Calls `body` with arrays that are valid during the call.
  @unsafe
  func withPointers<Result>(
    _ body: (UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?) -> Result
  ) -> Result {
    unsafe bytes.withUnsafeBytes { buffer in
      let start = unsafe buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
      let values = unsafe offsets.map { offset in unsafe offset.flatMap { unsafe start?.advanced(by: $0) } }
      return unsafe values.withUnsafeBufferPointer { values in
        unsafe lengths.withUnsafeBufferPointer { lengths in
          unsafe formats.withUnsafeBufferPointer { formats in
            unsafe body(values.baseAddress, lengths.baseAddress, formats.baseAddress)
          }
        }
      }
    }
  }
}
