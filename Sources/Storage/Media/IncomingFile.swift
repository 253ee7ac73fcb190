import Glibc

// @unchecked Sendable: the state belongs to the owner, who passes it from the loop to a worker queue and back, and
// makes no call before the previous one has returned; this handover orders the calls.

/// A file being received: bytes are appended and hashed as they arrive, until a store adopts the file.
///
/// Every call blocks on the disk, so make it on a worker queue, never on an event loop. A file that isn't adopted is
/// removed with the last reference. There is no lock: call it from one queue at a time.
package final class IncomingFile: @unchecked Sendable {
  /// Where the bytes are until adoption.
  package let path: String
  /// Number of bytes appended.
  package private(set) var byteCount: Int64 = 0

  private let file: FileDescriptor
  private var hash = SHA256()
  private var failure: StorageError?
  private var isSettled = false
  /// What the disk was last told to write.
  private var begun: Range<Int64> = 0..<0

  /// Creates the file `path`, which must not exist.
  convenience init(path: String) throws(StorageError) {
    self.init(path: path, file: try FileDescriptor(path: path, flags: O_WRONLY | O_CREAT | O_EXCL))
  }

  /// Appends to `file`, which is open for writing and located at `path`.
  init(path: String, file: consuming FileDescriptor) {
    self.path = path
    self.file = file
  }

  deinit {
    discard()
  }

  /// Appends `bytes`. Throws `.diskFull` if there is no room.
  ///
  /// After an error it isn't known how much was written, so every later call throws the same error.
  package func append(_ bytes: Span<UInt8>) throws(StorageError) {
    precondition(!isSettled, "an incoming file that was adopted or discarded takes no bytes")
    if let failure { throw failure }
    do {
      try file.write(bytes)
      hash.update(bytes)
      byteCount += Int64(bytes.count)
      if byteCount - begun.upperBound >= Self.writeBackBytes {
        try file.writeBack(begun.upperBound..<byteCount, after: begun)
        begun = begun.upperBound..<byteCount
      }
    } catch {
      failure = error
      throw error
    }
  }

  /// The interval in bytes at which the disk is asked to write. At most two intervals are unwritten. Without this, the
  /// `sync` at the end would write everything while the client waits.
  private static let writeBackBytes: Int64 = 16 << 20

  /// Returns the SHA-256 of all bytes so far, as 64 lower-case hexadecimal digits.
  package func digest() -> String {
    hash.hexDigest()
  }

  /// Waits until all bytes are on disk. Throws the error of an append that failed.
  func sync() throws(StorageError) {
    if let failure { throw failure }
    try file.sync()
  }

  /// Removes the file unless it was adopted. May be called repeatedly.
  package func discard() {
    guard !isSettled else { return }
    isSettled = true
    // If this fails, the next start's sweep removes the file.
    try? FileSystem.remove(path)
  }
}
