// The layout of a bucket, below the prefix of its address:
//
//   recordings/<id>/<name>           a recording's files, named as in a data folder: audio.<ext>, waveform-….pyramid,
//                                    working-….<ext>, converted-….<ext>, and beside a sound its map, <sound>.map
//   recordings/<id>/recording-….json what the catalog says about the recording, by the version of its row
//   uploads/<id>/<name>              some bytes of an unfinished upload; see S3Spool
//   media-id                         the ID by which the catalog knows the bucket; see S3Media
//
// Each object has the field x-amz-meta-sha256. Multipart uploads have a row of `garbage`, too, by which those of killed
// processes are aborted a day later. If the answer to the beginning of one is lost, or a process is killed between that
// and the row, an empty one stays; have the bucket end them after a few days (AbortIncompleteMultipartUpload).
//
// Nothing is removed, and nothing is put, before a row of `garbage` says so (Catalog+Objects):
//
//   put        1. the row: unneeded in a day, unless named by then  2. the object  3. the caller's row that names it,
//              in the transaction that deletes the first; it fails if that is due
//   removal    1. the row, in the transaction that deletes the recording  2. DELETE  3. a day later, the collection
//              again, because a PUT that timed out may have been carried out after the DELETE
//
// A catalog that was restored to an earlier state may not name newer objects, so before anything goes, the latest
// description of the recording is asked too. Nothing else is listed.

import Glibc
import Storage

/// The recordings' files as objects in a bucket, and those in use in a cache. Thread-safe.
///
/// Every member except `fileAtHand` blocks. The store's errors are `.storeUnreachable` if a later call may succeed,
/// `.storeFull` if the bucket is full, and otherwise `.objectStore`.
package final class S3Blobs: Blobs {
  let store: BucketStore
  var client: S3Client { store.client }
  private let probe: StoreProbe
  let cache: BlockCache
  let catalog: Catalog
  private let identity: BucketIdentity?
  private let maps: SoundMaps

  /// Keeps objects in the bucket of `client`. `catalog` gets the rows that removal needs, also from transactions that
  /// delete recordings. Files are put in parts of `partBytes` bytes, a number of MiB from 5 on. `inspector` is the
  /// client that looks if a store that failed works again. `identity` is that of the bucket; without one,
  /// any bucket will do, for tests. `senders` threads help those that put long files.
  package init(
    _ client: S3Client, inspector: S3Client? = nil, cache: BlockCache, catalog: Catalog, partBytes: Int64 = 64 << 20,
    identity: BucketIdentity? = nil, senders: Int = 12
  ) {
    precondition(partBytes >= S3Client.leastPartBytes, "parts have at least 5 MiB")
    probe = StoreProbe(inspector ?? client, for: client, identity: identity, catalog: catalog)
    (self.cache, self.catalog, self.identity) = (cache, catalog, identity)
    store = BucketStore(
      client, catalog: catalog, partBytes: partBytes,
      threads: ThreadPool(label: "object parts", most: senders, mostOfCaller: 2))
    maps = SoundMaps(client, cache: cache)
    catalog.nameDeletedObjects()
  }

  // MARK: Putting

  /// Puts a file as an object; see `Blobs.put`. Throws `.noSuchRecording` if a recording without a row is to get one.
  package func put(_ path: String, as key: ObjectKey, makesFolder: Bool) throws(StorageError) -> StoredFile {
    // One that is deleted after this is removed with what was announced.
    if !makesFolder, try catalog.recording(key.recording) == nil { throw .noSuchRecording(key.recording) }
    try catalog.announce([key])
    return try upload(path, as: key)
  }

  /// Puts a file that can be made again, if it exists; ignores failures.
  package func offer(_ path: String, as key: ObjectKey) -> Int64? {
    guard (try? FileSystem.length(of: path)) != nil else { return nil }
    return (try? put(path, as: key, makesFolder: true))?.bytes
  }

  /// Puts a received file and what was made from it; see `Blobs.adopt`.
  package func adopt(
    _ file: consuming IncomingFile, as id: RecordingID, name: String, with made: [MadeFile]
  ) throws(StorageError) -> StoredFile {
    let file = file
    // Once it is in the cache, nothing is left to discard.
    defer { file.discard() }
    return try adopt(as: id, names: [name] + made.map(\.name)) { () throws(StorageError) in
      // The last bytes may not have been written.
      let stored = try upload(file.path, as: ObjectKey(id, name), expecting: file.digest())
      for made in made { try add(made, to: id) }
      return stored
    }
  }

  /// Puts the file of a resumable upload, which stays.
  package func adopt(_ part: UploadPart, as id: RecordingID, name: String) throws(StorageError) -> StoredFile {
    try adopt(as: id, names: [name]) { () throws(StorageError) in
      // The part stays, so the cache gets another name of it.
      let copy = cache.incomingPath()
      let isLinked = (try? FileSystem.link(part.path, to: copy)) != nil
      defer { try? FileSystem.remove(copy) }
      return try upload(
        isLinked ? copy : part.path, as: ObjectKey(id, name), expecting: part.digest(), keeps: !isLinked,
        joining: part.objects)
    }
  }

  /// Announces the objects of a new recording and puts them. On an error, removes those that may have been put, unless
  /// the store doesn't answer: then the rows of `garbage` have them removed.
  private func adopt(
    as id: RecordingID, names: [String], _ body: () throws(StorageError) -> StoredFile
  ) throws(StorageError) -> StoredFile {
    let keys = names.map { ObjectKey(id, $0) }
    try catalog.announce(keys)
    let start = client.clock.now
    do throws(StorageError) {
      let stored = try body()
      // A slow store may have taken most of the day in which they must be named.
      if client.clock.seconds(since: start) > 3600 { try catalog.announce(keys) }
      return stored
    } catch {
      if !error.isTransient { for key in keys { try? remove(key) } }
      throw error
    }
  }

  private func add(_ made: MadeFile, to id: RecordingID) throws(StorageError) {
    do throws(StorageError) { _ = try upload(made.path, as: ObjectKey(id, made.name)) } catch {
      if made.isNeeded { throw error }
    }
  }

  /// Puts a file, which has a SHA-256 if it is known already. It becomes the cache's copy, unless it must be kept.
  /// `objects` have the same bytes, in order, if any.
  private func upload(
    _ path: String, as key: ObjectKey, expecting sha256: String? = nil, keeps: Bool = false,
    joining objects: [UploadObject] = []
  ) throws(StorageError) -> StoredFile {
    let digests: FileDigests
    if let sha256 {
      digests = try store.sender.send(path, expecting: sha256, joining: objects, as: key.description)
    } else {
      digests = try FileDigests(of: path)
      try store.sender.send(path, digests, as: key.description)
    }
    let version = CachedVersion(bytes: digests.bytes, entityTag: "", sha256: digests.sha256)
    if !keeps { cache.insert(path, as: key, version, digests: digests.blocks) }
    return StoredFile(key: key, bytes: digests.bytes, sha256: digests.sha256)
  }

  // MARK: Reading

  /// Returns the cache's file of an object; fetches what it lacks, and the map of a sound.
  package func localFile(_ key: ObjectKey) throws(StorageError) -> LocalFile {
    if let file = cache.fileAtHand(key) {
      client.figures.addRead(hit: cache.knownLength(of: key) ?? 0, miss: 0)
      return withMap(file, key)
    }
    guard let file = try cache.file(key) else {
      try checkIdentity()
      return LocalFile(path: cache.path(of: key))
    }
    return withMap(file, key)
  }

  /// Returns the same without waiting; nil unless this process has had the whole object and still has it.
  package func fileAtHand(_ key: ObjectKey) -> LocalFile? { cache.fileAtHand(key) }

  /// Returns the SHA-256 of an object in the bucket; see `Blobs.storedSHA256`.
  package func storedSHA256(
    of key: ObjectKey, _ goesOn: (Int) throws(StorageError) -> Bool
  ) throws(StorageError) -> String? {
    do throws(StorageError) { return try store.sha256(of: key.description, inPieces: true, goesOn) } catch {
      if case .io(_, _, ENOENT) = error { try checkIdentity() }
      throw error
    }
  }

  /// Removes the cache's copy of an object.
  package func discardCopy(of key: ObjectKey) -> Bool {
    cache.discard(key)
    return true
  }

  /// Returns bytes of an object; fetches the blocks that they are in, as far as the cache lacks them.
  package func read(_ key: ObjectKey, _ ranges: [Range<Int64>]) throws(StorageError) -> [[UInt8]]? {
    if let bytes = try cache.read(key, ranges) { return bytes }
    try checkIdentity()
    return nil
  }

  /// Fetches the blocks that ranges of an object are in, as far as the cache lacks them.
  package func fetch(_ key: ObjectKey, _ ranges: [Range<Int64>]) throws(StorageError) {
    try cache.fetch(key, ranges)
  }

  /// Whether the cache has the blocks that ranges of an object are in.
  package func isAtHand(_ key: ObjectKey, _ ranges: [Range<Int64>]) -> Bool { cache.isAtHand(key, ranges) }

  /// Throws if this is another bucket than the catalog describes, so that nothing is given up as missing.
  func checkIdentity() throws(StorageError) { try identity?.check(by: client) }

  /// Looks for an object. Costs no request if the cache has it. Otherwise it costs one if the object is what its row
  /// says, two if it isn't, and three if there is none.
  package func look(at key: ObjectKey) -> FileLook {
    if let bytes = cache.knownLength(of: key) { return .present(bytes: bytes) }
    do {
      let expected = try catalog.content(of: key)
      if let info = try client.head(key.description, expecting: expected) { return .present(bytes: info.bytes) }
      try checkIdentity()
      return .absent
    } catch {
      return .unknown
    }
  }

  private final class Pair: Sendable {
    let file, map: LocalFile

    init(file: LocalFile, map: LocalFile) { (self.file, self.map) = (file, map) }
  }

  /// Adds the map that readers of a sound look for beside it, if there is one.
  private func withMap(_ file: LocalFile, _ key: ObjectKey) -> LocalFile {
    guard key.name.hasPrefix("audio") || key.name.hasPrefix("working"), let map = maps.map(of: key) else { return file }
    return LocalFile(path: file.path, holding: Pair(file: file, map: map))
  }

  // MARK: The state of the store

  /// Throws if the last request has failed and the store still doesn't work, or if the bucket was full and still is.
  /// Costs nothing otherwise. Blocks for at most a second.
  package func checkReachable() throws(StorageError) {
    if client.isFailing || client.isFull { try probe.checkNow() }
  }

  /// See `S3Media.endCalls`.
  func endCalls() { client.endCalls() }

  /// Whether the bucket was full when something was put last.
  package var isFull: Bool { client.isFull }

  /// Throws if nothing could be read for some seconds, or if it is another bucket or refuses requests. Blocks for
  /// less than a second.
  package func checkUsable() throws(StorageError) { try probe.checkUsable() }

  /// Runs `deletion`: the rows that it writes have the objects removed, now or later.
  package func makingRoom<Result>(
    _ deletion: () throws(StorageError) -> Result
  ) throws(StorageError) -> Result { try deletion() }
}
