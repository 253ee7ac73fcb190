import FoundationEssentials
import PostgresStorage
import S3Storage
import Storage

/// The catalog and the media that several machines share, to be compared while the nodes work or after both were
/// restored.
package struct SharedStorage {
  private enum Media {
    case folder(MediaStore)
    case bucket(S3Client)
  }

  private let catalogURL: String
  private let media: Media

  /// The settings that say where both are.
  package static let settings = (Setting.cluster + Setting.bucket).filter { names.contains($0.name) }

  private static let names = [
    "catalog", "media", "s3-endpoint", "s3-credentials", "s3-ca",
  ]

  /// Why both can't be compared.
  package enum Fault: Error {
    /// The folder isn't one that several machines share.
    case noSharedFolder(path: String)
    /// The database lacks tables, because no node of this version has been started with it.
    case olderCatalog
  }

  /// Takes in what `flags` and the environment name, as for `serve`; nil if they name nothing.
  package init?(flags: [String: String], variable: (String) -> String?) throws(SettingError) {
    let variables = Set(Self.settings.map(\.variable) + BucketSettings.variables)
    let cluster = try Configuration(flags: flags) { variables.contains($0) ? variable($0) : nil }.cluster
    guard let url = cluster.catalogURL else { return nil }
    catalogURL = url
    if let client = try cluster.bucket.client() {
      media = .bucket(client)
    } else if let folder = cluster.mediaDirectory {
      media = .folder(MediaStore(lookingAt: folder))
    } else {
      return nil
    }
  }

  /// Compares both, as `DataCheck` does. Blocks. Throws a `Fault`, and what `PostgresMigrator`, `CheckedStore`
  /// and `DataCheck` throw.
  package func check(
    readsAudio: Bool, pyramidFault: @escaping @Sendable (String) -> String?, progress: (Double) -> Bool
  ) throws -> DataCheck.Report {
    if case .folder(let store) = media, !store.isShared { throw Fault.noSharedFolder(path: store.directory) }
    let settings = PostgresSettings(address: try PostgresAddress(catalogURL))
    guard try PostgresSchema.migrator.isUpToDate(settings) else { throw Fault.olderCatalog }
    let catalog = Catalog(engine: PostgresEngine(settings))
    let check = DataCheck(readsAudio: readsAudio, pyramidFault: pyramidFault)
    switch media {
    case .folder(let store):
      return try check.run(CheckedStore(shared: store, of: catalog), of: catalog, progress: progress)
    case .bucket(let client):
      let temporary = FileManager.default.temporaryDirectory.path + "/stillwave-check-" + UUID().uuidString
      let bucket = try CheckedStore(client, of: catalog, temporary: temporary)
      return try check.run(bucket, of: catalog, progress: progress)
    }
  }
}
