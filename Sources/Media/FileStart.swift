import Glibc

/// A file for small reads, mostly of its first bytes.
@safe
package final class FileStart {
  private let descriptor: Int32

  /// Fails if the file can't be opened.
  package init?(path: String) {
    descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
  }

  deinit { close(descriptor) }

  /// Returns `count` bytes, or fewer at the end of the file.
  package func bytes(at offset: Int, count: Int) -> [UInt8] {
    unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, got in
      got = max(unsafe pread(descriptor, buffer.baseAddress, count, off_t(offset)), 0)
    }
  }

  /// Length of the file, in bytes.
  package var length: Int { max(Int(lseek(descriptor, 0, SEEK_END)), 0) }

  /// Returns the length in bytes of the ID3v2 tag at `offset`, or 0 if there is none. Its size has seven bits per byte.
  func tagLength(at offset: Int) -> Int {
    let head = bytes(at: offset, count: 10)
    guard head.count == 10, head.starts(with: "ID3".utf8) else { return 0 }
    return 10 + head[6...].reduce(0) { $0 << 7 | Int($1 & 0x7F) }
  }
}
