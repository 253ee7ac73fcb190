import Glibc

// In a folder, an object's key is its path, so finding one costs the making of a string, and the scratch disk is the
// same, so an object begins with a rename.

extension MediaStore: Blobs, UploadSpool {
  /// Returns the file of an object, whether or not it exists. Costs the making of a string.
  package func localFile(_ key: ObjectKey) -> LocalFile { LocalFile(path: path(of: key)) }

  /// Returns the file of an object, whether or not it exists: nothing has to be fetched.
  package func fileAtHand(_ key: ObjectKey) -> LocalFile? { localFile(key) }

  /// Returns the SHA-256 of an object's file, read from the disk; see `Blobs.storedSHA256`.
  package func storedSHA256(
    of key: ObjectKey, _ goesOn: (Int) throws(StorageError) -> Bool
  ) throws(StorageError) -> String? {
    try localFile(key).sha256(fromDisk: true, goesOn)
  }

  /// Returns false: there are no copies.
  package func discardCopy(of key: ObjectKey) -> Bool { false }

  /// Returns bytes of an object's file; nil if there is none.
  package func read(_ key: ObjectKey, _ ranges: [Range<Int64>]) throws(StorageError) -> [[UInt8]]? {
    do {
      let file = try FileDescriptor(path: path(of: key), flags: O_RDONLY)
      var found: [[UInt8]] = []
      for range in ranges { found.append(try file.bytes(range)) }
      return found
    } catch .io(_, _, ENOENT) {
      return nil
    }
  }

  /// Does nothing: the object is here.
  package func fetch(_ key: ObjectKey, _ ranges: [Range<Int64>]) {}

  /// Returns true: the object is here.
  package func isAtHand(_ key: ObjectKey, _ ranges: [Range<Int64>]) -> Bool { true }

  /// Returns the file that an attempt writes its waveform to; nil if each node has its own disk and the job isn't on
  /// this one: then only its progress is known here, and the node that writes it answers for this one. The file may not
  /// exist yet, or may have become an object meanwhile.
  ///
  /// Costs the making of a string in a folder of recordings.
  package func growingWaveform(of token: AttemptToken) -> LocalFile? {
    let folder = workFolder(of: token.job)
    guard hasMedia || FileSystem.isFolder(folder) else { return nil }
    return LocalFile(path: "\(folder)/\(token.workName("pyramid"))")
  }

  func path(of key: ObjectKey) -> String { "\(recordings)/\(key.recording.text)/\(key.name)" }

  /// Turns a file that a job has written on the store's disk into an object, just as durably as an upload.
  ///
  /// With `makesFolder` false, throws if the recording's folder is missing, so that the folder of a deleted recording
  /// isn't created again.
  package func put(_ source: String, as key: ObjectKey, makesFolder: Bool) throws(StorageError) -> StoredFile {
    let path = finalPath(of: key)
    let file = try FileDescriptor(path: source, flags: O_RDONLY)
    let (bytes, sha256) = try file.digest()
    if makesFolder { try makeFolder(of: key.recording) }
    try file.sync()
    try FileSystem.rename(source, to: path)
    try FileSystem.syncFolder(folder(of: key.recording))
    return StoredFile(key: key, bytes: bytes, sha256: sha256)
  }

  /// Turns a file that a job may have written into an object. Not durable, so use it only for files that can be made
  /// again.
  package func offer(_ source: String, as key: ObjectKey) -> Int64? {
    guard let bytes = try? FileSystem.length(of: source) else { return nil }
    do { try FileSystem.rename(source, to: finalPath(of: key)) } catch { return nil }
    return bytes
  }

  /// Removes an object derived from a recording; see `Blobs.delete`.
  package func delete(_ key: ObjectKey) {
    guard !key.mayBeAudio, Self.isFileName(key.name) else { return }
    try? FileSystem.remove(finalPath(of: key))
  }

  /// Removes conversions that a transaction has discarded. Whoever has one open can read it to its end.
  package func deleteDiscarded(_ keys: [ObjectKey]) { for key in keys { delete(key) } }

  /// Removes the objects that the catalog has recorded as no longer needed; see `GarbageCollection`.
  package func removeGarbage(of catalog: Catalog) throws(StorageError) {
    keepReserve()
    try GarbageCollection(catalog: catalog, store: self).run()
  }

  /// Does nothing: whatever fails in a folder is found by the job.
  package func checkReachable() {}

  /// Returns the path of an object that the service writes or removes.
  private func finalPath(of key: ObjectKey) -> String { finalPath(of: key.recording, name: key.name) }
}
