/// The lifecycle of recordings' files in a store: when a file is announced, put and removed.
/// Thread-safe.
///
/// In a folder, a recording's files are in a folder of its own, which is marked as unfinished until the recording has
/// its row. A bucket can't be searched, so there nothing is removed, and nothing is put, before a row of `garbage` says
/// so (Catalog+Objects):
///
///     put      1. the row: unneeded in a day, unless named by then  2. the object  3. the caller's row that names it,
///              in the transaction that deletes the first; it fails if that is due
///     removal  1. the row, in the transaction that deletes the recording  2. DELETE  3. a day later, the collection
///              again, because a PUT that timed out may have been carried out after the DELETE
///
/// Every member blocks, so call it on a worker queue, never on an event loop.
package struct Blobs: Sendable {
  /// The files.
  package let store: any ObjectStore
  /// The folder that they are in; nil if they are in a bucket.
  let folder: MediaStore?
  let catalog: Catalog

  /// Describes files in a store: in the data folder or shared folder `folder`, or in a bucket. `catalog` names them.
  /// For a bucket, it gets the rows that removal needs, also from transactions that delete recordings.
  package init(_ store: any ObjectStore, in folder: MediaStore?, of catalog: Catalog) {
    (self.store, self.folder, self.catalog) = (store, folder, catalog)
    if folder == nil { catalog.nameDeletedObjects() }
  }

  /// Describes files in a folder.
  package init(_ folder: MediaStore, of catalog: Catalog) { self.init(folder.objects, in: folder, of: catalog) }

  /// The descriptions of the recordings.
  package var descriptions: Descriptions { Descriptions(store, in: folder) }

  // MARK: Putting

  /// Moves a file from the scratch disk into the store. When this returns, the object survives a power failure.
  ///
  /// Reads the file once for its SHA-256. After an error the file may be at either place; when the job runs again, it
  /// is rewritten. In a folder, a row of `attempts` that names the key must have been written before.
  ///
  /// `makesFolder`: false throws if nothing is left of the recording, so that a deleted one isn't begun again.
  package func put(_ path: String, as key: ObjectKey, makesFolder: Bool = true) throws(StorageError) -> StoredFile {
    // One that is deleted after this is removed with what was announced.
    if folder == nil, !makesFolder, try catalog.recording(key.recording) == nil {
      throw .noSuchRecording(key.recording)
    }
    try announce([key])
    return try store.put(path, as: key, begins: makesFolder)
  }

  /// Like `put`, but not durable: only for files that can be made again. Returns the object's length in bytes; nil if
  /// there is no such file, or it wasn't stored.
  package func offer(_ path: String, as key: ObjectKey) -> Int64? {
    guard (try? FileSystem.length(of: path)) != nil, (try? announce([key])) != nil else { return nil }
    var new = NewObject(.file(path), as: "\(key)")
    new.isNeeded = false
    return (try? store.put([new], begins: false))?[0]?.bytes
  }

  /// Turns a received file into the first object of a new recording, together with the files that were made from it.
  /// See `put`; on an error nothing is left of the recording.
  package func adopt(
    _ file: consuming IncomingFile, as id: RecordingID, name: String, with made: [MadeFile] = []
  ) throws(StorageError) -> StoredFile {
    let file = file
    return try announcing([name] + made.map(\.name), of: id) { () throws(StorageError) in
      try store.adopt(file, as: id, name: name, with: made)
    }
  }

  /// Turns the bytes of a resumable upload into the first object of a new recording. The part stays until the
  /// recording has its row. On an error nothing is left of the recording.
  package func adopt(_ part: UploadPart, as id: RecordingID, name: String) throws(StorageError) -> StoredFile {
    try announcing([name], of: id) { () throws(StorageError) in try store.adopt(part, as: id, name: name) }
  }

  /// Announces the objects of a new recording and puts them. On an error, removes those that may have been put, unless
  /// the store doesn't answer: then the rows of `garbage` have them removed.
  private func announcing(
    _ names: [String], of id: RecordingID, _ body: () throws(StorageError) -> StoredFile
  ) throws(StorageError) -> StoredFile {
    guard folder == nil else { return try body() }
    let keys = names.map { ObjectKey(id, $0) }
    try announce(keys)
    let start = catalog.clock.now
    do throws(StorageError) {
      let stored = try body()
      // A slow store may have taken most of the day in which they must be named.
      if catalog.clock.seconds(since: start) > 3600 { try announce(keys) }
      return stored
    } catch {
      if !error.isTransient { for key in keys { try? store.delete("\(key)") } }
      throw error
    }
  }

  /// Records that objects may be put into a bucket.
  func announce(_ keys: [ObjectKey]) throws(StorageError) { if folder == nil { try catalog.announce(keys) } }

  // MARK: The store

  /// Runs `deletion`, which deletes rows whose objects will be removed, or ends a job without a result, even on a full
  /// disk. Throws without running it if objects can't be removed from a folder. In a bucket, the rows that it writes
  /// have them removed, now or later.
  package func makingRoom<Result>(
    _ deletion: () throws(StorageError) -> Result
  ) throws(StorageError) -> Result {
    guard let folder else { return try deletion() }
    return try folder.makingRoom(deletion)
  }
}

extension ObjectStore {
  /// Moves a file into the store. In a bucket, it must have been announced.
  func put(_ path: String, as key: ObjectKey, begins: Bool) throws(StorageError) -> StoredFile {
    var new = NewObject(.file(path), as: "\(key)")
    new.wantsSHA256 = true
    return StoredFile(key, try put([new], begins: begins))
  }

  /// Turns a received file into the first object of a recording, together with the files that were made from it. In a
  /// bucket, they must have been announced.
  func adopt(
    _ file: consuming IncomingFile, as id: RecordingID, name: String, with made: [MadeFile] = []
  ) throws(StorageError) -> StoredFile {
    let file = file
    // Nothing is left to discard once it is in the store.
    defer { file.discard() }
    let key = ObjectKey(id, name)
    var audio = NewObject(.file(file.path), as: "\(key)", sha256: file.digest())
    audio.sync = { () throws(StorageError) in try file.sync() }
    return StoredFile(key, try put([audio] + made.map { $0.object(of: id) }, begins: true))
  }

  /// Turns the bytes of a resumable upload into the first object of a recording. The part stays.
  func adopt(_ part: UploadPart, as id: RecordingID, name: String) throws(StorageError) -> StoredFile {
    let key = ObjectKey(id, name)
    var audio = NewObject(.file(part.path), as: "\(key)", sha256: try part.digest())
    audio.sync = { () throws(StorageError) in try part.sync() }
    (audio.keepsFile, audio.parts) = (true, part.objects)
    return StoredFile(key, try put([audio], begins: true))
  }
}

/// A file that became an object: it is durable.
package struct StoredFile: Sendable, Equatable {
  /// The key, for the row that names the file.
  package let key: ObjectKey
  /// Its length in bytes.
  package let bytes: Int64
  /// The SHA-256 as 64 lower-case hexadecimal digits.
  package let sha256: String

  /// Describes an object that a store has.
  package init(key: ObjectKey, bytes: Int64, sha256: String) {
    (self.key, self.bytes, self.sha256) = (key, bytes, sha256)
  }

  fileprivate init(_ key: ObjectKey, _ found: [FoundObject?]) {
    guard let first = found.first, let first, let sha256 = first.sha256 else {
      preconditionFailure("a needed object was put with its SHA-256")
    }
    self.init(key: key, bytes: first.bytes, sha256: sha256)
  }
}

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

  fileprivate func object(of id: RecordingID) -> NewObject {
    var new = NewObject(.file(path), as: "\(ObjectKey(id, name))")
    new.isNeeded = isNeeded
    return new
  }
}
