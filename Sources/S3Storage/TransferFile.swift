import Glibc
import Storage

/// An open file whose bytes are sent or received, closed when its owner is destroyed. Every call blocks.
@safe final class TransferFile: Sendable {
  private let path: String
  private let descriptor: Int32

  /// Opens a file for reading.
  init(reading path: String) throws(S3Error) {
    self.path = path
    // What operators name may be a pipe; opening that would wait for a writer.
    descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw .file(operation: "open", path: path, errno: errno) }
  }

  /// Creates a file, or empties an existing one. It is accessible only to this user.
  init(creating path: String) throws(S3Error) {
    self.path = path
    descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .file(operation: "open", path: path, errno: errno) }
  }

  deinit { close(descriptor) }

  /// The length in bytes.
  func length() throws(S3Error) -> Int64 {
    var info = stat()
    guard unsafe fstat(descriptor, &info) == 0 else { throw .file(operation: "fstat", path: path, errno: errno) }
    return Int64(info.st_size)
  }

  /// Reads into the start of `buffer` from `offset` on. Returns the number of bytes, 0 at the end.
  @unsafe
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(S3Error) -> Int {
    while true {
      let count = unsafe pread(descriptor, buffer.baseAddress, buffer.count, Int(offset))
      if count >= 0 { return count }
      if errno != EINTR { throw .file(operation: "read", path: path, errno: errno) }
    }
  }

  /// Writes all bytes at `offset`.
  @unsafe
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(S3Error) {
    var done = 0
    while done < bytes.count {
      let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[done...])
      let count = unsafe pwrite(descriptor, rest.baseAddress, rest.count, Int(offset) + done)
      if count < 0, errno != EINTR { throw .file(operation: "write", path: path, errno: errno) }
      done += max(count, 0)
    }
  }

  /// The error if the file has fewer bytes than it had or should have.
  var endsEarly: S3Error { .file(operation: "read", path: path, errno: EIO) }

  /// The error if there is no room for what is to be written.
  var lacksRoom: S3Error { .file(operation: "write", path: path, errno: ENOSPC) }

  /// Removes all bytes.
  func clear() throws(S3Error) {
    guard ftruncate(descriptor, 0) == 0 else { throw .file(operation: "ftruncate", path: path, errno: errno) }
  }

  /// Returns all bytes. Throws if there are more than `limit`.
  func contents(limit: Int) throws(S3Error) -> [UInt8] {
    var (all, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 64 << 10))
    while true {
      let count = try readPiece(&buffer, at: Int64(all.count))
      guard count > 0 else { return all }
      all += buffer.prefix(count)
      guard all.count <= limit else { throw .file(operation: "read", path: path, errno: EFBIG) }
    }
  }

  /// Returns the SHA-256 of a part, in hexadecimal digits. Throws if the file ends before it does.
  func sha256(of range: Range<Int64>) throws(S3Error) -> String {
    var digest = SHA256()
    var buffer = [UInt8](repeating: 0, count: 256 << 10)
    var offset = range.lowerBound
    while offset < range.upperBound {
      let count = min(try readPiece(&buffer, at: offset), Int(clamping: range.upperBound - offset))
      guard count > 0 else { throw endsEarly }
      digest.update(buffer.span.extracting(..<count))
      offset += Int64(count)
    }
    return digest.hexDigest()
  }

  private func readPiece(_ buffer: inout [UInt8], at offset: Int64) throws(S3Error) -> Int {
    while true {
      let count = unsafe pread(descriptor, &buffer, buffer.count, Int(offset))
      if count >= 0 { return count }
      if errno != EINTR { throw .file(operation: "read", path: path, errno: errno) }
    }
  }

  /// Removes a file. A missing one isn't an error.
  static func remove(_ path: String) { _ = unsafe unlink(path) }
}
