import CLinux
import Glibc

/// Why a file could not be opened or read as content.
package enum FileContentError: Error, Equatable, Sendable {
  /// `open`, `fstat` or `pread` failed with this errno.
  case io(operation: String, path: String, errno: Int32)
  /// A folder, a device, a pipe.
  case notAFile(path: String)
}

/// A part of a regular file as the content of a response. Owns the descriptor, so the content stays readable when the
/// file is removed meanwhile; the last copy closes it.
@safe
package final class FileContent: Sendable {
  /// Where the content begins in the file, in bytes.
  package let offset: Int64
  /// Bytes.
  package let length: Int64
  private let file: OpenFile

  /// The whole of a file. Follows no symbolic link at the path's end.
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

  /// A part of the content, counted from its own beginning. Shares the descriptor.
  package func slice(_ range: Range<Int64>) -> FileContent {
    precondition(range.lowerBound >= 0 && range.upperBound <= length, "a slice lies within the content")
    return FileContent(file: file, offset: offset + range.lowerBound, length: Int64(range.count))
  }

  /// Reads a part into memory, with blocking calls; shorter where the file has been cut.
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
  /// Whether it can be read at once.
  var isInMemory: Bool { file.isInMemory }
}

/// A file that lies in memory alone (memfd_create(2)), for content that is served again and again: `sendfile` gives a
/// socket its pages, where bytes of the process are copied for every client.
///
/// It grows at its end only, so what was taken from it stays as it is. Its memory is free when the last content that
/// lies in it is gone.
package struct MemoryFile: Sendable {
  private var file: OpenFile?
  private var length: Int64 = 0

  /// An empty file; takes a descriptor when there is something in it.
  package init() {}

  /// Adds bytes. Nil where the system has no descriptor or no memory for them.
  package mutating func append(_ bytes: [UInt8]) -> FileContent? {
    if file == nil {
      let descriptor = unsafe memfd_create("content", UInt32(MFD_CLOEXEC))
      if descriptor >= 0 { file = OpenFile(descriptor, "memory", isInMemory: true) }
    }
    guard let file else { return nil }
    var written = 0
    while written < bytes.count {
      let count = unsafe bytes.withUnsafeBytes { buffer in
        unsafe pwrite(
          file.descriptor, buffer.baseAddress.map { unsafe $0 + written }, buffer.count - written,
          Int(length) + written)
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return nil }
      written += count
    }
    defer { length += Int64(written) }
    return FileContent(file: file, offset: length, length: Int64(written))
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
}
