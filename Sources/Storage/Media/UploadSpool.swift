/// The bytes of resumable uploads that haven't become recordings. Thread-safe; every call blocks on the disk.
///
/// `MediaStore` keeps them in a folder, which several machines may share. With an S3 interface, the file of the present
/// writer is on the scratch disk, and `UploadBytes.sync` would PUT what has arrived since the last time as an object of
/// its own, before the upload's row says so: an offset that was reported survives the machine.
package protocol UploadSpool: Sendable {
  /// Creates the file of an upload, which must not exist, and makes its name durable.
  func makePart(of id: UploadID) throws(StorageError) -> UploadPart
  /// Opens the file of an upload; returns nil if it doesn't exist.
  func openPart(of id: UploadID) throws(StorageError) -> UploadPart?
  /// Opens what earlier writers have received, up to `offset`, and begins the file of the last of `segments`. Returns
  /// nil if bytes are missing.
  func begin(_ segments: [UploadSegment], at offset: Int64) throws(StorageError) -> UploadBytes?
  /// Returns one file with all bytes of an upload, durable if they are in several files now.
  func join(_ bytes: UploadBytes, of id: UploadID, writer: Int) throws(StorageError) -> UploadPart
  /// Returns the length of the file of an upload, or nil if it doesn't exist.
  func lengthOfPart(of id: UploadID) throws(StorageError) -> Int64?
  /// Removes the file of an upload that had one writer. If this fails, the next start's sweep removes it.
  func removePart(of id: UploadID)
  /// Removes all files of an upload that had several writers.
  func removeParts(of id: UploadID)
}
