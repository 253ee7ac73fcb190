import Glibc
import Storage

/// The media in a bucket, at one end of a move.
package struct MovedBucket: MovedMedia {
  private let client: S3Client
  private let sender: ObjectSender

  /// Describes the media in a bucket. `catalog` gets a row for each multipart upload.
  ///
  /// Throws `.objectStore` or `.storeUnreachable` if the bucket can't be listed.
  package init(
    in bucket: S3Bucket, credentials: CredentialSource, settings: S3Settings = S3Settings(), catalog: Catalog
  ) throws(StorageError) {
    client = S3Client(bucket, credentials: credentials, settings: settings)
    sender = ObjectSender(
      client: client, catalog: catalog, partBytes: 64 << 20,
      threads: ThreadPool(label: "parts", most: 4, mostOfCaller: 2))
    let client = client
    try StorageError.translating { () throws(S3Error) in try client.check() }
  }

  /// The address of the bucket, without options.
  package var name: String { client.bucket.address }
  /// True.
  package var isBucket: Bool { true }

  /// Returns nil: objects aren't files.
  package func path(of key: String) -> String? { nil }

  /// Looks for an object. Costs a request, or two if there is none.
  package func find(_ key: String) throws(StorageError) -> FoundObject? {
    let info = try StorageError.translating { () throws(S3Error) in try client.head(key) }
    return info.map { FoundObject(bytes: $0.bytes, sha256: $0.sha256) }
  }

  /// Fetches an object, and reads what has arrived. Throws `.damagedObject` if that isn't what was put.
  package func copy(_ key: String, to path: String) throws(StorageError) -> FoundObject? {
    // For the deadline.
    guard let bytes = try find(key)?.bytes else { return nil }
    let info = try StorageError.translating { () throws(S3Error) -> S3ObjectInfo? in
      do throws(S3Error) { return try client.get(key, into: path, bytes: bytes) } catch {
        if error == .noSuchKey { return nil }
        throw error
      }
    }
    guard let info else { return nil }
    let digests = try FileDigests(of: path)
    guard info.sha256 ?? digests.sha256 == digests.sha256 else { throw .damagedObject(key: key) }
    return FoundObject(bytes: digests.bytes, sha256: digests.sha256)
  }

  /// Puts a file as an object. Reads it twice.
  package func take(_ object: ExpectedObject, from other: any MovedMedia) throws(StorageError) -> FoundObject? {
    let key = object.key.description
    guard let path = other.path(of: key), try other.find(key) != nil else { return nil }
    let digests = try FileDigests(of: path)
    let found = FoundObject(bytes: digests.bytes, sha256: digests.sha256)
    if object.permits(found.bytes, found.sha256) { try sender.send(path, digests, as: key) }
    return found
  }

  /// Puts the bytes of an upload, which are in one file.
  package func take(
    _ upload: UploadID, _ pieces: [UploadPiece], as objects: [UploadObject], from other: any MovedMedia
  ) throws(StorageError) -> Bool {
    guard let last = objects.last else { return true }
    guard pieces.count == 1, let path = other.path(of: pieces[0].key),
      let found = try other.find(pieces[0].key), found.bytes >= last.end
    else { return false }
    for object in objects {
      try StorageError.translating { () throws(S3Error) in
        try client.put(file: path, object.start..<object.end, as: object.key)
      }
    }
    return true
  }

  /// Puts the description of a recording; see `ObjectSender.describe`.
  package func describe(_ recording: Recording) throws(StorageError) { try sender.describe(recording) }

  /// Does nothing: what a store has acknowledged is durable.
  package func sync() {}

  /// The ID in the bucket. From then on, no other bucket is used, whatever key is put in place.
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

  /// Whether any recording has objects.
  package func hasRecordings() throws(StorageError) -> Bool { try BucketIdentity.hasRecordings(client) }
}
