/// Where recordings' files are kept, by key. Thread-safe.
///
/// `MediaStore` keeps them in a folder. `S3Blobs`, in a bucket, also keeps those in use in a cache on a local disk,
/// because workers, libsndfile and ffmpeg read files; what it does is noted at each member.
///
/// Every member except `fileAtHand` may block, so call it on a worker queue, never on an event loop.
package protocol Blobs: Sendable {
  /// Moves a file from the scratch disk into the store. When this returns, the object survives a power failure.
  ///
  /// Reads the file once for its SHA-256. After an error the file may be at either place; when the job runs again, it
  /// is rewritten. A row that names the key as unneeded, of `attempts` or `garbage`, must have been written before.
  ///
  /// `makesFolder`: false throws if nothing is left of the recording, so that a deleted one isn't begun again.
  ///
  /// S3: one PUT, or parts and a completion, with the SHA-256; the file becomes the cache's copy. Writes the row of
  /// `garbage` itself. There are no folders there, so with `makesFolder` false it throws if the recording has no row;
  /// if that is deleted later, the row of `garbage` has the object removed.
  func put(_ path: String, as key: ObjectKey, makesFolder: Bool) throws(StorageError) -> StoredFile

  /// Like `put`, but not durable: only for files that can be made again. Returns the object's length in bytes; nil if
  /// there is no such file, or it wasn't stored.
  ///
  /// S3: a PUT whose failure is ignored.
  func offer(_ path: String, as key: ObjectKey) -> Int64?

  /// Turns a received file into the first object of a new recording, together with the files that were made from it.
  /// See `put`; on an error nothing is left of the recording.
  ///
  /// S3: PUTs, all of them finished before this returns.
  func adopt(
    _ file: consuming IncomingFile, as id: RecordingID, name: String, with made: [MadeFile]
  ) throws(StorageError) -> StoredFile

  /// Turns the bytes of a resumable upload into the first object of a new recording. The part stays until the
  /// recording has its row. On an error nothing is left of the recording.
  ///
  /// S3: PUTs of the part's file, which this node has.
  func adopt(_ part: UploadPart, as id: RecordingID, name: String) throws(StorageError) -> StoredFile

  /// Returns a local file with the whole object. If there is no object, no file has its path.
  ///
  /// The file doesn't change, and it must not be changed. A recording's map of its sound is beside its audio.
  ///
  /// Costs the making of a string in a folder. S3: downloads what the cache lacks, with the map, and keeps both there
  /// while the result is held, so ask only for files that will be read.
  func localFile(_ key: ObjectKey) throws(StorageError) -> LocalFile

  /// Returns the local file with the whole object, if it is known without waiting.
  ///
  /// S3: nil unless the cache has all of it.
  func fileAtHand(_ key: ObjectKey) -> LocalFile?

  /// Returns the SHA-256 of an object as it is in the store, as 64 lower-case hexadecimal digits; nil if `goesOn`,
  /// which gets the length of each piece after it was read, returns false. What memory or a cache has of it isn't
  /// believed, and nothing is kept there.
  ///
  /// Throws `.io` with `ENOENT` if there is no object. S3: GETs of 4 MiB.
  func storedSHA256(
    of key: ObjectKey, _ goesOn: (Int) throws(StorageError) -> Bool
  ) throws(StorageError) -> String?

  /// Removes the copy of an object that `localFile` has made, because it seems damaged, so that the next call makes
  /// another one. Returns false if local files are the objects themselves.
  func discardCopy(of key: ObjectKey) -> Bool

  /// Returns the bytes of an object in each range, fewer if it ends before; nil if there is no object. No range is
  /// empty. For small parts of a long object, because the bytes of a bucket's are compared with their SHA-256 only once
  /// all are here.
  ///
  /// S3: fetches the blocks of 64 KiB that the cache lacks.
  func read(_ key: ObjectKey, _ ranges: [Range<Int64>]) throws(StorageError) -> [[UInt8]]?

  /// Gets ranges of an object ready to be read; no error if there is no object. Does nothing in a folder.
  ///
  /// S3: fetches the blocks that the cache lacks, with several requests at a time.
  func fetch(_ key: ObjectKey, _ ranges: [Range<Int64>]) throws(StorageError)

  /// Whether this machine has all bytes of an object in these ranges, so that `read` waits for no other. May read them.
  /// Always true in a folder, even if there is no object.
  ///
  /// S3: true if the cache has the blocks, until they are evicted.
  func isAtHand(_ key: ObjectKey, _ ranges: [Range<Int64>]) -> Bool

  /// Looks for an object. Costs one system call in a folder. S3: a HEAD, unless the cache has the object.
  func look(at key: ObjectKey) -> FileLook

  /// Removes an object that was derived from a recording and that no row names any more; on failure it is removed with
  /// the recording. Never removes the recording's own audio, even if a damaged row names it.
  ///
  /// S3: a DELETE; a row of `garbage` has it repeated after a failure.
  func delete(_ key: ObjectKey)

  /// Removes conversions that a transaction has discarded, so that they take no room until the next collection. Ignores
  /// failures: rows of `garbage` have them removed by that.
  ///
  /// S3: does nothing: a client may still read what it was sent to.
  func deleteDiscarded(_ keys: [ObjectKey])

  /// Removes what an attempt may have put. No row may name it, and the attempt must have ended.
  ///
  /// S3: a DELETE of each key with the attempt's name that a row of `garbage` has.
  func removeResults(of token: AttemptToken, in id: RecordingID)

  /// Removes the objects that rows of `attempts` and `garbage` name and that are due. If that fails, throws and leaves
  /// the rest for the next time.
  ///
  /// S3: DELETEs. It lists only the descriptions of a recording, to see what stays.
  func removeGarbage(of catalog: Catalog) throws(StorageError)

  /// Removes all objects of a recording whose row was deleted. Missing ones aren't an error.
  ///
  /// S3: a DELETE of each key of the recording that a row of `garbage` has. The transaction that deleted the row has
  /// written them there.
  func remove(_ id: RecordingID) throws(StorageError)

  /// Removes what a job left of a recording that it failed to make; keeps, apart, what describes a finished recording.
  func discard(_ id: RecordingID) throws(StorageError)

  /// Throws if objects can't be read or put now, so that a job would fail for no fault of its own. Costs nothing in a
  /// folder.
  ///
  /// S3: a request, if the last one has failed.
  func checkReachable() throws(StorageError)

  /// Runs `deletion`, which deletes rows whose objects will be removed, or ends a job without a result, even on a full
  /// disk. Throws without running it if objects can't be removed.
  ///
  /// S3: just runs it: the rows that it writes have the objects removed, now or later.
  func makingRoom<Result>(_ deletion: () throws(StorageError) -> Result) throws(StorageError) -> Result
}

extension Blobs {
  /// Moves a file from the scratch disk into the store, as the first of a recording's if need be.
  package func put(_ path: String, as key: ObjectKey) throws(StorageError) -> StoredFile {
    try put(path, as: key, makesFolder: true)
  }

  /// Turns a received file into the first object of a new recording.
  package func adopt(
    _ file: consuming IncomingFile, as id: RecordingID, name: String
  ) throws(StorageError) -> StoredFile {
    try adopt(file, as: id, name: name, with: [])
  }

  /// Returns bytes of an object in a range, fewer if it ends before; nil if there is no object.
  package func read(_ key: ObjectKey, _ range: Range<Int64>) throws(StorageError) -> [UInt8]? {
    try read(key, [range])?[0]
  }
}
