/// The bytes of resumable uploads that haven't become recordings. Thread-safe; every call blocks on the disk.
///
/// `MediaStore` keeps them in a folder, which several machines may share. `S3Spool` has the file of the present writer
/// on the scratch disk, and `UploadBytes.sync` puts what has arrived since the last time as an object of its own,
/// before the upload's row says so: an offset that was reported survives the machine.
package protocol UploadSpool: Sendable {
  /// Prepares for an upload that is about to get its row.
  func prepare(_ id: UploadID) throws(StorageError)
  /// Opens the file of an upload; returns nil if it doesn't exist. Only if no other process may receive the upload.
  func openPart(of id: UploadID) throws(StorageError) -> UploadPart?
  /// Opens what earlier writers have received, up to `offset`, and begins the file of the last of `segments`. Returns
  /// nil if bytes are missing.
  func begin(_ segments: [UploadSegment], at offset: Int64) throws(StorageError) -> (any UploadBytes)?
  /// Removes the file of an upload that had one writer, whose row is gone or names its recording. If this fails, the
  /// next start's sweep removes it.
  func removePart(of id: UploadID)
  /// Removes all files of such an upload that had several writers.
  func removeParts(of id: UploadID)
}
