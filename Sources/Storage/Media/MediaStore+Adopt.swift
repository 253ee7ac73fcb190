import Glibc

// How a file becomes part of a recording. This order makes a crash harmless:
//
//   1. make the recording's folder, marked as unfinished, and fsync its parent: the rename needs a target folder that
//      is durable
//   2. fsync the file: a rename may reach the disk before the bytes do, and would then name an empty file
//   3. rename: atomic, so a partial file never appears under the final name
//   4. fsync the recording's folder: until then the new name may be lost, and the row must not outlive it
//
// Files that were made from it are synced and renamed before step 4. Only after all four may the row that names the
// file be inserted. The mark is removed once the row is durable.

/// A file that a worker has made from a received file, in a work folder.
package struct MadeFile: Sendable {
  /// Where it is.
  package let path: String
  /// Its name in the recording's folder.
  package let name: String
  /// If it isn't needed, it may be missing, and may be lost in a power failure.
  package let isNeeded: Bool
  /// Its length in bytes, while it is there; nil if it is missing.
  package var byteCount: Int64? { try? FileSystem.length(of: path) }

  /// Describes a file; see the members.
  package init(path: String, name: String, isNeeded: Bool) {
    (self.path, self.name, self.isNeeded) = (path, name, isNeeded)
  }
}

extension MediaStore {
  /// Turns a received file into the file `name` of recording `id`. When this returns, the file survives a power
  /// failure.
  ///
  /// `name` is chosen by the service: it contains no slash and isn't hidden. This takes as long as the disk needs to
  /// write what the system has not yet written. On an error the file is removed, and so is the recording's folder if it
  /// was empty. `made` are files that were made from it, which become the recording's too.
  package func adopt(
    _ file: consuming IncomingFile, as id: RecordingID, name: String, with made: [MadeFile]
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
      for made in made { try add(made, to: id) }
      try FileSystem.syncFolder(folder(of: id))
    } catch {
      // Nothing has been acknowledged yet, so clean up as far as the disk permits.
      for made in made { try? FileSystem.remove(finalPath(of: id, name: made.name)) }
      try? FileSystem.remove(path)
      removeFolderIfUnused(of: id)
      throw error
    }
    return StoredFile(key: ObjectKey(id, name), bytes: file.byteCount, sha256: file.digest())
  }

  private func add(_ made: MadeFile, to id: RecordingID) throws(StorageError) {
    let path = finalPath(of: id, name: made.name)
    do {
      if made.isNeeded { try FileDescriptor(path: made.path, flags: O_RDONLY | O_NOFOLLOW).sync() }
      try FileSystem.rename(made.path, to: path)
    } catch .io(_, _, ENOENT) where !made.isNeeded {}
  }

  /// Returns the content of a file that a job may have written; nil if there is none, or if it is longer than `limit`
  /// bytes.
  package func contents(ofWorkFile path: String, limit: Int64) throws(StorageError) -> [UInt8]? {
    do {
      // A decoder that was taken over may have made something else than a file.
      return try FileSystem.contents(of: path, limit: limit, flags: O_NOFOLLOW | O_NONBLOCK)
    } catch .io(_, _, let number) where [ENOENT, ELOOP, EFBIG].contains(number) {
      return nil
    }
  }

  func finalPath(of id: RecordingID, name: String) -> String {
    precondition(Self.isFileName(name), "the name of a file in one folder")
    return folder(of: id) + "/" + name
  }
}
