import CLinux
import Glibc
import Synchronization

/// Why a file could not be opened or read as content.
package enum FileContentError: Error, Equatable, Sendable {
  /// `open`, `fstat` or `pread` failed with this errno.
  case io(operation: String, path: String, errno: Int32)
  /// The path is a folder, a device, or a pipe.
  case notAFile(path: String)
}

/// A part of a regular file as the content of a response. It owns the descriptor, so the content stays readable if the
/// file is removed; the last copy closes it.
@safe
package final class FileContent: Sendable {
  /// Where the content begins in the file, in bytes.
  package let offset: Int64
  /// The content's length, in bytes.
  package let length: Int64
  private let file: OpenFile

  /// Opens a whole file. Does not follow a symbolic link at the path's end.
  package init(path: String) throws(FileContentError) {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { throw .io(operation: "open", path: path, errno: errno) }
    file = OpenFile(descriptor, path)
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw .io(operation: "fstat", path: path, errno: errno) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .notAFile(path: path) }
    offset = 0
    length = Int64(status.st_size)
  }

  fileprivate init(file: OpenFile, offset: Int64, length: Int64) {
    (self.file, self.offset, self.length) = (file, offset, length)
  }

  /// Returns a part of the content, relative to its own start. Shares the descriptor.
  package func slice(_ range: Range<Int64>) -> FileContent {
    precondition(range.lowerBound >= 0 && range.upperBound <= length, "a slice lies within the content")
    return FileContent(file: file, offset: offset + range.lowerBound, length: Int64(range.count))
  }

  /// Reads a part into memory with blocking calls. Returns fewer bytes if the file was truncated.
  package func read(_ range: Range<Int64>) throws(FileContentError) -> [UInt8] {
    precondition(range.lowerBound >= 0 && range.upperBound <= length, "a part lies within the content")
    var bytes = [UInt8](repeating: 0, count: range.count)
    var filled = 0
    while filled < bytes.count {
      let count = unsafe bytes.withUnsafeMutableBytes { buffer in
        unsafe pread(
          file.descriptor, buffer.baseAddress.map { unsafe $0 + filled }, buffer.count - filled,
          Int(offset + range.lowerBound) + filled)
      }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw .io(operation: "pread", path: file.path, errno: errno) }
      if count == 0 { return Array(bytes.prefix(filled)) }
      filled += count
    }
    return bytes
  }

  var descriptor: Int32 { file.descriptor }
  /// Whether the content is in memory and can be read without blocking.
  var isInMemory: Bool { file.isInMemory }
}

/// A file that exists only in memory (memfd_create(2)), for content that is served repeatedly: `sendfile` passes its
/// pages to the socket, whereas the process's own bytes would be copied for every client.
///
/// It only grows at its end, so content taken from it never changes. After `turnover` bytes it begins another file; the
/// memory of a file is freed when the last content in it is released.
package final class MemoryFile: Sendable {
  private struct State {
    var file: OpenFile?
    var length: Int64 = 0
  }

  private let state = Mutex(State())
  private let turnover: Int64

  /// Creates an empty file, without a descriptor until something is appended.
  package init(turnover: Int = .max) { self.turnover = Int64(turnover) }

  /// Appends bytes and returns them as content, or nil if the system has no descriptor or no memory for them.
  package func append(_ bytes: [UInt8]) -> FileContent? {
    guard let (file, offset) = place(for: bytes.count) ?? place(for: bytes.count, in: .inMemory()) else { return nil }
    var written = 0
    while written < bytes.count {
      let count = unsafe bytes.withUnsafeBytes { buffer in
        unsafe pwrite(
          file.descriptor, buffer.baseAddress.map { unsafe $0 + written }, buffer.count - written,
          Int(offset) + written)
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return nil }
      written += count
    }
    return FileContent(file: file, offset: offset, length: Int64(written))
  }

  /// Returns a position at the end of the current file, or of `next`, which replaces it; nil if there is no file.
  private func place(for count: Int, in next: OpenFile? = nil) -> (OpenFile, Int64)? {
    let (place, replaced) = state.withLock { state in
      let replaced = state.file
      if let next { state = State(file: next) }
      guard let file = state.file, state.length < turnover else { return (nil as (OpenFile, Int64)?, replaced) }
      defer { state.length += Int64(count) }
      return ((file, state.length), replaced)
    }
    // Released here: the last reference closes it.
    return withExtendedLifetime(replaced) { place }
  }
}

/// A descriptor with an owner.
private final class OpenFile: Sendable {
  let descriptor: Int32
  let path: String
  let isInMemory: Bool

  init(_ descriptor: Int32, _ path: String, isInMemory: Bool = false) {
    (self.descriptor, self.path, self.isInMemory) = (descriptor, path, isInMemory)
  }

  deinit { close(descriptor) }

  /// Creates an empty file in memory; nil if the system has no descriptor for it.
  static func inMemory() -> OpenFile? {
    let descriptor = unsafe memfd_create("content", UInt32(MFD_CLOEXEC))
    return descriptor >= 0 ? OpenFile(descriptor, "memory", isInMemory: true) : nil
  }
}
