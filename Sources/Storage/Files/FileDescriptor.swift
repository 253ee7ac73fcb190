import Glibc

/// An open file, closed when its owner goes. Every call blocks.
@safe struct FileDescriptor: ~Copyable {
  let path: String
  private let number: Int32

  /// Opens `path`. Children don't inherit it; files made are for this user alone.
  init(path: String, flags: Int32) throws(StorageError) {
    number = try retrying("open", path) { unsafe open(path, flags | O_CLOEXEC, 0o600) }
    self.path = path
  }

  deinit {
    // What close(2) might still report, fsync has reported before where it matters.
    close(number)
  }

  /// Writes all of `bytes` at the file's position.
  borrowing func write(_ bytes: Span<UInt8>) throws(StorageError) {
    var done = 0
    while done < bytes.count {
      let rest = bytes.extracting(done...)
      done += try retrying("write", path) {
        unsafe rest.withUnsafeBytes { unsafe Glibc.write(number, $0.baseAddress, $0.count) }
      }
    }
  }

  /// Reads at most `buffer.count` bytes into its front; 0 at the end of the file.
  borrowing func read(into buffer: inout [UInt8]) throws(StorageError) -> Int {
    try retrying("read", path) {
      unsafe buffer.withUnsafeMutableBytes { unsafe Glibc.read(number, $0.baseAddress, $0.count) }
    }
  }

  /// Puts the file's position at `offset` from its beginning.
  borrowing func seek(to offset: Int64) throws(StorageError) {
    _ = try retrying("lseek", path) { lseek(number, Int(offset), SEEK_SET) }
  }

  /// Drops what is behind the first `count` bytes.
  borrowing func truncate(to count: Int64) throws(StorageError) {
    _ = try retrying("ftruncate", path) { ftruncate(number, Int(count)) }
  }

  /// Returns when all that was written is on the disk.
  ///
  /// Not retried: after a failed fsync Linux counts the lost pages as clean, and a second one would succeed.
  borrowing func sync() throws(StorageError) {
    guard fsync(number) == 0 else { throw StorageError(errno: errno, "fsync", path) }
  }

  /// The file that is open, whether or not it still has a name.
  borrowing func identity() throws(StorageError) -> FileIdentity {
    var info = stat()
    guard unsafe fstat(number, &info) == 0 else { throw StorageError(errno: errno, "fstat", path) }
    return FileIdentity(info)
  }

  /// Takes the file's advisory lock for as long as it is open; false where another open file has it.
  borrowing func lock() throws(StorageError) -> Bool {
    if flock(number, LOCK_EX | LOCK_NB) == 0 { return true }
    guard errno == EWOULDBLOCK else { throw StorageError(errno: errno, "flock", path) }
    return false
  }
}

/// The result of a system call that says −1 for an error, called again where a signal interrupted it.
func retrying<Result: SignedInteger>(
  _ operation: String, _ path: String, _ call: () -> Result
) throws(StorageError) -> Result {
  while true {
    let result = call()
    if result >= 0 { return result }
    if errno != EINTR { throw StorageError(errno: errno, operation, path) }
  }
}
