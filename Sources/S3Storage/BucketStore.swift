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

import Glibc
import Storage

/// The media in a bucket as a store, maybe with a cache of those in use. Thread-safe.
///
/// Its errors are `.storeUnreachable` if a later call may succeed, `.storeFull` if the bucket is full, and otherwise
/// `.objectStore`.
package struct BucketStore: ObjectStore {
  let client: S3Client
  let cache: BlockCache?
  let sender: ObjectSender
  let catalog: Catalog
  private let maps: SoundMaps?
  private let probe: StoreProbe
  private let identity: BucketIdentity?

  /// Describes the media in a bucket, without a cache. `catalog` gets a row for each multipart upload.
  ///
  /// Throws `.objectStore` or `.storeUnreachable` if the bucket can't be listed.
  package init(
    in bucket: S3Bucket, credentials: CredentialSource, settings: S3Settings = S3Settings(), catalog: Catalog
  ) throws(StorageError) {
    self.init(S3Client(bucket, credentials: credentials, settings: settings), catalog: catalog, senders: 4)
    let client = client
    try StorageError.translating { () throws(S3Error) in try client.check() }
  }

  /// Describes the media in the bucket of `client`. Files are put in parts of `partBytes` bytes, a number of MiB from 5
  /// on, and `senders` threads help those that put long files. `inspector` is the client that looks if a store that
  /// failed works again. `identity` is that of the bucket; without one, any bucket will do.
  package init(
    _ client: S3Client, inspector: S3Client? = nil, cache: BlockCache? = nil, catalog: Catalog,
    partBytes: Int64 = 64 << 20, identity: BucketIdentity? = nil, senders: Int = 12
  ) {
    precondition(partBytes >= S3Client.leastPartBytes, "parts have at least 5 MiB")
    (self.client, self.cache, self.catalog, self.identity) = (client, cache, catalog, identity)
    probe = StoreProbe(inspector ?? client, for: client, identity: identity, catalog: catalog)
    maps = cache.map { SoundMaps(client, cache: $0) }
    sender = ObjectSender(
      client: client, catalog: catalog, partBytes: partBytes,
      threads: ThreadPool(label: "object parts", most: senders, mostOfCaller: 2))
  }

  /// The address of the bucket, without options.
  package var name: String { client.bucket.address }

  /// Returns nil: objects aren't files.
  package func path(of key: String) -> String? { nil }

  // MARK: Putting

  /// Puts objects, one after the other: each with one PUT, or in parts and a completion.
  package func put(_ objects: [NewObject], begins: Bool) throws(StorageError) -> [FoundObject?] {
    var found: [FoundObject?] = []
    for new in objects {
      do throws(StorageError) { found.append(try put(new)) } catch {
        if new.isNeeded { throw error }
        found.append(nil)
      }
    }
    return found
  }

  private func put(_ new: NewObject) throws(StorageError) -> FoundObject {
    switch new.content {
    case .bytes(let bytes):
      try StorageError.translating { () throws(S3Error) in try client.put(bytes, as: new.key) }
      return FoundObject(bytes: Int64(bytes.count), sha256: nil)
    case .file(let path):
      guard let cache, new.keepsFile else { return try put(path, new, isSpare: !new.keepsFile) }
      // The file stays, so the cache gets another name of it.
      let copy = cache.incomingPath()
      let isLinked = (try? FileSystem.link(path, to: copy)) != nil
      defer { try? FileSystem.remove(copy) }
      return try put(isLinked ? copy : path, new, isSpare: isLinked)
    }
  }

  /// Puts a file, which then becomes the cache's copy if it isn't needed any more.
  private func put(_ path: String, _ new: NewObject, isSpare: Bool) throws(StorageError) -> FoundObject {
    let digests: FileDigests
    if let sha256 = new.sha256 {
      // The last bytes may not have been written.
      digests = try sender.send(path, expecting: sha256, joining: new.parts, as: new.key)
    } else {
      digests = try FileDigests(of: path)
      try sender.send(path, digests, as: new.key)
    }
    if isSpare, let cache, let key = ObjectKey(new.key) {
      let version = CachedVersion(bytes: digests.bytes, entityTag: "", sha256: digests.sha256)
      cache.insert(path, as: key, version, digests: digests.blocks)
    }
    return FoundObject(bytes: digests.bytes, sha256: digests.sha256)
  }

  /// Puts a file, or bytes of one. Reads a whole one twice.
  package func take(
    _ pieces: [ObjectPiece], of other: any ObjectStore, as key: String, if isExpected: (FoundObject) -> Bool
  ) throws(StorageError) -> FoundObject? {
    guard pieces.count == 1, let path = other.path(of: pieces[0].key), let there = try other.look(pieces[0].key) else {
      return nil
    }
    if let range = pieces[0].range {
      guard there.bytes >= range.upperBound else { return nil }
      let found = FoundObject(bytes: range.upperBound - range.lowerBound, sha256: nil)
      guard isExpected(found) else { return found }
      try StorageError.translating { () throws(S3Error) in try client.put(file: path, range, as: key) }
      return found
    }
    let digests = try FileDigests(of: path)
    let found = FoundObject(bytes: digests.bytes, sha256: digests.sha256)
    if isExpected(found) { try sender.send(path, digests, as: key) }
    return found
  }

  /// Does nothing: what a store has acknowledged is durable.
  package func sync() {}

  // MARK: Reading

  /// Looks for an object. An object in the cache costs no request, another one costs one, and a missing one three. With
  /// a cache, an object that isn't what its row says costs one more.
  package func look(_ key: String) throws(StorageError) -> FoundObject? {
    var expected: ExpectedObject?
    if let cache, let object = ObjectKey(key) {
      if let bytes = cache.knownLength(of: object) { return FoundObject(bytes: bytes, sha256: nil) }
      expected = try catalog.content(of: object)
    }
    let info = try StorageError.translating { () throws(S3Error) in try client.head(key, expecting: expected) }
    if info == nil { try checkIdentity() }
    return info.map { FoundObject(bytes: $0.bytes, sha256: $0.sha256) }
  }

  /// Returns bytes of an object; fetches the blocks that they are in, as far as the cache lacks them.
  package func read(_ key: ObjectKey, _ ranges: [Range<Int64>]) throws(StorageError) -> [[UInt8]]? {
    if let cache {
      if let bytes = try cache.read(key, ranges) { return bytes }
    } else {
      var found: [[UInt8]] = []
      for range in ranges {
        guard let bytes = try present({ () throws(S3Error) in try client.get("\(key)", range) }) else { break }
        found.append(bytes)
      }
      if found.count == ranges.count { return found }
    }
    try checkIdentity()
    return nil
  }

  /// Whether the cache has the blocks that ranges of an object are in.
  package func isAtHand(_ key: ObjectKey, _ ranges: [Range<Int64>]) -> Bool { cache?.isAtHand(key, ranges) ?? false }

  /// Returns the cache's file of an object; fetches what it lacks, and the map of a sound.
  package func localFile(_ key: ObjectKey) throws(StorageError) -> LocalFile {
    guard let cache else { throw .objectStore(detail: "\(name) has no cache") }
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

  private final class Pair: Sendable {
    let file, map: LocalFile

    init(file: LocalFile, map: LocalFile) { (self.file, self.map) = (file, map) }
  }

  /// Adds the map that readers of a sound look for beside it, if there is one.
  private func withMap(_ file: LocalFile, _ key: ObjectKey) -> LocalFile {
    guard key.name.hasPrefix("audio") || key.name.hasPrefix("working"), let map = maps?.map(of: key) else {
      return file
    }
    return LocalFile(path: file.path, holding: Pair(file: file, map: map))
  }

  /// Returns the same without waiting; nil unless this process has had the whole object and still has it.
  package func fileAtHand(_ key: ObjectKey) -> LocalFile? { cache?.fileAtHand(key) }

  /// Removes the cache's copy of an object.
  package func discardCopy(of key: ObjectKey) -> Bool {
    cache?.discard(key)
    return true
  }

  /// Returns the first bytes of an object. Costs a request.
  package func contents(of key: String, limit: Int) throws(StorageError) -> [UInt8]? {
    try present { () throws(S3Error) in try client.get(key, 0..<Int64(limit)) }
  }

  /// Length of the pieces in which an object is read slowly.
  private static let pieceBytes: Int64 = 4 << 20

  /// Receives an object; maybe in pieces of 4 MiB.
  package func sha256(
    of key: String, inPieces: Bool, _ goesOn: (Int) throws(StorageError) -> Bool
  ) throws(StorageError) -> String? {
    guard inPieces else {
      guard let found = try present({ () throws(S3Error) in try client.digest(of: key) }) else {
        throw try missing(key)
      }
      return found.sha256
    }
    var hash = SHA256()
    var place: Int64 = 0
    while true {
      let piece = try present { () throws(S3Error) in try client.get(key, place..<place + Self.pieceBytes) }
      guard let piece else { throw try missing(key) }
      if piece.isEmpty { return hash.hexDigest() }
      hash.update(piece.span)
      place += Int64(piece.count)
      guard try goesOn(piece.count) else { return nil }
    }
  }

  private func missing(_ key: String) throws(StorageError) -> StorageError {
    try checkIdentity()
    return .io(operation: "get", path: key, errno: ENOENT)
  }

  /// Fetches an object, and reads what has arrived.
  package func copy(_ key: String, to path: String) throws(StorageError) -> FoundObject? {
    // For the deadline.
    guard let bytes = try look(key)?.bytes else { return nil }
    let info = try present { () throws(S3Error) in try client.get(key, into: path, bytes: bytes) }
    guard let info else { return nil }
    let digests = try FileDigests(of: path)
    guard info.sha256 ?? digests.sha256 == digests.sha256 else { throw .damagedObject(key: key) }
    return FoundObject(bytes: digests.bytes, sha256: digests.sha256)
  }

  /// Lists the keys that begin with `prefix`. Costs a request per thousand.
  package func keys(_ prefix: String, limit: Int) throws(StorageError) -> [String] {
    var (keys, token, last) = ([String](), nil as String?, nil as [UInt8]?)
    repeat {
      let page = try StorageError.translating { () throws(S3Error) in
        try client.list(prefix: prefix, token: token, after: last, limit: limit - keys.count)
      }
      keys += page.objects.map(\.key)
      (token, last) = (page.next, page.lastKey)
    } while token != nil && keys.count < limit
    if keys.isEmpty { try checkIdentity() }
    return keys
  }

  // MARK: Removing

  /// Deletes an object.
  package func delete(_ key: String) throws(StorageError) {
    try StorageError.translating { () throws(S3Error) in try client.delete(key) }
    if let cache, let object = ObjectKey(key) { cache.remove(object) }
  }

  /// Discards the parts of multipart uploads that were begun a day ago and haven't ended.
  package func discardUnfinished() throws(StorageError) {
    let batch = 1000
    var failure: StorageError?
    while failure == nil {
      let due = try catalog.takeMultiparts(limit: batch)
      var aborted: [UnfinishedMultipart] = []
      for unfinished in due {
        do throws(StorageError) {
          try StorageError.translating { () throws(S3Error) in
            try client.abort(S3Multipart(key: unfinished.key, id: unfinished.id))
          }
          aborted.append(unfinished)
        } catch {
          failure = failure ?? error
          if error.isTransient { break }
        }
      }
      try catalog.forget(aborted)
      if due.count < batch { break }
    }
    if let failure { throw failure }
  }

  // MARK: The store

  /// Whether the last request has failed.
  package var isFailing: Bool { client.isFailing }

  /// Whether the bucket was full when something was put last.
  package var isFull: Bool { client.isFull }

  /// Throws if the last request has failed and the store still doesn't work, or if the bucket was full and still is.
  /// Costs nothing otherwise. Blocks for at most a second.
  package func checkReachable() throws(StorageError) {
    if client.isFailing || client.isFull { try probe.checkNow() }
  }

  /// Throws if nothing could be read for some seconds, or if it is another bucket or refuses requests. Blocks for
  /// less than a second.
  package func checkUsable() throws(StorageError) { try probe.checkUsable() }

  /// Throws if this is another bucket than the catalog describes, so that nothing is given up as missing.
  private func checkIdentity() throws(StorageError) { try identity?.check(by: client) }

  /// Returns the ID in the bucket; an empty one if the object is something else. From then on, no other bucket is used,
  /// whatever key is put in place.
  package func mediaID() throws(StorageError) -> String? {
    let id = try BucketIdentity.found(by: client)
    if let id { client.expect(id) }
    return id
  }

  /// Returns the bucket's ID; gives it this one, or a new one, if it has none.
  package func makeMediaID(_ id: String?) throws(StorageError) -> String {
    if let found = try mediaID() { return found }
    guard let made = try BucketIdentity.make(id ?? MediaID().text, client) else { throw .otherMedia(path: name) }
    client.expect(made)
    return made
  }

  /// Returns what `body` returns; nil if there is no object.
  private func present<Value>(_ body: () throws(S3Error) -> Value) throws(StorageError) -> Value? {
    do throws(S3Error) { return try body() } catch {
      if error == .noSuchKey { return nil }
      throw StorageError(error)
    }
  }
}
