import Glibc
import Storage

/// The media in a bucket as a store, without a cache.
package struct BucketStore: ObjectStore {
  let client: S3Client
  let sender: ObjectSender

  /// Describes the media in a bucket. `catalog` gets a row for each multipart upload.
  ///
  /// Throws `.objectStore` or `.storeUnreachable` if the bucket can't be listed.
  package init(
    in bucket: S3Bucket, credentials: CredentialSource, settings: S3Settings = S3Settings(), catalog: Catalog
  ) throws(StorageError) {
    self.init(S3Client(bucket, credentials: credentials, settings: settings), catalog: catalog)
    let client = client
    try StorageError.translating { () throws(S3Error) in try client.check() }
  }

  /// Sends a file's parts on `threads`, at most `partBytes` bytes each.
  init(_ client: S3Client, catalog: Catalog, partBytes: Int64 = 64 << 20, threads: ThreadPool? = nil) {
    self.client = client
    sender = ObjectSender(
      client: client, catalog: catalog, partBytes: partBytes,
      threads: threads ?? ThreadPool(label: "object parts", most: 4, mostOfCaller: 2))
  }

  /// The address of the bucket, without options.
  package var name: String { client.bucket.address }

  /// Returns nil: objects aren't files.
  package func path(of key: String) -> String? { nil }

  /// Looks for an object. Costs a request, or two more if there is none.
  package func look(_ key: String) throws(StorageError) -> FoundObject? {
    let info = try StorageError.translating { () throws(S3Error) in try client.head(key) }
    return info.map { FoundObject(bytes: $0.bytes, sha256: $0.sha256) }
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
    let missing = StorageError.io(operation: "get", path: key, errno: ENOENT)
    guard inPieces else {
      guard let found = try present({ () throws(S3Error) in try client.digest(of: key) }) else { throw missing }
      return found.sha256
    }
    var hash = SHA256()
    var place: Int64 = 0
    while true {
      let piece = try present { () throws(S3Error) in try client.get(key, place..<place + Self.pieceBytes) }
      guard let piece else { throw missing }
      if piece.isEmpty { return hash.hexDigest() }
      hash.update(piece.span)
      place += Int64(piece.count)
      guard try goesOn(piece.count) else { return nil }
    }
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

  /// Puts some bytes. Costs a request.
  package func put(_ bytes: [UInt8], as key: String) throws(StorageError) {
    try StorageError.translating { () throws(S3Error) in try client.put(bytes, as: key) }
  }

  /// Deletes an object.
  package func delete(_ key: String) throws(StorageError) {
    try StorageError.translating { () throws(S3Error) in try client.delete(key) }
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
    return keys
  }

  /// Does nothing: what a store has acknowledged is durable.
  package func sync() {}

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
