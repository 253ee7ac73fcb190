import Glibc

/// The media in a folder, one machine's or a shared one, as a store. A file has its name once it is complete and
/// durable.
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

  /// Looks for a file. Costs one system call.
  package func look(_ key: String) throws(StorageError) -> FoundObject? {
    try present(file(key)) { (path) throws(StorageError) in
      FoundObject(bytes: try FileSystem.length(of: path), sha256: nil)
    }
  }

  /// Returns the first bytes of a file.
  package func contents(of key: String, limit: Int) throws(StorageError) -> [UInt8]? {
    try present(file(key)) { (path) throws(StorageError) in
      try FileDescriptor(path: path, flags: O_RDONLY).bytes(0..<Int64(limit))
    }
  }

  /// Reads a file; from the disk if `inPieces`.
  package func sha256(
    of key: String, inPieces: Bool, _ goesOn: (Int) throws(StorageError) -> Bool
  ) throws(StorageError) -> String? {
    try FileDescriptor(path: file(key), flags: O_RDONLY).digest(fromDisk: inPieces) { (piece) throws(StorageError) in
      try goesOn(piece.count)
    }?.sha256
  }

  /// Copies a file, and reads it once.
  package func copy(_ key: String, to path: String) throws(StorageError) -> FoundObject? {
    try present(file(key)) { (file) throws(StorageError) in
      let (bytes, sha256) = try FileSystem.copy(file, to: path)
      return FoundObject(bytes: bytes, sha256: sha256)
    }
  }

  /// Writes another store's bytes into a file, which gets its name once they are durable.
  package func take(
    _ pieces: [ObjectPiece], of other: any ObjectStore, as key: String, if isExpected: (FoundObject) -> Bool
  ) throws(StorageError) -> FoundObject? {
    let temporary = temporaryPath()
    defer { try? FileSystem.remove(temporary) }
    let found =
      if pieces.count == 1, pieces[0].range == nil { try other.copy(pieces[0].key, to: temporary) } else {
        try join(pieces, of: other, in: temporary)
      }
    guard let found, isExpected(found) else { return found }
    try FileDescriptor(path: temporary, flags: O_RDWR).sync()
    try rename(temporary, as: key)
    return found
  }

  private func join(
    _ pieces: [ObjectPiece], of other: any ObjectStore, in path: String
  ) throws(StorageError) -> FoundObject? {
    let whole = try FileDescriptor(path: path, flags: O_WRONLY | O_CREAT | O_EXCL)
    var bytes: Int64 = 0
    for piece in pieces {
      let fetched = temporaryPath()
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

  /// Writes a file.
  package func put(_ bytes: [UInt8], as key: String) throws(StorageError) {
    let temporary = temporaryPath()
    defer { try? FileSystem.remove(temporary) }
    let file = try FileDescriptor(path: temporary, flags: O_WRONLY | O_CREAT | O_EXCL)
    try file.write(bytes.span)
    try file.sync()
    try rename(temporary, as: key)
  }

  private func rename(_ temporary: String, as key: String) throws(StorageError) {
    let folder = FileSystem.parent(of: file(key))
    try FileSystem.makeFolder(folder)
    try FileSystem.rename(temporary, to: file(key))
    try FileSystem.syncFolder(folder)
  }

  /// Named so that the next claim of the folder removes what a killed process left.
  private func temporaryPath() -> String { "\(media.incoming)/\(UUIDv7().text).part" }

  /// Removes a file.
  package func delete(_ key: String) throws(StorageError) { _ = try FileSystem.removeFile(file(key)) }

  /// Lists the files whose path begins with `prefix`, in any folder below it.
  package func keys(_ prefix: String, limit: Int) throws(StorageError) -> [String] {
    let folder = FileSystem.parent(of: prefix)
    var keys: [String] = []
    let found = try present(file(folder)) { (path) throws(StorageError) in try FileSystem.names(in: path) }
    for name in found ?? [] where keys.count < limit && "\(folder)/\(name)".hasPrefix(prefix) {
      let key = "\(folder)/\(name)"
      keys += FileSystem.isFolder(file(key)) ? try self.keys(key + "/", limit: limit - keys.count) : [key]
    }
    return keys
  }

  /// Makes the names of all folders and uploads durable.
  package func sync() throws(StorageError) {
    for folder in [media.recordings, media.uploads] { try FileSystem.syncFolder(folder) }
  }

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
