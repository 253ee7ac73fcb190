import Foundation
import PostgresServer
import PostgresStorage
import PresentRows
import Synchronization
import Terms
import Testing

@testable import Storage

@Suite(.enabled(if: PostgresServer.TestServer.isInstalled, "PostgreSQL isn't installed: deploy/install postgres"))
struct MoveTests {
  typealias Kind = MovePlaces.Kind

  /// Runs a test on a thread that it may block.
  private func run(_ kind: Kind, _ body: @escaping @Sendable (MovePlaces) throws -> Void) async throws {
    let places = try MovePlaces(kind)
    try await withTaskExecutorPreference(BlockingExecutor.shared) { @Sendable () async throws in try body(places) }
  }

  private static func digest(of folder: String) throws -> CatalogDigest {
    try CatalogDigest(of: Catalog(path: folder + "/catalog.sqlite"))
  }

  @Test("everything is the same after a move and back", arguments: Kind.allCases)
  func roundTrip(kind: Kind) async throws {
    try await run(kind) { places in
      let before = try places.fixture.data.everything()
      let rows = try Self.digest(of: places.fixture.data.path)
      let moved = try places.away()
      #expect(moved.problems == [] && moved.recordings == 3 && moved.uploads == 1)
      #expect(try CatalogDigest(of: places.catalog) == rows)
      let unchanged = try places.fixture.data.everything().filter { !$0.key.hasPrefix("data/catalog.sqlite") }
      for (path, content) in unchanged where FileSystem.identity(of: places.folder(path)) != nil {
        guard path.hasPrefix("data/recordings") || path.hasPrefix("data/uploads") else { continue }
        #expect(before[path] == content, "\(path)")
      }
      let upload = places.fixture.upload
      var expected = try places.files(of: "data")
      expected["uploads/\(upload).part"] = nil
      var shared = try places.sharedFiles()
      let bytes = shared.filter { $0.key.hasPrefix("uploads/") }
      #expect(Array(bytes.values) == [places.fixture.uploadBytes])
      for key in bytes.keys { shared[key] = nil }
      #expect(shared == expected)
      #expect(try places.catalog.read { try $0.rows("SELECT object FROM garbage").count } == 0)
      #expect(try places.catalog.upload(upload)?.tenant.name == "acme")
      let job = try #require(try places.catalog.job(places.fixture.runningJob))
      #expect(job.state == .queued && job.failures == 0 && job.interruptions == 1 && job.leaseUntil == nil)

      let returned = try places.back()
      #expect(returned.problems == [] && returned.recordings == 3 && returned.uploads == 1)
      #expect(try Self.digest(of: places.folder("back")) == rows)
      expected["uploads/\(upload).part"] = places.fixture.uploadBytes
      #expect(try places.files(of: "back") == expected)
      let check = try DataCheck { _ in nil }.run(in: MediaStore(lookingAt: places.folder("back")))
      #expect(check.isSound && check.recordings == 3, "\(check)")
      try MediaStore(lookingAt: places.folder("back")).checkIsDataFolder()
    }
  }

  @Test("an upload whose objects aren't all known is a problem")
  func missingUploadObject() async throws {
    try await run(.bucket) { places in
      _ = try places.away()
      try places.catalog.write { _ = try $0.run("DELETE FROM upload_objects", bound: []) }
      #expect(try places.back().problems.map(\.code) == ["upload_damaged"])
    }
  }

  @Test("what each tenant uses is counted once")
  func usage() async throws {
    try await run(.bucket) { places in
      _ = try places.away()
      let there = try places.catalog.storedByTenant()
      #expect(try Catalog(path: places.fixture.data.store.catalogPath).storedByTenant() == there)
      // The triggers count again.
      let id = places.fixture.recordings[1].id
      _ = try places.catalog.deleteRecording(id)
      let left = try places.catalog.storedByTenant()
      #expect(left != there)
    }
  }

  @Test("a move that ends anywhere goes on when it is run again", arguments: Kind.allCases)
  func resumption(kind: Kind) async throws {
    try await run(kind) { places in
      let rows = try Self.digest(of: places.fixture.data.path)
      #expect(throws: StorageError.cancelled) { try places.away { _ in false } }
      #expect(throws: StorageError.unfinishedMove(path: nil, from: nil)) { try places.catalog.boundMedia() }
      for count in stride(from: 0, to: 40, by: 3) where kind == .bucket {
        for _ in 0..<count { places.server.fail(.none) }
        places.server.fail(.refuses(403, code: "AccessDenied"))
        _ = try? places.away()
        places.server.heal()
      }
      let moved = try places.away()
      #expect(moved.problems == [] && moved.recordings == 3)
      #expect(try CatalogDigest(of: places.catalog) == rows)
      // Nothing is left to do, and nothing is done twice.
      let again = try places.away()
      #expect(again.recordings == 3 && again.files == 0)

      #expect(throws: StorageError.cancelled) { try places.back { _ in false } }
      #expect(throws: StorageError.unfinishedMove(path: places.folder("back"), from: "the cluster")) {
        try MediaStore(lookingAt: places.folder("back")).checkIsDataFolder()
      }
      let returned = try places.back()
      #expect(returned.recordings == 3)
      #expect(try Self.digest(of: places.folder("back")) == rows)
    }
  }

  @Test("a move that was killed after the rows were written ends, unless the source has changed since")
  func writtenRows() async throws {
    try await run(.bucket) { places in
      _ = try places.away()
      let id = try #require(try places.catalog.boundMedia().id)
      let killed = MovingBinding(media: id, run: UUIDv7())
      try places.catalog.bind(killed, insteadOf: places.catalog.movingBinding())
      #expect(try places.away().recordings == 3)
      #expect(try places.catalog.boundMedia().id == id)

      try places.catalog.bind(killed, insteadOf: places.catalog.movingBinding())
      try places.fixture.data.execute("UPDATE recordings SET name = 'other'")
      #expect(try places.away().recordings == 3)
      #expect(try places.catalog.recordings(limit: 9).map(\.name) == ["other", "other", "other"])
    }
  }

  @Test("a bucket that fails in between leaves a move that goes on")
  func failingStore() async throws {
    try await run(.bucket) { places in
      places.server.setQuota(bytes: 300)
      #expect(throws: StorageError.storeFull) { try places.away() }
      places.server.setQuota(bytes: .max)
      places.server.fail(.none, .none, .none, .refuses(503, code: "SlowDown"))
      let failure = #expect(throws: StorageError.self) { try places.away() }
      #expect(failure?.isAboutStore == true)
      places.server.heal()
      let moved = try places.away()
      #expect(moved.recordings == 3)
      #expect(throws: StorageError.objectStore(detail: "the key is refused (SignatureDoesNotMatch)")) {
        try places.media(secret: "wrong")
      }
    }
  }

  @Test("what is wrong at the source is listed, and no rows are copied", arguments: Kind.allCases)
  func damagedSource(kind: Kind) async throws {
    try await run(kind) { places in
      let (first, second) = (places.fixture.recordings[0], places.fixture.recordings[1])
      let store = places.fixture.data.store
      try write("sound X", to: store.folder(of: second.id) + "/audio.wav")
      try FileSystem.remove(store.folder(of: first.id) + "/audio.wav")
      try write("bytes", to: store.path(ofPart: places.fixture.upload))
      let report = try places.away()
      #expect(Set(report.problems.map(\.code)) == ["audio_missing", "audio_damaged"])
      #expect(Set(report.problems.map(\.path)) == ["\(first.audioKey!)", "\(second.audioKey!)"])
      #expect(try !places.catalog.hasMovedRows())

      try write("sound 0", to: store.folder(of: first.id) + "/audio.wav")
      try write("sound 1", to: store.folder(of: second.id) + "/audio.wav")
      #expect(try places.away().problems.map(\.code) == ["upload_damaged"])
      try write(places.fixture.uploadBytes, to: store.path(ofPart: places.fixture.upload))
      // A conversion is made again when it is needed.
      try FileSystem.remove(store.folder(of: first.id) + "/converted-1.mp3")
      let moved = try places.away()
      #expect(moved.problems == [])
      let conversion = try places.catalog.conversion(of: first.id, to: "mp3")
      #expect((conversion == nil) == (moved.lostConversions == 1))
      try places.fixture.data.execute("UPDATE recordings SET sample_rate = -1")
      #expect(try places.away().problems.count == 3)
    }
  }

  /// How a waveform that a row names isn't there.
  enum Loss: CaseIterable, Sendable { case missing, damaged, owed, ofTheWorkingCopy }

  @Test("what the service makes again is left out if it is lost, both ways", arguments: Kind.allCases, Loss.allCases)
  func lostParts(kind: Kind, loss: Loss) async throws {
    try await run(kind) { places in
      let (id, store) = (places.fixture.recordings[0].id, places.fixture.data.store)
      let (waveform, working) = ("recordings/\(id)/waveform-1.pyramid", "recordings/\(id)/working-1.wav")
      let lost = loss == .ofTheWorkingCopy ? working : waveform
      switch loss {
      case .missing: try FileSystem.remove("\(store.directory)/\(waveform)")
      case .damaged: try write("a damaged file", to: "\(store.directory)/\(waveform)")
      case .owed: try places.fixture.data.execute("UPDATE recordings SET waveform_state = 'failed'")
      case .ofTheWorkingCopy: try write("short", to: "\(store.directory)/\(working)")
      }
      let rows = try Self.digest(of: store.directory)
      var expected = try places.files(of: "data")
      expected[lost] = nil
      if loss == .ofTheWorkingCopy { expected[working + ".map"] = nil }

      #expect(throws: StorageError.cancelled) { try places.away { _ in false } }
      let moved = try places.away()
      #expect(moved.problems == [] && moved.lostWaveforms == 1 && moved.recordings == 3)
      #expect(try CatalogDigest(of: places.catalog) == rows)
      expected["uploads/\(places.fixture.upload).part"] = nil
      #expect(try Set(places.sharedFiles().keys.filter { $0.hasPrefix("recordings") }) == Set(expected.keys))
      #expect(try places.catalog.read { try $0.rows("SELECT object FROM garbage").count } == 0)

      let returned = try places.back()
      #expect(returned.problems == [] && returned.lostWaveforms == 1)
      #expect(try Self.digest(of: places.folder("back")) == rows)
      #expect(try places.files(of: "back")[lost] == nil)
    }
  }

  @Test("a waveform that is lost at the shared place is left out on the way back", arguments: Kind.allCases)
  func lostThere(kind: Kind) async throws {
    try await run(kind) { places in
      _ = try places.away()
      let key = "recordings/\(places.fixture.recordings[0].id)/waveform-1.pyramid"
      for (number, bytes) in ([nil, "a damaged file"] as [String?]).enumerated() {
        if kind == .folder {
          try FileSystem.remove(places.folder("media/" + key))
          if let bytes { try write(bytes, to: places.folder("media/" + key)) }
        } else if let bytes {
          places.server.put(Array(bytes.utf8), as: "stillwave/" + key, in: "media")
        } else {
          places.server.remove("stillwave/" + key, in: "media")
        }
        let returned = try places.back(to: "back-\(number)")
        #expect(returned.problems == [] && returned.lostWaveforms == 1)
        #expect(try places.files(of: "back-\(number)")[key] == nil)
      }
    }
  }

  // A second move to a shared folder doesn't begin: it has a lock.
  @Test("of two moves into one place, only the one that began last goes on")
  func twoMoves() async throws {
    try await run(.bucket) { places in
      let source = try MoveSource(dataFolder: places.fixture.data.path)
      @Sendable func target() throws -> SharedMoveTarget {
        try SharedMoveTarget(places.catalog, places.media(), name: "the cluster")
      }
      let (first, second) = (try target(), try target())
      #expect(throws: StorageError.otherMove) { try places.move(source, first).run() }
      #expect(try !places.catalog.hasMovedRows())
      // The next one has begun, and removed the rows, just before this one would have ended.
      let overtaken = ChangingTarget(second, at: .end) {
        let third = try target()
        #expect(third.state == .written)
        try third.clear()
      }
      #expect(throws: StorageError.otherMove) { try places.move(source, overtaken).run() }
      #expect(throws: StorageError.unfinishedMove(path: nil, from: nil)) { try places.catalog.boundMedia() }
      #expect(try places.move(source, target()).run().recordings == 3)
      #expect(try places.catalog.boundMedia().hasContent)
    }
  }

  @Test("a recording that is deleted before an interrupted move goes on doesn't come back", arguments: Kind.allCases)
  func deletedMeanwhile(kind: Kind) async throws {
    try await run(kind) { places in
      _ = try places.away()
      let copied = places.folder("back/recordings")
      #expect(throws: StorageError.cancelled) {
        try places.back { _ in ((try? FileSystem.names(in: copied).count) ?? 0) < 3 }
      }
      let id = places.fixture.recordings[1].id
      _ = try places.catalog.deleteRecording(id)
      let returned = try places.back()
      #expect(returned.problems == [] && returned.recordings == 2 && returned.forgottenRecordings == 1)
      let store = MediaStore(lookingAt: places.folder("back"))
      let catalog = try Catalog(path: store.catalogPath)
      #expect(Reconciliation(catalog: catalog, store: store).run(verified: true).adopted == 0)
      #expect(try catalog.recording(id) == nil && store.orphanCount() == 1)
    }
  }

  @Test("a move refuses a place that isn't empty, isn't free, or isn't the right one", arguments: Kind.allCases)
  func refusals(kind: Kind) async throws {
    try await run(kind) { places in
      // In use.
      let service = try MediaStore(directory: places.fixture.data.path)
      try service.claim()
      #expect(throws: StorageError.inUse(path: places.fixture.data.path)) { try places.away() }
      withExtendedLifetime(service) {}
    }
    try await run(kind) { places in
      // Not empty: rows, and recordings without them.
      try places.catalog.insert(sample())
      #expect(throws: StorageError.notEmpty(path: "the cluster")) { try places.away() }
      try places.catalog.write { _ = try $0.run("DELETE FROM recordings", bound: []) }
      try places.catalog.write { _ = try $0.run("DELETE FROM usage", bound: []) }
      #expect(try places.away().recordings == 3)
      // Not a folder of its own, or one with another move.
      try write("letter", to: places.folder("letter.txt"))
      #expect(throws: StorageError.notEmpty(path: places.folder(""))) { try places.back(to: "") }
      #expect(throws: StorageError.cancelled) { try places.back { _ in false } }
      #expect(throws: StorageError.unfinishedMove(path: places.folder("back"), from: "the cluster")) {
        try FolderMoveTarget(places.folder("back"), from: "another", mediaID: "")
      }
      #expect(throws: StorageError.unfinishedMove(path: places.folder("back"), from: "the cluster")) {
        try MoveSource(dataFolder: places.folder("back"))
      }
      // Other media than the catalog's.
      try places.catalog.write { _ = try $0.run("UPDATE media_folder SET id = '\(UUIDv7().text)'", bound: []) }
      #expect(throws: (any Error).self) { try places.back(to: "other") }
    }
    try await run(kind) { places in
      // Media of another catalog.
      let media = try places.media()
      _ = try media.makeMediaID(nil)
      try media.put([1], as: "recordings/\(places.fixture.recordings[0].id)/audio.wav", begins: true)
      #expect(throws: StorageError.notEmpty(path: media.name)) {
        try SharedMoveTarget(places.catalog, media, name: "the cluster")
      }
    }
  }

  @Test("a change of the source while it is moved is noticed", arguments: Kind.allCases)
  func changedSource(kind: Kind) async throws {
    try await run(kind) { places in
      let (data, upload) = (places.fixture.data, places.fixture.upload)
      let changes = [
        "UPDATE uploads SET offset = 5 WHERE id = '\(upload)'",
        "UPDATE recordings SET audio_key = 'recordings/' || id || '/audio-2.wav'",
      ]
      for change in changes {
        let hasChanged = Atomic(false)
        let catalog = places.catalog
        let target = try SharedMoveTarget(catalog, places.media(), name: "the cluster")
        let changing = ChangingTarget(target) {
          if !hasChanged.exchange(true, ordering: .relaxed) { try data.execute(change) }
        }
        #expect(throws: StorageError.sourceChanged) {
          try places.move(MoveSource(dataFolder: data.path), changing).run()
        }
        #expect(try !catalog.hasMovedRows())
        try data.execute(
          """
          UPDATE uploads SET offset = \(places.fixture.uploadBytes.utf8.count) WHERE id = '\(upload)';
          UPDATE recordings SET audio_key = 'recordings/' || id || '/audio.wav';
          """)
      }
      #expect(try places.away().recordings == 3)
    }
  }

  @Test("each table of both schemas is moved, or left out for a reason, and so is each column")
  func columns() throws {
    let others: Set = [
      "attempts", "garbage", "removals", "held_keys", "upload_segments", "upload_objects", "heartbeat", "media_folder",
      "schema_migrations", "server_epoch",
    ]
    let folder = try TemporaryFolder()
    let lists = [
      (
        try SQLiteEngine(path: folder("catalog.sqlite")) as any SQLEngine,
        """
        SELECT tables.name || '.' || columns.name AS name FROM sqlite_master AS tables
        JOIN pragma_table_info(tables.name) AS columns
        WHERE tables.type = 'table' AND tables.name NOT LIKE 'recording_names%' AND tables.name NOT LIKE 'sqlite_%'
        """
      ),
      (
        try #require(try PostgresCatalogs.engine(path: folder("columns"))),
        """
        SELECT CAST(table_name || '.' || column_name AS text) AS name FROM information_schema.columns
        WHERE table_schema = current_schema()
        """
      ),
    ]
    let columns = try lists.map { engine, sql in
      Set(try engine.read { try $0.rows(sql).map { try value($0, "name") as String } })
        .filter { !others.contains(String($0.prefix { $0 != "." })) }
    }
    // A column that only one engine has can't be moved.
    let leftOut = Set(MovedTable.all.flatMap { table in table.omitted.map { "\(table.name).\($0)" } })
    #expect(columns[0].subtracting(leftOut) == columns[1].subtracting(leftOut))
    #expect(leftOut.isSubset(of: columns[0]))
    #expect(Set(columns[0].map { String($0.prefix { $0 != "." }) }) == Set(MovedTable.all.map(\.name)))
  }
}
