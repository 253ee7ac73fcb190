// DATA/orphaned/ holds what no row and no description explains: it may be somebody's audio, so it is kept until a
// person has looked at it.

extension MediaStore {
  /// How many folders and uploads are kept aside because nothing says what they are. Reads one folder.
  package func orphanCount() -> Int { (try? FileSystem.names(in: orphaned).count) ?? 0 }

  /// Keeps the folder of a recording aside, under its own name.
  func setAside(_ id: RecordingID) throws(StorageError) {
    try FileSystem.rename(folder(of: id), to: orphaned + "/" + id.text)
    try FileSystem.syncFolder(orphaned)
  }

  /// Keeps the bytes of an upload aside, under their own name.
  func setAside(_ id: UploadID) throws(StorageError) {
    try FileSystem.rename(path(ofPart: id), to: orphaned + "/" + id.text + ".part")
    try FileSystem.syncFolder(orphaned)
  }
}
