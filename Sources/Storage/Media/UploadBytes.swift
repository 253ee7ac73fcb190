/// The bytes of a resumable upload that this process receives. Every call blocks on the disk, and maybe on a store;
/// call it from one queue at a time.
package protocol UploadBytes: AnyObject, Sendable {
  /// Number of bytes of the upload, whether or not they are durable.
  var byteCount: Int64 { get }
  /// Whether the upload must be opened again; see `UploadPart`.
  var isBroken: Bool { get }

  /// Appends bytes; see `UploadPart.append`.
  func append(_ bytes: Span<UInt8>) throws(StorageError)

  /// Forgets the bytes after the first `count`. None of them was made durable by `sync`.
  func truncate(to count: Int64) throws(StorageError)

  /// Returns once the first `count` bytes are durable; more may be, if nothing has to name them. After an error, the
  /// upload must be opened again.
  ///
  /// Returns the objects that have become a part of the upload since the last call, which its row must name before the
  /// offset is reported; none in a folder. If the row can't be written, the upload must be opened again.
  func sync(to count: Int64) throws(StorageError) -> [UploadObject]

  /// Returns one file on this machine with all bytes.
  func join() throws(StorageError) -> UploadPart
}

/// An object with some bytes of an unfinished upload: `uploads/<upload>/<name>`. It is never written twice.
package struct UploadObject: Sendable, Hashable {
  /// The upload.
  package let upload: UploadID
  /// The object's name among those of the upload.
  package let name: String
  /// The position of its first byte in the upload.
  package let start: Int64
  /// Number of bytes.
  package let bytes: Int64

  /// Names an object that is about to be put.
  package init(of upload: UploadID, start: Int64, bytes: Int64) {
    self.init(upload: upload, name: "\(start)-\(UUIDv7().text)", start: start, bytes: bytes)
  }

  init(upload: UploadID, name: String, start: Int64, bytes: Int64) {
    (self.upload, self.name, self.start, self.bytes) = (upload, name, start, bytes)
  }

  /// The key in the bucket.
  package var key: String { "uploads/\(upload.text)/\(name)" }

  /// The position after its last byte.
  package var end: Int64 { start + bytes }
}
