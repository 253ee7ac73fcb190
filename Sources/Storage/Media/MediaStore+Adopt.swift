import Glibc

// How a file becomes part of a recording. The order is what makes a crash harmless:
//
//   1. make the recording's folder, marked as unfinished, fsync the folder it is in: the rename needs a place that will
//      still be there
//   2. fsync the file: a rename may reach the disk before the bytes do, and would then name an empty file
//   3. rename: in one step, so no one ever sees half a file under the final name
//   4. fsync the recording's folder: until then the new name may be lost, and the row must never outlive it
//
// Only when all four have succeeded may the row that names the file be inserted. The mark goes when the row is durable.

extension MediaStore {
  /// Makes a received file the file `name` of recording `id`. When it returns, the file survives a power cut.
  ///
  /// `name` is the service's own choice: no slash, not hidden. Takes as long as the disk takes to write what the
  /// system has not written yet. On an error the file is gone, and the recording's folder too if it was empty.
  package func adopt(
    _ file: consuming IncomingFile, as id: RecordingID, name: String
  ) throws(StorageError) -> StoredFile {
    let file = file
    let path = finalPath(of: id, name: name)
    do {
      try makeFolder(of: id)
      try file.move(to: path)
    } catch {
      file.discard()
      removeFolderIfUnused(of: id)
      throw error
    }
    do {
      try FileSystem.syncFolder(folder(of: id))
    } catch {
      // Nothing has been promised yet, so nothing is left behind, as far as the disk allows.
      try? FileSystem.remove(path)
      removeFolderIfUnused(of: id)
      throw error
    }
    return StoredFile(path: path, name: name, bytes: file.byteCount, sha256: file.digest())
  }

  /// Makes a file that a job has written, on the store's disk, the file `name` of recording `id`, with the same care.
  ///
  /// Reads the file once for its SHA-256. On an error it may be at either path; a job's rerun writes it anew.
  ///
  /// With `makesFolder` false, a recording whose folder is gone throws: the folder of one that was deleted meanwhile
  /// never comes back.
  package func adopt(
    path source: String, as id: RecordingID, name: String, makesFolder: Bool = true
  ) throws(StorageError) -> StoredFile {
    let path = finalPath(of: id, name: name)
    let file = try FileDescriptor(path: source, flags: O_RDONLY)
    let (bytes, sha256) = try Self.measure(file)
    if makesFolder { try makeFolder(of: id) }
    try file.sync()
    try FileSystem.rename(source, to: path)
    try FileSystem.syncFolder(folder(of: id))
    return StoredFile(path: path, name: name, bytes: bytes, sha256: sha256)
  }

  /// Makes a file that a job has written, if it has, the file `name` of recording `id`. For what can be made again: a
  /// power cut may take it.
  package func move(_ source: String, to id: RecordingID, name: String) {
    try? FileSystem.rename(source, to: finalPath(of: id, name: name))
  }

  func finalPath(of id: RecordingID, name: String) -> String {
    precondition(Self.isFileName(name), "the name of a file in one folder")
    return folder(of: id) + "/" + name
  }

  /// The length and the SHA-256 of what an open file has from its position on.
  static func measure(_ file: borrowing FileDescriptor) throws(StorageError) -> (bytes: Int64, sha256: String) {
    var hash = SHA256()
    var bytes: Int64 = 0
    var buffer = [UInt8](repeating: 0, count: 256 * 1024)
    while true {
      let count = try file.read(into: &buffer)
      if count == 0 { return (bytes, hash.hexDigest()) }
      hash.update(buffer.span.extracting(..<count))
      bytes += Int64(count)
    }
  }
}
