import PostgresStorage
import Storage

/// The catalog and the folder that several machines share, to be compared while the nodes work or after both were
/// restored.
package struct SharedStorage {
  private let catalogURL: String
  private let store: MediaStore

  /// The settings that say where both are.
  package static let settings = Setting.cluster.filter { ["catalog", "media"].contains($0.name) }

  /// Why both can't be compared.
  package enum Fault: Error {
    /// The folder isn't one that several machines share.
    case noSharedFolder(path: String)
    /// The database lacks tables, because no node of this version has been started with it.
    case olderCatalog
  }

  /// Takes in what `flags` and the environment name, as for `serve`; nil if they name nothing.
  package init?(flags: [String: String], variable: (String) -> String?) throws(SettingError) {
    if (flags["media"] ?? variable("STILLWAVE_MEDIA"))?.hasPrefix("s3://") == true {
      throw SettingError("stillwave check compares a folder with its catalog; it can't look into a bucket yet.")
    }
    let variables = Set(Self.settings.map(\.variable))
    let cluster = try Configuration(flags: flags) { variables.contains($0) ? variable($0) : nil }.cluster
    guard let url = cluster.catalogURL, let media = cluster.mediaDirectory else { return nil }
    (catalogURL, store) = (url, MediaStore(lookingAt: media))
  }

  /// Compares both, as `DataCheck` does. Blocks. Throws a `Fault`, and what `PostgresMigrator` and `DataCheck` throw.
  package func check(
    readsAudio: Bool, pyramidFault: @escaping @Sendable (String) -> String?, progress: (Double) -> Bool
  ) throws -> DataCheck.Report {
    guard store.isShared else { throw Fault.noSharedFolder(path: store.directory) }
    let settings = PostgresSettings(address: try PostgresAddress(catalogURL))
    guard try PostgresSchema.migrator.isUpToDate(settings) else { throw Fault.olderCatalog }
    let catalog = Catalog(engine: PostgresEngine(settings))
    return try DataCheck(store, readsAudio: readsAudio, pyramidFault: pyramidFault).run(
      sharedBy: catalog, progress: progress)
  }
}
