import Glibc

/// What a store says about an object that is there as a whole.
package struct FoundObject: Sendable, Equatable {
  /// The length in bytes.
  package let bytes: Int64
  /// The SHA-256 with which it was put, if the store knows that without reading the object.
  package let sha256: String?

  /// Describes an object.
  package init(bytes: Int64, sha256: String?) { (self.bytes, self.sha256) = (bytes, sha256) }
}

/// Some bytes of an unfinished upload, in one file or object of the old place.
package struct UploadPiece: Sendable, Equatable {
  /// The path in a folder, or the key in a bucket.
  package let key: String
  /// How many bytes count, from the first on.
  package let bytes: Int64
}

/// The media at one end of a move. Thread-safe; every call blocks.
package protocol MovedMedia: Sendable {
  /// What messages call the place: a path, or `s3://BUCKET/PREFIX`.
  var name: String { get }
  /// Whether unfinished uploads are in objects that rows name, and each object is announced before it is put.
  var isBucket: Bool { get }

  // MARK: The old place

  /// The path of the file that is the object itself; nil if the media aren't files.
  func path(of key: String) -> String?

  /// Looks for an object; nil if there is none.
  func find(_ key: String) throws(StorageError) -> FoundObject?

  /// Writes an object to the new file `path`, and returns its length and SHA-256; nil if there is no object. Throws
  /// `.damagedObject` if the content isn't what the store was given.
  func copy(_ key: String, to path: String) throws(StorageError) -> FoundObject?

  // MARK: The new place

  /// Takes an object from another place, unless it has other content than is expected. Returns what the other place
  /// has; nil if it has no such object.
  func take(_ object: ExpectedObject, from other: any MovedMedia) throws(StorageError) -> FoundObject?

  /// Takes the bytes of an unfinished upload, which are in `pieces` of another place. A bucket puts them as `objects`.
  /// Returns false if the other place lacks some.
  func take(
    _ upload: UploadID, _ pieces: [UploadPiece], as objects: [UploadObject], from other: any MovedMedia
  ) throws(StorageError) -> Bool

  /// Writes the description of a recording with audio.
  func describe(_ recording: Recording) throws(StorageError)

  /// Makes all that was taken durable.
  func sync() throws(StorageError)

  // MARK: The identity of shared media

  /// The ID by which a catalog knows the media; nil if they have none.
  func mediaID() throws(StorageError) -> String?

  /// Returns the ID of the media; gives them this one, if any, or a new one, if they have none.
  func makeMediaID(_ id: String?) throws(StorageError) -> String

  /// Whether there are any recordings' files.
  func hasRecordings() throws(StorageError) -> Bool
}

/// The media in a folder, that of one machine or a shared one. A file has its name once it is complete and durable, so
/// one that is there with the right length isn't copied again.
package struct MovedFolder: MovedMedia {
  let store: MediaStore

  /// Describes the media in a folder. `store` has claimed it.
  package init(_ store: MediaStore) { self.store = store }

  /// The path of the folder.
  package var name: String { store.directory }
  /// False.
  package var isBucket: Bool { false }

  /// The path of a file, whether or not it exists.
  package func path(of key: String) -> String? { "\(store.directory)/\(key)" }

  private func path(_ key: String) -> String { "\(store.directory)/\(key)" }

  /// Looks for a file. Costs one system call.
  package func find(_ key: String) throws(StorageError) -> FoundObject? {
    do { return FoundObject(bytes: try FileSystem.length(of: path(key)), sha256: nil) } catch .io(_, _, let number)
      where number == ENOENT || number == ENOTDIR
    { return nil }
  }

  /// Copies a file, and reads it once.
  package func copy(_ key: String, to path: String) throws(StorageError) -> FoundObject? {
    guard try find(key) != nil else { return nil }
    let (bytes, sha256) = try FileSystem.copy(self.path(key), to: path)
    return FoundObject(bytes: bytes, sha256: sha256)
  }

  /// Copies an object into a file that has its name once it is durable.
  package func take(_ object: ExpectedObject, from other: any MovedMedia) throws(StorageError) -> FoundObject? {
    let temporary = temporaryPath()
    defer { try? FileSystem.remove(temporary) }
    guard let found = try other.copy(object.key.description, to: temporary) else { return nil }
    guard object.fault(of: found) == nil else { return found }
    try FileDescriptor(path: temporary, flags: O_RDWR).sync()
    let folder = store.folder(of: object.key.recording)
    try FileSystem.makeFolder(folder)
    try FileSystem.rename(temporary, to: path(object.key.description))
    try FileSystem.syncFolder(folder)
    return found
  }

  /// Joins the bytes of an upload in one file.
  package func take(
    _ upload: UploadID, _ pieces: [UploadPiece], as objects: [UploadObject], from other: any MovedMedia
  ) throws(StorageError) -> Bool {
    let temporary = temporaryPath()
    defer { try? FileSystem.remove(temporary) }
    do {
      let whole = try FileDescriptor(path: temporary, flags: O_WRONLY | O_CREAT | O_EXCL)
      for piece in pieces {
        let copy = temporaryPath()
        defer { try? FileSystem.remove(copy) }
        var path = other.path(of: piece.key)
        if path == nil, try other.copy(piece.key, to: copy) != nil { path = copy }
        guard let path else { return false }
        let source = try FileDescriptor(path: path, flags: O_RDONLY)
        guard try whole.append(contentsOf: source, bytes: piece.bytes).bytes == piece.bytes else { return false }
      }
      try whole.sync()
    } catch .io(_, _, ENOENT) {
      return false
    }
    try FileSystem.rename(temporary, to: store.path(ofPart: upload))
    return true
  }

  /// Named so that the next claim of the folder removes what a killed process left.
  private func temporaryPath() -> String { "\(store.incoming)/\(UUIDv7().text).part" }

  /// Writes the description of a recording beside its audio.
  package func describe(_ recording: Recording) throws(StorageError) { try store.describe(recording) }

  /// Makes the names of all folders and uploads durable.
  package func sync() throws(StorageError) {
    for folder in [store.recordings, store.uploads] { try FileSystem.syncFolder(folder) }
  }

  /// The ID in the folder, if it is a shared one.
  package func mediaID() throws(StorageError) -> String? { try store.knownID() }

  /// Returns the ID of a shared folder; gives it a new one if it has none.
  package func makeMediaID(_ id: String?) throws(StorageError) -> String { try store.sharedID().id }

  /// Whether any recording has a folder here.
  package func hasRecordings() throws(StorageError) -> Bool { try store.hasRecordings() }
}
