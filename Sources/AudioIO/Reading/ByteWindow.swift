import Glibc
import Terms

/// A window for small forward steps through a file of any size; it reads large pieces.
struct ByteWindow: ~Copyable {
  /// Fits the second-level cache, so that the bytes a read has copied are still there when they are examined.
  private static let usualLength = 1 << 18

  private let descriptor: Int32
  let size: Int64
  private var bytes: [UInt8]
  private var start: Int64 = 0
  private var filled = 0

  /// Opens a file. `length`: bytes per read; use less if the steps skip more than they read.
  init(path: String, length: Int = usualLength) throws(AudioIOError) {
    bytes = [UInt8](repeating: 0, count: length)
    descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system(operation: "open", errno: errno) }
    size = Int64(lseek(descriptor, 0, SEEK_END))
  }

  deinit { close(descriptor) }

  /// Returns `count` bytes (far fewer than the window's length), or nil if the file ends before.
  mutating func bytes(at offset: Int64, count: Int) throws(AudioIOError) -> ArraySlice<UInt8>? {
    guard try reaches(offset, count: count) else { return nil }
    let first = Int(offset - start)
    return bytes[first..<first + count]
  }

  /// Returns four bytes as a big-endian number, or nil if the file ends before.
  @inline(__always)
  mutating func word(at offset: Int64) throws(AudioIOError) -> UInt32? {
    guard try reaches(offset, count: 4) else { return nil }
    let first = Int(offset - start)
    return UInt32(bytes[first]) << 24 | UInt32(bytes[first + 1]) << 16 | UInt32(bytes[first + 2]) << 8
      | UInt32(bytes[first + 3])
  }

  /// Returns the position of the next two bytes that can begin a FLAC frame, 0xFF and 0xF8 or 0xF9, or nil if there are
  /// none. Doesn't look further than one read beyond `limit`.
  mutating func firstSync(from offset: Int64, upTo limit: Int64 = .max) throws(AudioIOError) -> Int64? {
    var offset = offset
    while offset < limit, try reaches(offset, count: 2) {
      if let place = sync(in: Int(offset - start)..<filled - 1) { return start + Int64(place) }
      offset = start + Int64(filled) - 1
    }
    return nil
  }

  private func sync(in range: Range<Int>) -> Int? {
    unsafe bytes.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return nil }
      var place = range.lowerBound
      while place < range.upperBound, let found = unsafe memchr(base + place, 0xFF, range.upperBound - place) {
        place = unsafe base.distance(to: UnsafeRawPointer(found))
        if unsafe bytes[place + 1] & 0xFE == 0xF8 { return place }
        place += 1
      }
      return nil
    }
  }

  @inline(__always)
  private mutating func reaches(_ offset: Int64, count: Int) throws(AudioIOError) -> Bool {
    if offset >= start, offset + Int64(count) <= start + Int64(filled) { return true }
    return try refill(at: offset, count: count)
  }

  private mutating func refill(at offset: Int64, count: Int) throws(AudioIOError) -> Bool {
    let got = unsafe bytes.withUnsafeMutableBytes { unsafe pread(descriptor, $0.baseAddress, $0.count, off_t(offset)) }
    guard got >= 0 else { throw .system(operation: "read", errno: errno) }
    (start, filled) = (offset, got)
    return got >= count
  }
}
