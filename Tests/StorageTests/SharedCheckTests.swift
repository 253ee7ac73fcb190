import PostgresServer
import PostgresStorage
import PresentRows
import Terms
import Testing

@testable import Storage

/// Checks of a folder that several machines share.
@Suite(.enabled(if: PostgresServer.TestServer.isInstalled, "PostgreSQL isn't installed: deploy/install postgres"))
struct SharedCheckTests {
  /// A folder with some recordings, and its catalog.
  private struct Shared: Sendable {
    let folder: TemporaryFolder
    let store: MediaStore
    let catalog: Catalog

    init(_ count: Int) throws {
      folder = try TemporaryFolder()
      store = try MediaStore(shared: folder("media"), node: "a")
      catalog = Catalog(engine: try #require(try PostgresCatalogs.engine(path: folder("cluster"))))
      try catalog.bind(to: store)
      for number in 0..<count {
        let id = RecordingID()
        let file = try store.receive()
        try file.append(Array("sound \(number)".utf8).span)
        let stored = try store.objects.adopt(file, as: id, name: "audio.wav", with: [])
        let recording = Recording(
          id: id, name: "talk.wav", bytes: stored.bytes, sha256: stored.sha256,
          format: SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 44_100, channels: 2, frames: 9),
          waveformState: .failed, audioKey: stored.key)
        try catalog.insert(recording)
        try store.descriptions.describe(recording)
      }
    }

    func check(progress: (Double) -> Bool = { _ in true }) throws -> DataCheck.Report {
      try DataCheck { _ in nil }.run(CheckedStore(shared: store, of: catalog), of: catalog, progress: progress)
    }
  }

  /// Runs a test on a thread that it may block.
  private func run(_ count: Int, _ body: @escaping @Sendable (Shared) throws -> Void) async throws {
    let shared = try Shared(count)
    try await withTaskExecutorPreference(BlockingExecutor.shared) { @Sendable () async throws in try body(shared) }
  }

  @Test("a folder is compared only with the catalog that describes it")
  func otherFolder() async throws {
    try await run(2) { shared in
      let report = try shared.check()
      #expect(report.isSound && report.notes == [] && report.recordings == 2, "\(report)")
      let identity = shared.folder("media/media-id")
      let own = try read(identity)
      for other in ["\(UUIDv7().text)\n", "no ID", nil] {
        try FileSystem.remove(identity)
        if let other { try write(other, to: identity) }
        #expect(throws: StorageError.otherMedia(path: shared.store.directory), "\(other ?? "none")") {
          try shared.check()
        }
      }
      try write(own, to: identity)
      #expect(try shared.check() == report)
    }
  }

  @Test("a folder that is unmounted while it is checked has no findings")
  func unmountedFolder() async throws {
    try await run(3) { shared in
      #expect(throws: StorageError.otherMedia(path: shared.store.directory)) {
        try shared.check { _ in
          _ = try? FileSystem.rename(shared.store.directory, to: shared.folder("elsewhere"))
          return true
        }
      }
    }
  }
}
