import ObjectStore
import PostgresServer
import PostgresStorage
import PresentRows
import S3Storage
import Testing

@testable import Storage

/// A data folder, and an empty catalog and media that several machines can share.
final class MovePlaces: Sendable {
  /// The kinds of media that several machines share.
  enum Kind: CaseIterable, Sendable { case folder, bucket }

  let fixture: MovedFixture
  let kind: Kind
  let catalog: Catalog
  let server: S3Server
  var folder: TemporaryFolder { fixture.folder }

  init(_ kind: Kind) throws {
    fixture = try MovedFixture()
    self.kind = kind
    catalog = Catalog(engine: try #require(try PostgresCatalogs.engine(path: fixture.folder("cluster"))))
    server = try S3Server(buckets: ["media"], keys: [S3Server.Key("AKIDEXAMPLE", "secret")])
  }

  func media(secret: String = "secret") throws -> any ObjectStore {
    if kind == .folder { return FolderStore(try MediaStore(shared: folder("media"), node: "move")) }
    let credentials = try CredentialSource(
      environment: ["AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": secret])
    var settings = S3Settings()
    (settings.attempts, settings.breakSeconds) = (1, 0)
    return try BucketStore(
      in: S3Bucket("s3://media/stillwave?endpoint=\(server.endpoint)"), credentials: credentials,
      settings: settings, catalog: catalog)
  }

  func away(progress: (Double) -> Bool = { _ in true }) throws -> Move.Report {
    let source = try MoveSource(dataFolder: fixture.data.path)
    let target = try SharedMoveTarget(catalog, media(), name: "the cluster")
    return try move(source, target).run(progress: progress)
  }

  func back(to name: String = "back", progress: (Double) -> Bool = { _ in true }) throws -> Move.Report {
    let media = try media()
    let target = try FolderMoveTarget(folder(name), from: "the cluster", mediaID: media.mediaID() ?? "")
    return try move(MoveSource(catalog, media), target).run(progress: progress)
  }

  /// A waveform of these tests is damaged if it says so.
  func move(_ source: MoveSource, _ target: any MoveTarget) -> Move {
    Move(from: source, to: target) { (try? read($0))?.contains("damaged") == true ? "it says so" : nil }
  }

  /// The content of each file that a data folder's rows can name, by path.
  func files(of name: String) throws -> [String: String] {
    var files: [String: String] = [:]
    for folder in ["recordings", "uploads"] {
      for path in try self.folder.contents(of: "\(name)/\(folder)") {
        let path = "\(folder)/\(path)"
        if !FileSystem.isFolder(self.folder("\(name)/\(path)")) {
          files[path] = try read(self.folder("\(name)/\(path)"))
        }
      }
    }
    return files
  }

  /// The same of the media that machines share. An upload's bytes in a bucket have several names.
  func sharedFiles() throws -> [String: String] {
    guard kind == .bucket else { return try files(of: "media") }
    return Dictionary(
      uniqueKeysWithValues: server.objects(in: "media").compactMap { key, bytes in
        let key = String(key.dropFirst("stillwave/".count))
        return key == "media-id" ? nil : (key, String(decoding: bytes, as: UTF8.self))
      })
  }
}
