import Glibc

// How a resumable upload becomes part of a recording. Its bytes were acknowledged piece by piece, so a crash must not
// lose any, nor leave two recordings:
//
//   1. fsync the part; make the recording's folder, marked as unfinished, and fsync its parent
//   2. link the part into the recording's folder under its final name, and fsync that folder
//   3. in one transaction, write the rows of the recording and its jobs, and the recording into the upload's row
//   4. describe the recording in its folder, which removes the mark; unlink the part
//
// Before step 3 the part still exists under its own name, and the next start removes the marked folder, so the upload
// can be completed again. After step 3, the next start removes the part, which is only a second name for the
// recording's file.

extension MediaStore {
  /// Creates the part file of an upload, which must not exist, and makes its name durable.
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

  /// Opens the part file of an upload; returns nil if it doesn't exist.
  package func openPart(of id: UploadID) throws(StorageError) -> UploadPart? {
    do {
      return try UploadPart(path: path(ofPart: id), flags: 0)
    } catch .io(_, _, ENOENT) {
      return nil
    }
  }

  /// Returns the length of the part file of an upload, or nil if it doesn't exist.
  package func lengthOfPart(of id: UploadID) throws(StorageError) -> Int64? {
    do { return try FileSystem.length(of: path(ofPart: id)) } catch .io(_, _, ENOENT) { return nil }
  }

  /// Removes the part file of an upload. If this fails, the next start's sweep removes it.
  package func removePart(of id: UploadID) { try? FileSystem.remove(path(ofPart: id)) }

  /// Also makes a complete part the file `name` of recording `id`. When this returns, the file survives a power
  /// failure.
  ///
  /// The part stays as another name of the same bytes; remove it once the recording has its row. On an error, the
  /// recording's folder is removed but the part isn't.
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
