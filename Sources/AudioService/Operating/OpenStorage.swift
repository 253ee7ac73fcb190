import PostgresStorage
import S3Storage
import Storage

/// The catalog and the media of a service: a data folder of its own, or a database and a folder or a bucket that nodes
/// share.
struct OpenStorage {
  let catalog: Catalog
  let media: MediaPlaces
  /// How the catalog was found. A shared one is in the care of its server.
  let condition: CatalogCondition?
  /// Why a crash of the catalog's server could undo what it has acknowledged, if it could.
  let risk: ReplicationRisk?

  /// Opens the catalog and the media, creating them if they are missing. Claims the data folder or, if nodes share the
  /// media, the name or the disk of this node. Blocks.
  init(_ configuration: Configuration) throws {
    if let url = configuration.cluster.catalogURL {
      var settings = PostgresSettings(address: try PostgresAddress(url))
      settings.clock = configuration.clock
      try PostgresSchema.migrator.migrate(settings)
      let engine = PostgresEngine(settings)
      let node = configuration.cluster.node ?? LeaseHolder.machine
      let holder = LeaseHolder(name: node, terms: configuration.cluster.terms)
      catalog = Catalog(engine: engine, holder: holder, bus: PostgresBus(engine, settings), clock: configuration.clock)
      try catalog.compareClocks()
      media = try Self.sharedMedia(configuration, catalog, node: node)
      condition = nil
      risk = try engine.replicationRisk()
      return
    }
    try MediaStore(lookingAt: configuration.dataDirectory).checkIsDataFolder()
    let store = try MediaStore(directory: configuration.dataDirectory)
    try store.claim()
    let condition = try Catalog.inspect(path: store.catalogPath)
    if condition == .new, try store.hasRecordings() { throw StorageError.lostCatalog(path: store.catalogPath) }
    catalog = try Catalog(path: store.catalogPath, clock: configuration.clock)
    store.keepReserve()
    media = MediaPlaces(store, catalog)
    self.condition = condition
    risk = nil
  }

  private static func sharedMedia(
    _ configuration: Configuration, _ catalog: Catalog, node: String
  ) throws -> MediaPlaces {
    let settings = configuration.cluster.bucket
    var requests = settings.requests
    requests.clock = configuration.clock
    if let bucket = try settings.bucket(), let credentials = settings.credentials {
      let scratch = settings.scratchDirectory ?? configuration.dataDirectory + "/scratch"
      return MediaPlaces(
        try S3Media(
          in: bucket, credentials: credentials, settings: requests, catalog: catalog, scratch: scratch,
          cacheBytes: settings.cacheBytes, spareBytes: 2 * configuration.reservedDiskBytes))
    }
    guard let folder = configuration.cluster.mediaDirectory else {
      preconditionFailure("a catalog that nodes share has media")
    }
    let store = try MediaStore(shared: folder, node: node)
    try catalog.bind(to: store)
    return MediaPlaces(store, catalog)
  }

  /// Whether other processes use them too.
  var isShared: Bool { condition == nil }
  /// Whether what the catalog says may be relied on when files are removed.
  var isVerified: Bool { condition != .unverified }
}
