import Glibc

/// The bytes of a resumable upload in files: those that earlier writers received, and the one that the present writer
/// appends to. Every call blocks on the disk; call it from one queue at a time.
package final class UploadFiles: UploadBytes {
  /// The file of the present writer.
  private let part: UploadPart
  /// The number of bytes before it.
  private let base: Int64
  /// The files with those bytes, in order, and how many of each count.
  private let earlier: [(path: String, count: Int64)]
  /// The path of the file that all are copied into.
  private let wholePath: String

  /// The bytes of one file.
  package convenience init(_ part: UploadPart) { self.init(part, after: [], wholePath: part.path) }

  init(_ part: UploadPart, after earlier: [(path: String, count: Int64)], wholePath: String) {
    (self.part, self.earlier, self.wholePath) = (part, earlier, wholePath)
    base = earlier.reduce(0) { $0 + $1.count }
  }

  /// Number of bytes of the upload, whether or not they are durable.
  package var byteCount: Int64 { base + part.byteCount }

  /// Whether the file must be reopened; see `UploadPart`.
  package var isBroken: Bool { part.isBroken }

  /// Appends bytes; see `UploadPart.append`.
  package func append(_ bytes: Span<UInt8>) throws(StorageError) { try part.append(bytes) }

  /// Forgets the bytes after the first `count`, which are the present writer's.
  package func truncate(to count: Int64) throws(StorageError) {
    precondition(count >= base, "only the present writer's bytes can be dropped")
    try part.truncate(to: count - base)
  }

  /// Waits until the present writer's bytes are on disk; see `UploadPart.sync`.
  package func sync(to count: Int64) throws(StorageError) -> [UploadObject] {
    try part.sync()
    return []
  }

  /// Returns one file with all bytes, durable if they are in several files now.
  package func join() throws(StorageError) -> UploadPart {
    if base == 0 { return part }
    let file = try UploadPart(path: wholePath, flags: O_CREAT | O_TRUNC)
    for (path, count) in earlier + [(part.path, part.byteCount)] {
      try file.append(contentsOf: path, bytes: count)
    }
    try file.sync()
    return file
  }
}
