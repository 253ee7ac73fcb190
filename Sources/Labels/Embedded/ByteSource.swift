/// Bytes that are read at random, such as those of a file.
package protocol ByteSource {
  /// The number of bytes.
  var length: Int { get }
  /// Returns the `count` bytes at an offset, or fewer at the end.
  mutating func bytes(at offset: Int, count: Int) -> ArraySlice<UInt8>
}

extension ByteSource {
  /// Returns the `count` bytes at an offset, or nil if the source ends before.
  mutating func whole(at offset: Int, count: Int) -> ArraySlice<UInt8>? {
    guard offset >= 0, count >= 0, offset <= length - count else { return nil }
    let found = bytes(at: offset, count: count)
    return found.count == count ? found : nil
  }
}

/// Bytes in memory.
package struct MemoryBytes: ByteSource {
  private let all: [UInt8]

  /// Creates a source.
  package init(_ bytes: [UInt8]) { all = bytes }

  /// The number of bytes.
  package var length: Int { all.count }

  /// Returns the `count` bytes at an offset, or fewer at the end.
  package func bytes(at offset: Int, count: Int) -> ArraySlice<UInt8> {
    all[min(max(0, offset), all.count)...].prefix(count)
  }
}
