import Glibc

// @unchecked Sendable: the state is the owner's, who passes it from the loop to a worker queue and back, and starts no
// call before the last has returned; that hand-over orders the calls.

/// A file that is being received: bytes are appended and hashed as they come, until the media store adopts it.
///
/// Every call blocks on the disk: worker queues only, never an event loop. What is not adopted is removed when the
/// last reference goes. It has no lock: its owner calls it from one queue at a time.
package final class IncomingFile: @unchecked Sendable {
  /// Where the bytes are meanwhile.
  package let path: String
  /// How many bytes were appended.
  package private(set) var byteCount: Int64 = 0

  private let file: FileDescriptor
  private var hash = SHA256()
  private var failure: StorageError?
  private var isSettled = false

  /// Makes the file `path`, which must not exist.
  convenience init(path: String) throws(StorageError) {
    self.init(path: path, file: try FileDescriptor(path: path, flags: O_WRONLY | O_CREAT | O_EXCL))
  }

  /// Appends to `file`, which is open for writing and found at `path`.
  init(path: String, file: consuming FileDescriptor) {
    self.path = path
    self.file = file
  }

  deinit {
    discard()
  }

  /// Appends `bytes`. Throws `.diskFull` where there is no room.
  ///
  /// After an error nobody knows how much of a piece was written, so it sticks: every later call throws it again.
  package func append(_ bytes: Span<UInt8>) throws(StorageError) {
    precondition(!isSettled, "an incoming file that was adopted or discarded takes no bytes")
    if let failure { throw failure }
    do {
      try file.write(bytes)
    } catch {
      failure = error
      throw error
    }
    hash.update(bytes)
    byteCount += Int64(bytes.count)
  }

  /// SHA-256 of all bytes so far, 64 lower-case hexadecimal digits.
  package func digest() -> String {
    hash.hexDigest()
  }

  /// Removes the file, unless it was adopted. May be called again.
  package func discard() {
    guard !isSettled else { return }
    isSettled = true
    // A part that can't be removed now is removed by the next start's sweep.
    try? FileSystem.remove(path)
  }

  /// Makes the bytes durable and gives the file its new name, which must be on the same disk.
  func move(to newPath: String) throws(StorageError) {
    precondition(!isSettled, "an incoming file is adopted once")
    if let failure { throw failure }
    try file.sync()
    try FileSystem.rename(path, to: newPath)
    isSettled = true
  }
}
