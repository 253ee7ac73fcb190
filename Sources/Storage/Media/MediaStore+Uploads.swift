import Glibc

// How an upload that came in pieces becomes part of a recording. Its bytes were acknowledged piece by piece, so no
// crash may lose them, and none may leave two recordings:
//
//   1. fsync the part; make the recording's folder, marked as unfinished, fsync the folder it is in
//   2. link the part into the recording's folder under its final name, fsync that folder
//   3. in one transaction: the recording's row, its job's, and the upload's that says what it has become
//   4. describe the recording in its folder, which takes the mark away; unlink the part
//
// Until 3 the part is still there under its own name, and the next start removes the marked folder: the end is tried
// again. After 3 the next start removes the part, which is only a second name for the recording's file.

extension MediaStore {
  /// Makes the part file of an upload, which must not exist, and its name durable.
  package func makePart(of id: UploadID) throws(StorageError) -> UploadPart {
    try checkClaim()
    let part = try UploadPart(path: path(ofPart: id), flags: O_CREAT | O_EXCL)
    do {
      try FileSystem.syncFolder(uploads)
    } catch {
      removePart(of: id)
      throw error
    }
    return part
  }

  /// Opens the part file of an upload; nil where it is gone.
  package func openPart(of id: UploadID) throws(StorageError) -> UploadPart? {
    do {
      return try UploadPart(path: path(ofPart: id), flags: 0)
    } catch .io(_, _, ENOENT) {
      return nil
    }
  }

  /// How many bytes the part file of an upload has; nil where it is gone.
  package func lengthOfPart(of id: UploadID) throws(StorageError) -> Int64? {
    do { return try FileSystem.length(of: path(ofPart: id)) } catch .io(_, _, ENOENT) { return nil }
  }

  /// Removes the part file of an upload. What can't be removed now, the next start's sweep removes.
  package func removePart(of id: UploadID) { try? FileSystem.remove(path(ofPart: id)) }

  /// Makes a whole part the file `name` of recording `id` as well. When it returns, the file survives a power cut.
  ///
  /// The part stays where it is, as another name of the same bytes, to be removed when the recording has its row. On
  /// an error the recording's folder is gone, the part is not.
  package func adopt(_ part: UploadPart, as id: RecordingID, name: String) throws(StorageError) -> StoredFile {
    let path = finalPath(of: id, name: name)
    do {
      let sha256 = try part.digest()
      try part.sync()
      try makeFolder(of: id)
      try FileSystem.link(part.path, to: path)
      try FileSystem.syncFolder(folder(of: id))
      return StoredFile(path: path, name: name, bytes: part.byteCount, sha256: sha256)
    } catch {
      try? FileSystem.remove(path)
      removeFolderIfUnused(of: id)
      throw error
    }
  }

  func path(ofPart id: UploadID) -> String { uploads + "/" + id.text + ".part" }
}
