import Glibc
import Terms

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

  /// Whether the file, opened as a whole, still has a name and the same length. Costs a system call.
  package var isUnchanged: Bool {
    var status = stat()
    guard unsafe fstat(file.descriptor, &status) == 0 else { return false }
    return status.st_nlink > 0 && Int64(status.st_size) == offset + length
  }

  var descriptor: Int32 { file.descriptor }
}

/// A descriptor with an owner.
private final class OpenFile: Sendable {
  let descriptor: Int32
  let path: String

  init(_ descriptor: Int32, _ path: String) { (self.descriptor, self.path) = (descriptor, path) }

  deinit { FileClosing.close(descriptor) }
}
