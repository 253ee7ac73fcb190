import Glibc

// @unchecked Sendable: its owner calls it from one serial queue.

/// The file of a resumable upload: it grows, it may be truncated, and it outlives the process.
///
/// Every call blocks on the disk. There is no lock: call it from one queue at a time.
package final class UploadPart: @unchecked Sendable {
  /// The path of the file.
  package let path: String
  /// Number of bytes.
  package private(set) var byteCount: Int64
  /// The objects that have the same bytes, in order; none in a folder.
  package var objects: [UploadObject] = []

  private let file: FileDescriptor
  /// Why the content after the first `byteCount` bytes is unknown, if it is.
  private var failure: StorageError?
  /// The digest of the first `hashedCount` bytes.
  private var hash = SHA256()
  private var hashedCount: Int64 = 0
  private let isTemporary: Bool

  /// Opens the file `path`, creating it if `flags` say so. A temporary one is removed with the last reference.
  init(path: String, flags: Int32, isTemporary: Bool = false) throws(StorageError) {
    file = try FileDescriptor(path: path, flags: O_RDWR | O_APPEND | flags)
    (self.path, self.isTemporary) = (path, isTemporary)
    byteCount = try FileSystem.length(of: path)
  }

  deinit {
    // If this fails, the next start's sweep removes it.
    if isTemporary { try? FileSystem.remove(path) }
  }

  /// Appends `bytes`. Throws `.diskFull` if there is no room, leaving exactly the bytes that were there before. If
  /// truncating fails as well, every later call throws: the part must then be reopened and truncated.
  package func append(_ bytes: Span<UInt8>) throws(StorageError) {
    if let failure { throw failure }
    do {
      try file.write(bytes)
    } catch {
      // It isn't known how many of the bytes were written.
      do { try file.truncate(to: byteCount) } catch { failure = error }
      throw error
    }
    if hashedCount == byteCount {
      hash.update(bytes)
      hashedCount += Int64(bytes.count)
    }
    byteCount += Int64(bytes.count)
  }

  /// Appends the first `count` bytes of a file. Throws if it has fewer.
  package func append(contentsOf path: String, bytes count: Int64) throws(StorageError) {
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    let source = try FileDescriptor(path: path, flags: 0)
    var left = count
    while left > 0 {
      let read = try source.read(into: &buffer)
      guard read > 0 else { throw .io(operation: "read", path: path, errno: EIO) }
      let taken = min(Int64(read), left)
      try append(buffer.span.extracting(..<Int(taken)))
      left -= taken
    }
  }

  /// Truncates the part to its first `count` bytes.
  package func truncate(to count: Int64) throws(StorageError) {
    precondition(0...byteCount ~= count, "a part is cut back within what it has")
    guard count < byteCount else { return }
    try file.truncate(to: count)
    byteCount = count
    guard hashedCount > count else { return }
    hash = SHA256()
    hashedCount = 0
  }

  /// Waits until all bytes are on disk. After an error it isn't known which are, so the part must not be used again.
  package func sync() throws(StorageError) {
    if let failure { throw failure }
    try file.sync()
  }

  /// Whether the part must be reopened.
  package var isBroken: Bool { failure != nil }

  /// Returns the SHA-256 of all bytes, as 64 lower-case hexadecimal digits.
  ///
  /// Rereads bytes that weren't hashed on arrival: all of them after a restart or a truncation.
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
