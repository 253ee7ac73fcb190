import Glibc

/// The bytes of a resumable upload: those that earlier writers received, and the file that the present writer appends
/// to. Every call blocks on the disk; call it from one queue at a time.
package final class UploadBytes: Sendable {
  /// The file of the present writer.
  private let part: UploadPart
  /// The number of bytes before it.
  private let base: Int64
  /// The files with those bytes, in order, and how many of each count.
  private let earlier: [(path: String, count: Int64)]

  /// The bytes of one file.
  package convenience init(_ part: UploadPart) { self.init(part, after: []) }

  init(_ part: UploadPart, after earlier: [(path: String, count: Int64)]) {
    (self.part, self.earlier) = (part, earlier)
    base = earlier.reduce(0) { $0 + $1.count }
  }

  /// Number of bytes of the upload, whether or not they are durable.
  package var byteCount: Int64 { base + part.byteCount }

  /// Whether the file must be reopened; see `UploadPart`.
  package var isBroken: Bool { part.isBroken }

  /// The file with all bytes; nil if they are in several.
  package var whole: UploadPart? { base == 0 ? part : nil }

  /// Appends bytes; see `UploadPart.append`.
  package func append(_ bytes: Span<UInt8>) throws(StorageError) { try part.append(bytes) }

  /// Forgets the bytes after the first `count`, which are the present writer's.
  package func truncate(to count: Int64) throws(StorageError) {
    precondition(count >= base, "only the present writer's bytes can be dropped")
    try part.truncate(to: count - base)
  }

  /// Waits until the present writer's bytes are on disk; see `UploadPart.sync`.
  package func sync() throws(StorageError) { try part.sync() }

  /// Copies all bytes into one file.
  func copy(to file: UploadPart) throws(StorageError) {
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    for (path, count) in earlier + [(part.path, part.byteCount)] {
      let source = try FileDescriptor(path: path, flags: 0)
      var left = count
      while left > 0 {
        let read = try source.read(into: &buffer)
        guard read > 0 else { throw .io(operation: "read", path: path, errno: EIO) }
        let taken = min(Int64(read), left)
        try file.append(buffer.span.extracting(..<Int(taken)))
        left -= taken
      }
    }
  }
}
