import Glibc
import PostgresStorage
import S3Storage
import Storage

/// What `stillwave move` moves: a data folder into the catalog and the media of several machines, or back.
package struct MovePlaces {
  /// The settings that say where the media of several machines are.
  package static let settings =
    Setting.cluster.filter { $0.name == "media" }
    + Setting.bucket.filter {
      !["max-cache-bytes", "scratch", "s3-redirects", "s3-public-endpoint"].contains($0.name)
    }

  /// Why a move can't begin or didn't end.
  package enum Fault: Error {
    /// There is no data folder to move from.
    case noFolder(path: String)
    /// The folder for the media is the data folder of one machine.
    case dataFolderAsMedia(path: String)
    /// Another move fills the folder for the media.
    case otherMove(path: String)
    /// Nodes use the catalog.
    case nodesAtWork(sessions: Int)
    /// The move failed after it had begun.
    case interrupted(any Error)
  }

  /// The data folder at one end.
  package let folder: String
  private let isBack: Bool
  private let catalogURL: String
  private let cluster: ClusterSettings

  /// Takes in the two places, each a data folder or the URL of a catalog; nil for the one that the environment names as
  /// for `serve`. Further flags and variables say where the media are.
  package init(
    from: String?, to: String?, flags: [String: String], variable: (String) -> String?
  ) throws(SettingError) {
    for place in [from, to].compactMap({ $0 }) where Self.isURL(place) && ClusterSettings.hasPassword(place) {
      throw SettingError(
        "A URL with a password isn't accepted on the command line, where other users can see it. Leave the place out "
          + "and set STILLWAVE_CATALOG, or give the password with PGPASSWORD or a password file.")
    }
    let named = variable("STILLWAVE_CATALOG")
    guard from != nil || to != nil, let from = from ?? named, let to = to ?? named, !from.isEmpty, !to.isEmpty else {
      throw SettingError(
        "Name both places: --from DIR --to postgres://user@host/name, or the reverse. STILLWAVE_CATALOG can stand for "
          + "the second.")
    }
    switch (Self.isURL(from), Self.isURL(to)) {
    case (false, true): (folder, catalogURL, isBack) = (from, to, false)
    case (true, false): (folder, catalogURL, isBack) = (to, from, true)
    case (false, false):
      throw SettingError(
        "Both places are folders. To move a data folder to another disk, use “stillwave backup” and “stillwave "
          + "restore”; the place of several machines is a URL such as postgres://stillwave@db/stillwave.")
    case (true, true):
      throw SettingError(
        "Both places are catalogs of several machines. Copy the database with pg_dump and the media with the store's "
          + "own tools, or move to a data folder first.")
    }
    let variables = Set(Self.settings.map(\.variable) + BucketSettings.variables)
    let url = catalogURL
    cluster = try Configuration(flags: flags) { name in
      name == "STILLWAVE_CATALOG" ? url : variables.contains(name) ? variable(name) : nil
    }.cluster
    if let media = cluster.mediaDirectory {
      let (one, other) = (Self.real(folder), Self.real(media))
      if one != other, one.hasPrefix(other) || other.hasPrefix(one) {
        throw SettingError("The data folder and the folder of --media can't be inside each other.")
      }
    }
  }

  /// The path of a folder without links, with a slash at its end. What doesn't exist yet keeps its name.
  private static func real(_ path: String) -> String {
    if let found = unsafe realpath(path, nil) {
      defer { unsafe free(found) }
      let text = unsafe String(cString: found)
      return text == "/" ? text : text + "/"
    }
    var rest = Substring(path)
    while rest.count > 1, rest.last == "/" { rest.removeLast() }
    guard let slash = rest.lastIndex(of: "/") else { return real(".") + rest + "/" }
    return real(slash == rest.startIndex ? "/" : String(rest[..<slash])) + rest[rest.index(after: slash)...] + "/"
  }

  private static func isURL(_ place: String) -> Bool { place.contains("://") }

  /// Moves everything; see `Move.run`. `waveformFault` returns what is wrong with the waveform file at a path, or nil.
  /// Blocks.
  ///
  /// Throws a `Fault`, and before the move begins what `PostgresMigrator`, `MoveSource` and the targets throw.
  package func run(
    waveformFault: @escaping @Sendable (String) -> String?, progress: (Double) -> Bool
  ) throws -> Move.Report {
    let (source, target) = try isBack ? back() : away()
    let move = Move(from: source, to: target, waveformFault: waveformFault)
    do { return try move.run(progress: progress) } catch StorageError.notEmpty(let path) {
      throw StorageError.notEmpty(path: path)
    } catch StorageError.otherMove {
      throw StorageError.otherMove
    } catch {
      throw Fault.interrupted(error)
    }
  }

  private func away() throws -> (MoveSource, any MoveTarget) {
    guard FileSystem.isFolder(folder) else { throw Fault.noFolder(path: folder) }
    let source = try MoveSource(dataFolder: folder)
    let (settings, address) = try database()
    try PostgresSchema.migrator.migrate(settings)
    let catalog = try openCatalog(settings)
    let target = try SharedMoveTarget(catalog, newMedia(catalog), name: "\(address)")
    return (source, target)
  }

  private func back() throws -> (MoveSource, any MoveTarget) {
    let (settings, address) = try database()
    let catalog = try openCatalog(settings)
    let media = try oldMedia(catalog)
    let source = try MoveSource(catalog, media)
    let target = try FolderMoveTarget(
      folder, from: "\(address) and \(media.name)", mediaID: media.mediaID() ?? "")
    return (source, target)
  }

  // MARK: Several machines

  private func database() throws -> (PostgresSettings, PostgresAddress) {
    let address = try PostgresAddress(catalogURL)
    var settings = PostgresSettings(address: address)
    settings.applicationName = "stillwave move"
    // Some statements read or write whole tables, and while one catalog is read, a transaction on the other is idle.
    settings.statementTimeoutSeconds = 3600
    settings.idleInTransactionTimeoutSeconds = 3600
    return (settings, address)
  }

  /// Opens a catalog with exactly the tables of this version, which no node uses.
  private func openCatalog(_ settings: PostgresSettings) throws -> Catalog {
    guard try PostgresSchema.migrator.isSame(settings) else { throw SharedStorage.Fault.olderCatalog }
    let engine = PostgresEngine(settings)
    let sessions = try engine.sessions(named: PostgresSettings(address: settings.address).applicationName)
    guard sessions == 0 else { throw Fault.nodesAtWork(sessions: sessions) }
    return Catalog(engine: engine)
  }

  private func bucket(_ catalog: Catalog) throws -> (any ObjectStore)? {
    guard let bucket = try cluster.bucket.bucket(), let credentials = cluster.bucket.credentials else { return nil }
    var settings = S3Settings()
    settings.authorities = cluster.bucket.authorities
    return try BucketStore(in: bucket, credentials: credentials, settings: settings, catalog: catalog)
  }

  private func newMedia(_ catalog: Catalog) throws -> any ObjectStore {
    if let bucket = try bucket(catalog) { return bucket }
    let path = cluster.mediaDirectory ?? ""
    do throws(StorageError) { return FolderStore(try MediaStore(shared: path, node: "move")) } catch {
      switch error {
      case .inUse: throw Fault.dataFolderAsMedia(path: path)
      case .nodeInUse: throw Fault.otherMove(path: path)
      default: throw error
      }
    }
  }

  private func oldMedia(_ catalog: Catalog) throws -> any ObjectStore {
    if let bucket = try bucket(catalog) { return bucket }
    let store = MediaStore(lookingAt: cluster.mediaDirectory ?? "")
    guard store.isShared else { throw SharedStorage.Fault.noSharedFolder(path: store.directory) }
    return FolderStore(store)
  }
}
