import Glibc

// @unchecked Sendable: its owner calls it from one serial queue.

/// The file of an upload that comes in pieces: it grows, it may be cut back, and it outlives the process.
///
/// Every call blocks on the disk. It has no lock: its owner calls it from one queue at a time.
package final class UploadPart: @unchecked Sendable {
  /// Where the bytes are.
  package let path: String
  /// How many bytes there are.
  package private(set) var byteCount: Int64

  private let file: FileDescriptor
  /// Why nobody knows what is behind the first `byteCount` bytes.
  private var failure: StorageError?
  /// Of the first `hashedCount` bytes.
  private var hash = SHA256()
  private var hashedCount: Int64 = 0

  /// Opens the file `path`, which is made where `flags` say so.
  init(path: String, flags: Int32) throws(StorageError) {
    file = try FileDescriptor(path: path, flags: O_RDWR | O_APPEND | flags)
    self.path = path
    byteCount = try FileSystem.length(of: path)
  }

  /// Appends `bytes`. Throws `.diskFull` where there is no room; what was there before stays, and no more. If
  /// truncating fails as well, every later call throws: the part must be opened again and cut back.
  package func append(_ bytes: Span<UInt8>) throws(StorageError) {
    if let failure { throw failure }
    do {
      try file.write(bytes)
    } catch {
      // Nobody knows how much of the piece was written.
      do { try file.truncate(to: byteCount) } catch { failure = error }
      throw error
    }
    if hashedCount == byteCount {
      hash.update(bytes)
      hashedCount += Int64(bytes.count)
    }
    byteCount += Int64(bytes.count)
  }

  /// Drops what is behind the first `count` bytes.
  package func truncate(to count: Int64) throws(StorageError) {
    precondition(0...byteCount ~= count, "a part is cut back within what it has")
    guard count < byteCount else { return }
    try file.truncate(to: count)
    byteCount = count
    guard hashedCount > count else { return }
    hash = SHA256()
    hashedCount = 0
  }

  /// Returns when all bytes are on the disk. After an error nobody knows what is: the part must not be used again.
  package func sync() throws(StorageError) {
    if let failure { throw failure }
    try file.sync()
  }

  /// Whether it must be opened anew.
  package var isBroken: Bool { failure != nil }

  /// SHA-256 of all bytes, 64 lower-case hexadecimal digits.
  ///
  /// Reads again what was not seen coming: all of it after a restart or a cut.
  package func digest() throws(StorageError) -> String {
    var buffer = [UInt8](repeating: 0, count: 256 * 1024)
    if hashedCount < byteCount { try file.seek(to: hashedCount) }
    while hashedCount < byteCount {
      let count = try file.read(into: &buffer)
      guard count > 0 else { throw .io(operation: "read", path: path, errno: EIO) }
      hash.update(buffer.span.extracting(..<count))
      hashedCount += Int64(count)
    }
    return hash.hexDigest()
  }
}
