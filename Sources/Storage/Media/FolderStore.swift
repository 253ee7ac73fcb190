import Glibc

// How files become objects of a recording. This order makes a crash harmless:
//
//   1. make the recording's folder, marked as unfinished, and fsync its parent: the rename needs a target folder that
//      is durable
//   2. fsync the file: a rename may reach the disk before the bytes do, and would then name an empty file
//   3. rename: atomic, so a partial file never appears under the final name
//   4. fsync the recording's folder: until then the new name may be lost, and the row must not outlive it
//
// Files that are put together are synced and renamed before step 4. Only after all four may the row that names them be
// inserted. The mark is removed once the row is durable.

/// The media in a folder, one machine's or a shared one, as a store. A file has its name once it is complete and
/// durable. The scratch disk is the same, so an object begins with a rename.
package struct FolderStore: ObjectStore {
  /// The folder.
  package let media: MediaStore

  /// Describes the media in a folder. To write, `media` must have claimed it.
  package init(_ media: MediaStore) { self.media = media }

  /// The path of the folder.
  package var name: String { media.directory }

  private func file(_ key: String) -> String { "\(media.directory)/\(key)" }

  /// Returns the path of a file, whether or not it exists.
  package func path(of key: String) -> String? { file(key) }

  // MARK: Putting

  /// Gives files their names, in the order above. On an error, nothing new is left in the folder.
  package func put(_ objects: [NewObject], begins: Bool) throws(StorageError) -> [FoundObject?] {
    guard let first = objects.first else { return [] }
    let id = begins ? ObjectKey(first.key)?.recording : nil
    var (found, placed) = ([FoundObject?](), [String]())
    do throws(StorageError) {
      if let id { try media.makeFolder(of: id) }
      for new in objects {
        found.append(try place(new))
        if case .file = new.content, found.last != .some(nil) { placed.append(file(new.key)) }
      }
      if objects.contains(where: \.isNeeded) { try FileSystem.syncFolder(FileSystem.parent(of: file(first.key))) }
      return found
    } catch {
      // Nothing has been acknowledged yet, so clean up as far as the disk permits.
      for path in placed { try? FileSystem.remove(path) }
      if let id { media.removeFolderIfUnused(of: id) }
      throw error
    }
  }

  private func place(_ new: NewObject) throws(StorageError) -> FoundObject? {
    precondition(ObjectKey(new.key) != nil, "the key of a recording's file")
    let path = file(new.key)
    switch new.content {
    case .bytes(let bytes):
      try write(bytes, to: path)
      return FoundObject(bytes: Int64(bytes.count), sha256: nil)
    case .file(let source):
      do throws(StorageError) {
        var sha256 = new.sha256
        if let sync = new.sync {
          try sync()
        } else if new.isNeeded {
          // What a decoder that was taken over has made may be something else than a file.
          let file = try FileDescriptor(path: source, flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
          if new.wantsSHA256, sha256 == nil { sha256 = try file.digest().sha256 }
          try file.sync()
        }
        let bytes = try FileSystem.length(of: source)
        if new.keepsFile { try FileSystem.link(source, to: path) } else { try FileSystem.rename(source, to: path) }
        return FoundObject(bytes: bytes, sha256: sha256)
      } catch {
        guard !new.isNeeded else { throw error }
        return nil
      }
    }
  }

  /// Writes a file through the mark of the unfinished, if there is one: if a file is created and removed for each
  /// recording, ext4 searches longer and longer for a free inode.
  private func write(_ bytes: [UInt8], to path: String) throws(StorageError) {
    let mark = "\(FileSystem.parent(of: path))/\(MediaStore.marker)"
    if media.node == nil, FileSystem.identity(of: mark) != nil,
      let file = try? FileDescriptor(path: mark, flags: O_WRONLY | O_TRUNC | O_NOFOLLOW)
    {
      try file.write(bytes.span)
      try file.sync()
      return try FileSystem.rename(mark, to: path)
    }
    // Each of several processes may be writing the same.
    try FileSystem.replace(path, with: bytes, through: media.node == nil ? nil : media.temporaryPath())
  }

  /// Writes another store's bytes into a file, which gets its name once they are durable.
  package func take(
    _ pieces: [ObjectPiece], of other: any ObjectStore, as key: String, if isExpected: (FoundObject) -> Bool
  ) throws(StorageError) -> FoundObject? {
    // The next claim of the folder removes what a killed process leaves.
    let temporary = media.temporaryPath()
    defer { try? FileSystem.remove(temporary) }
    let found =
      if pieces.count == 1, pieces[0].range == nil { try other.copy(pieces[0].key, to: temporary) } else {
        try join(pieces, of: other, in: temporary)
      }
    guard let found, isExpected(found) else { return found }
    try FileDescriptor(path: temporary, flags: O_RDWR).sync()
    let folder = FileSystem.parent(of: file(key))
    try FileSystem.makeFolder(folder)
    try FileSystem.rename(temporary, to: file(key))
    try FileSystem.syncFolder(folder)
    return found
  }

  private func join(
    _ pieces: [ObjectPiece], of other: any ObjectStore, in path: String
  ) throws(StorageError) -> FoundObject? {
    let whole = try FileDescriptor(path: path, flags: O_WRONLY | O_CREAT | O_EXCL)
    var bytes: Int64 = 0
    for piece in pieces {
      let fetched = media.temporaryPath()
      defer { try? FileSystem.remove(fetched) }
      guard let length = try other.look(piece.key)?.bytes else { return nil }
      let range = piece.range ?? 0..<length
      if other.path(of: piece.key) == nil, try other.copy(piece.key, to: fetched) == nil { return nil }
      let source = try FileDescriptor(path: other.path(of: piece.key) ?? fetched, flags: O_RDONLY)
      try source.seek(to: range.lowerBound)
      let wanted = range.upperBound - range.lowerBound
      guard try whole.append(contentsOf: source, bytes: wanted).bytes == wanted else { return nil }
      bytes += wanted
    }
    return FoundObject(bytes: bytes, sha256: nil)
  }

  /// Makes the names of all folders and uploads durable.
  package func sync() throws(StorageError) {
    for folder in [media.recordings, media.uploads] { try FileSystem.syncFolder(folder) }
  }

  // MARK: Reading

  /// Looks for a file. Costs one system call.
  package func look(_ key: String) throws(StorageError) -> FoundObject? {
    try present(file(key)) { (path) throws(StorageError) in
      FoundObject(bytes: try FileSystem.length(of: path), sha256: nil)
    }
  }

  /// Returns bytes of a file.
  package func read(_ key: ObjectKey, _ ranges: [Range<Int64>]) throws(StorageError) -> [[UInt8]]? {
    try present(media.path(of: key)) { (path) throws(StorageError) in
      let file = try FileDescriptor(path: path, flags: O_RDONLY)
      var found: [[UInt8]] = []
      for range in ranges { found.append(try file.bytes(range)) }
      return found
    }
  }

  /// Returns true: the object is here.
  package func isAtHand(_ key: ObjectKey, _ ranges: [Range<Int64>]) -> Bool { true }

  /// Returns the file of an object, whether or not it exists.
  package func localFile(_ key: ObjectKey) -> LocalFile { LocalFile(path: media.path(of: key)) }

  /// Returns the file of an object, whether or not it exists: nothing has to be fetched.
  package func fileAtHand(_ key: ObjectKey) -> LocalFile? { localFile(key) }

  /// Returns false: there are no copies.
  package func discardCopy(of key: ObjectKey) -> Bool { false }

  /// Returns the first bytes of a file.
  package func contents(of key: String, limit: Int) throws(StorageError) -> [UInt8]? {
    do throws(StorageError) {
      return try present(file(key)) { (path) throws(StorageError) in
        try FileDescriptor(path: path, flags: O_RDONLY).bytes(0..<Int64(limit))
      }
    } catch .io(_, _, let number) where number == EISDIR || number == ELOOP {
      return nil
    }
  }

  /// Reads a file; from the disk if `inPieces`.
  package func sha256(
    of key: String, inPieces: Bool, _ goesOn: (Int) throws(StorageError) -> Bool
  ) throws(StorageError) -> String? {
    try LocalFile(path: file(key)).sha256(fromDisk: inPieces, goesOn)
  }

  /// Copies a file, and reads it once.
  package func copy(_ key: String, to path: String) throws(StorageError) -> FoundObject? {
    try present(file(key)) { (file) throws(StorageError) in
      let (bytes, sha256) = try FileSystem.copy(file, to: path)
      return FoundObject(bytes: bytes, sha256: sha256)
    }
  }

  /// Lists the files whose path begins with `prefix`, in any folder below it. The mark of the unfinished is no object.
  package func keys(_ prefix: String, limit: Int) throws(StorageError) -> [String] {
    let folder = FileSystem.parent(of: prefix)
    var keys: [String] = []
    let found = try present(file(folder)) { (path) throws(StorageError) in try FileSystem.names(in: path) }
    for name in found ?? [] where keys.count < limit && name != MediaStore.marker {
      let key = "\(folder)/\(name)"
      guard key.hasPrefix(prefix) else { continue }
      keys += FileSystem.isFolder(file(key)) ? try self.keys(key + "/", limit: limit - keys.count) : [key]
    }
    return keys
  }

  // MARK: Removing

  /// Removes a file.
  package func delete(_ key: String) throws(StorageError) {
    // A folder in its place, too.
    _ = try present(file(key)) { (path) throws(StorageError) in try FileSystem.remove(path) }
  }

  /// Does nothing: a claim of the folder removes what an earlier process left.
  package func discardUnfinished() {}

  // MARK: The store

  /// False: whatever fails in a folder fails for one file.
  package var isFailing: Bool { false }

  /// Does nothing: whatever fails in a folder is found by the job.
  package func checkReachable() {}

  /// Returns the ID in the folder, if it is a shared one.
  package func mediaID() throws(StorageError) -> String? { try media.knownID() }

  /// Returns the ID of a shared folder; gives it a new one if it has none.
  package func makeMediaID(_ id: String?) throws(StorageError) -> String { try media.sharedID().id }

  /// Returns what `body` returns of a file or folder; nil if that doesn't exist.
  private func present<Value>(
    _ path: String, _ body: (String) throws(StorageError) -> Value
  ) throws(StorageError) -> Value? {
    do throws(StorageError) { return try body(path) } catch .io(_, path, let number)
      where number == ENOENT || number == ENOTDIR
    { return nil }
  }
}

extension MediaStore {
  /// The recordings' files as a store.
  package var objects: FolderStore { FolderStore(self) }
}
