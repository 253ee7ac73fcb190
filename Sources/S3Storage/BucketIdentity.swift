import Storage

/// The object by which a catalog knows its bucket.
///
/// In another bucket, such as that of another tenant whose key was put in place, everything is missing. So before
/// anything is given up because it is missing, the identity is compared.
package struct BucketIdentity: Sendable {
  /// The key of the object.
  static let key = "media-id"

  /// The ID that the catalog is bound to.
  let id: String
  /// What messages call the bucket.
  let bucketName: String

  /// Throws `.otherMedia` if the bucket that `client` reaches is another one or has no identity.
  func check(by client: S3Client) throws(StorageError) {
    guard try Self.found(by: client) == id else { throw .otherMedia(path: bucketName) }
  }

  /// Binds the catalog to the bucket. The catalog gets its ID first, so of several first nodes all write the same, and
  /// a bucket with an ID that the catalog hasn't belongs to another catalog.
  static func bound(_ catalog: some MediaBinding, to client: S3Client) throws(StorageError) -> BucketIdentity {
    let name = client.bucket.address
    // In this order: another first node may be between its two steps.
    let found = try found(by: client)
    let bound = try catalog.boundMedia()
    if let found {
      guard bound.id == found else { throw .otherMedia(path: name) }
      return BucketIdentity(id: found, bucketName: name)
    }
    guard !bound.hasContent else { throw .otherMedia(path: name) }
    if bound.id == nil, try hasRecordings(client) { throw .otherMedia(path: name) }
    let identity = BucketIdentity(id: try catalog.bind(toMedia: bound.id ?? MediaID().text), bucketName: name)
    // The first node of another catalog may have done the same.
    guard try make(identity.id, client) == identity.id else { throw .otherMedia(path: name) }
    return identity
  }

  /// Gives a bucket without an ID this one. Returns the one that it has then.
  static func make(_ id: String, _ client: S3Client) throws(StorageError) -> String? {
    guard let content = MediaID(Array(id.utf8))?.content else { throw .otherMedia(path: client.bucket.address) }
    try StorageError.translating { () throws(S3Error) in try create(content, client) }
    return try found(by: client)
  }

  /// Creates the object, unless it exists. A store that can't decide that replaces it.
  private static func create(_ content: [UInt8], _ client: S3Client) throws(S3Error) {
    do throws(S3Error) { try client.put(content, as: key, onlyIfAbsent: true) } catch {
      switch error {
      case .changed: return
      case .refused(501, _, _), .refused(400, _, _): try client.put(content, as: key)
      default: throw error
      }
    }
  }

  /// Returns the identity of the bucket if the catalog may describe it, without binding either to the other. Returns
  /// nil if both are new: the bucket has no identity, and neither has recordings.
  ///
  /// Throws `.otherMedia` if the catalog describes another bucket, or only one of both has something.
  static func known(to catalog: some MediaBinding, _ client: S3Client) throws(StorageError) -> BucketIdentity? {
    let name = client.bucket.address
    let found = try found(by: client)
    let bound = try catalog.boundMedia()
    guard found == bound.id else { throw .otherMedia(path: name) }
    if found == nil, bound.hasContent { throw .otherMedia(path: name) }
    if found == nil, try hasRecordings(client) { throw .otherMedia(path: name) }
    return found.map { BucketIdentity(id: $0, bucketName: name) }
  }

  /// The ID of a bucket, nil if it has none, and empty if the object is something else.
  static func found(by client: S3Client) throws(StorageError) -> String? {
    let bytes = try StorageError.translating { () throws(S3Error) -> [UInt8]? in
      do throws(S3Error) { return try client.get(key, 0..<100) } catch {
        if error == .noSuchKey { return nil }
        throw error
      }
    }
    // Anything that isn't an ID belongs to no catalog.
    return bytes.map { MediaID($0)?.text ?? "" }
  }

  /// Whether any recording has objects in the bucket.
  static func hasRecordings(_ client: S3Client) throws(StorageError) -> Bool {
    try StorageError.translating { () throws(S3Error) in
      try !client.list(prefix: "recordings/", limit: 1).objects.isEmpty
    }
  }
}

/// What remembers which media it describes.
protocol MediaBinding {
  /// Returns the ID of the media, nil if it isn't bound to any, and whether it describes something in them.
  func boundMedia() throws(StorageError) -> (id: String?, hasContent: Bool)
  /// Binds it to the media with an ID, unless it is bound. Returns the ID that it is bound to.
  func bind(toMedia id: String) throws(StorageError) -> String
}

extension Catalog: MediaBinding {}
