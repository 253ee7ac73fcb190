import CLinux
import Glibc

/// An open file, closed when its owner is destroyed. Every call blocks.
@safe struct FileDescriptor: ~Copyable {
  let path: String
  private let number: Int32

  /// Opens `path`. Children don't inherit the descriptor. A new file is accessible only to this user.
  init(path: String, flags: Int32) throws(StorageError) {
    number = try retrying("open", path) { unsafe open(path, flags | O_CLOEXEC, 0o600) }
    self.path = path
  }

  deinit {
    // Ignores errors of close(2): where they matter, fsync has already reported them.
    close(number)
  }

  /// Writes all of `bytes` at the current position.
  borrowing func write(_ bytes: Span<UInt8>) throws(StorageError) {
    var done = 0
    while done < bytes.count {
      let rest = bytes.extracting(done...)
      done += try retrying("write", path) {
        unsafe rest.withUnsafeBytes { unsafe Glibc.write(number, $0.baseAddress, $0.count) }
      }
    }
  }

  /// Reads at most `buffer.count` bytes into the start of `buffer`. Returns their number, 0 at the end of the file.
  borrowing func read(into buffer: inout [UInt8]) throws(StorageError) -> Int {
    try retrying("read", path) {
      unsafe buffer.withUnsafeMutableBytes { unsafe Glibc.read(number, $0.baseAddress, $0.count) }
    }
  }

  /// Returns the bytes in a range, fewer if the file ends before.
  borrowing func bytes(_ range: Range<Int64>) throws(StorageError) -> [UInt8] {
    try seek(to: range.lowerBound)
    var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: min(range.count, 256 * 1024)))
    while bytes.count < range.count {
      let count = try read(into: &buffer)
      guard count > 0 else { break }
      bytes += buffer.prefix(min(count, range.count - bytes.count))
    }
    return bytes
  }

  /// Reads the rest of the file, at most `count` bytes of it, and returns their number and their SHA-256 as 64
  /// lower-case hexadecimal digits. Calls `take` with each piece, and returns nil once that returns false. With
  /// `fromDisk`, what the system has of the file in memory isn't believed, and nothing of it is kept there.
  borrowing func digest(
    of count: Int64 = .max, fromDisk: Bool = false, _ take: (Span<UInt8>) throws(StorageError) -> Bool
  ) throws(StorageError) -> (bytes: Int64, sha256: String)? {
    var hash = SHA256()
    var left = count
    var buffer = [UInt8](repeating: 0, count: 256 * 1024)
    while left > 0 {
      if fromDisk { forgetCached() }
      let got = try read(into: &buffer)
      guard got > 0 else { break }
      let piece = buffer.span.extracting(..<Int(min(Int64(got), left)))
      hash.update(piece)
      left -= Int64(piece.count)
      guard try take(piece) else { return nil }
    }
    return (count - left, hash.hexDigest())
  }

  /// Returns the length and the SHA-256 of the rest of the file.
  borrowing func digest() throws(StorageError) -> (bytes: Int64, sha256: String) {
    guard let found = try digest({ (_) throws(StorageError) in true }) else { preconditionFailure("nothing stops it") }
    return found
  }

  /// Appends the rest of another open file, or its first `count` bytes, and returns their number and their SHA-256.
  borrowing func append(
    contentsOf source: borrowing FileDescriptor, bytes count: Int64 = .max
  ) throws(StorageError) -> (bytes: Int64, sha256: String) {
    let copied = try source.digest(of: count) { (piece) throws(StorageError) in
      try write(piece)
      return true
    }
    guard let copied else { preconditionFailure("nothing stops it") }
    return copied
  }

  /// Lets the system forget what it has of the file in memory, so that the disk is read.
  borrowing func forgetCached() { _ = posix_fadvise(number, 0, 0, POSIX_FADV_DONTNEED) }

  /// Sets the position to `offset` from the start.
  borrowing func seek(to offset: Int64) throws(StorageError) {
    _ = try retrying("lseek", path) { lseek(number, Int(offset), SEEK_SET) }
  }

  /// Truncates the file to its first `count` bytes.
  borrowing func truncate(to count: Int64) throws(StorageError) {
    _ = try retrying("ftruncate", path) { ftruncate(number, Int(count)) }
  }

  /// Takes room on the disk for the file's first `count` bytes, and makes it at least that long.
  borrowing func allocate(_ count: Int64) throws(StorageError) {
    let code = posix_fallocate(number, 0, Int(count))
    guard code == 0 else { throw StorageError(errno: code, "posix_fallocate", path) }
  }

  /// Waits until everything written is on disk.
  ///
  /// Isn't retried: after a failed fsync, Linux considers the lost pages clean, and a second fsync would succeed.
  borrowing func sync() throws(StorageError) {
    guard fsync(number) == 0 else { throw StorageError(errno: errno, "fsync", path) }
    FileOperationLog.note(.sync(path))
  }

  /// Has the disk begin to write a part of the file, and waits until it has written `earlier`, for which this was
  /// called before. Makes nothing durable, but leaves little for `sync` to wait for. Must not be retried either: a
  /// failure that it throws isn't reported by `sync` any more.
  borrowing func writeBack(_ bytes: Range<Int64>, after earlier: Range<Int64>) throws(StorageError) {
    for (range, flag) in [(bytes, SYNC_FILE_RANGE_WRITE), (earlier, SYNC_FILE_RANGE_WAIT_BEFORE)]
    where !range.isEmpty {
      let result = sync_file_range(number, off_t(range.lowerBound), off_t(range.count), UInt32(flag))
      // File systems without it don't need it.
      guard result == 0 || [ENOSYS, EINVAL, ESPIPE].contains(errno) else {
        throw StorageError(errno: errno, "sync_file_range", path)
      }
    }
  }

  /// Returns the identity of the open file, even if it has been unlinked.
  borrowing func identity() throws(StorageError) -> FileIdentity {
    var info = stat()
    guard unsafe fstat(number, &info) == 0 else { throw StorageError(errno: errno, "fstat", path) }
    return FileIdentity(info)
  }

  /// Makes the file accessible only to this user, if its disk has modes.
  borrowing func closeToOthers() { _ = fchmod(number, 0o600) }

  /// Takes the file's advisory lock until the file is closed. Returns false if another open file has it.
  borrowing func lock() throws(StorageError) -> Bool {
    if flock(number, LOCK_EX | LOCK_NB) == 0 { return true }
    guard errno == EWOULDBLOCK else { throw StorageError(errno: errno, "flock", path) }
    return false
  }
}

/// Calls a system call that returns −1 on error, and repeats it if a signal interrupted it.
func retrying<Result: SignedInteger>(
  _ operation: String, _ path: String, _ call: () -> Result
) throws(StorageError) -> Result {
  while true {
    let result = call()
    if result >= 0 { return result }
    if errno != EINTR { throw StorageError(errno: errno, operation, path) }
  }
}
