import Storage

/// The media of a node in a bucket: the objects and their cache, and unfinished uploads.
package struct S3Media: Sendable {
  private let catalog: Catalog
  let cache: BlockCache
  /// The folders of this node's disk.
  package let disk: MediaStore
  /// The disk for files in progress.
  package let scratch: Scratch
  /// The recordings' files.
  package let store: BucketStore
  /// What may be put and removed of them.
  package let blobs: Blobs
  /// The bytes of uploads.
  package let spool: S3Spool

  /// Opens the media in a bucket. Files in progress, and a cache of at most `cacheBytes` bytes that leaves `spareBytes`
  /// of the disk free, are in the folder `directory` of this node.
  ///
  /// Throws `.otherMedia` if the catalog describes another bucket, and `.inUse` if another process has the folder.
  package init(
    in bucket: S3Bucket, credentials: CredentialSource, settings: S3Settings = S3Settings(), catalog: Catalog,
    scratch directory: String, cacheBytes: Int64, spareBytes: Int64
  ) throws(StorageError) {
    try self.init(
      in: bucket, credentials: credentials, settings: settings, catalog: catalog, binding: catalog, scratch: directory,
      cacheBytes: cacheBytes, spareBytes: spareBytes)
  }

  init(
    in bucket: S3Bucket, credentials: CredentialSource, settings: S3Settings, catalog: Catalog,
    binding: some MediaBinding, scratch directory: String, cacheBytes: Int64, spareBytes: Int64
  ) throws(StorageError) {
    let client = S3Client(bucket, credentials: credentials, settings: settings)
    // One request at a time looks if the store works. A store that takes longer than this is of no use.
    var single = settings
    (single.attempts, single.requestSeconds) = (1, 5)
    let inspector = S3Client(
      bucket, credentials: credentials, settings: single, figures: client.figures, clock: client.storeClock)
    self.catalog = catalog
    let identity = try BucketIdentity.bound(binding, to: client)
    client.expect(identity.id)
    disk = try MediaStore(scratch: directory)
    cache = try BlockCache(
      directory: directory + "/cache", limitBytes: cacheBytes, spareBytes: spareBytes, client: client,
      expecting: { (key) throws(StorageError) in try catalog.content(of: key) })
    scratch = Scratch(disk, sharedWith: cache)
    store = BucketStore(client, inspector: inspector, cache: cache, catalog: catalog, identity: identity)
    blobs = Blobs(store, in: nil, of: catalog)
    let cache = cache
    spool = S3Spool(
      client, catalog: catalog, scratch: disk,
      reserve: { (bytes) throws(StorageError) in try cache.reserve(bytes) })
  }

  // MARK: Upkeep

  /// Removes what jobs left on this disk and, if `collects`, the objects that rows name as unneeded. Any node may do
  /// this at any time; if several collect at once, they ask the store for the same. If a part of it fails, does the
  /// others, throws, and leaves the rest for the next time. Blocks.
  package func removeUnneeded(collects: Bool = true) throws(StorageError) {
    var failure: StorageError?
    func attempt(_ part: () throws(StorageError) -> Void) {
      do throws(StorageError) { try part() } catch { failure = failure ?? error }
    }
    // This disk first, which needs no store.
    attempt { () throws(StorageError) in _ = try AbandonedWork(catalog: catalog, store: disk).remove() }
    attempt { () throws(StorageError) in
      cache.discard(try catalog.missing(among: cache.recordings))
      cache.forgetRemoved()
    }
    if collects {
      attempt { () throws(StorageError) in try blobs.removeGarbage(of: catalog) }
      attempt { () throws(StorageError) in try spool.removeGarbage() }
      attempt { () throws(StorageError) in try catalog.forgetSettledDeletions() }
    }
    if let failure { throw failure }
  }

  /// Drops what the cache has of deleted recordings, soon. Doesn't block.
  package func forget(_ deleted: [RecordingID]) { cache.removeSoon(Set(deleted)) }

  /// Makes all that waits for the store fail, within about a second, and what would wait for it fail at once: the
  /// process is about to end.
  package func endCalls() { store.client.endCalls() }

  /// Throws if the bucket hasn't been readable for some seconds, refuses requests, or was replaced (`.otherMedia`).
  /// Blocks for less than a second.
  package func check() throws(StorageError) { try store.checkUsable() }
}
