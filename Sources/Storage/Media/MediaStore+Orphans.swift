// DATA/orphaned/ contains what no row and no description explains. It may be a user's audio, so it is kept until
// someone has inspected it.

extension MediaStore {
  /// Returns the number of unexplained folders and uploads that were set aside. Reads one folder.
  package func orphanCount() -> Int { (try? FileSystem.names(in: orphaned).count) ?? 0 }

  /// Sets aside a recording's folder, under its own name.
  func setAside(_ id: RecordingID) throws(StorageError) {
    try FileSystem.rename(folder(of: id), to: orphaned + "/" + id.text)
    try FileSystem.syncFolder(orphaned)
  }

  /// Sets aside the bytes of an upload, under their own name.
  func setAside(_ id: UploadID) throws(StorageError) {
    try FileSystem.rename(path(ofPart: id), to: orphaned + "/" + id.text + ".part")
    try FileSystem.syncFolder(orphaned)
  }
}
