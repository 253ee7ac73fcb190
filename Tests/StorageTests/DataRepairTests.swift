import Foundation
import Testing

@testable import Storage

@Suite struct DataRepairTests {
  let data: DataFolder

  init() throws { data = try DataFolder() }

  private func names() throws -> [String] {
    let catalog = try Catalog(path: data.store.catalogPath)
    defer { try? catalog.close() }
    return try catalog.recordings(limit: 9).map(\.name).sorted()
  }

  private var catalogFiles: [String] {
    get throws {
      try FileManager.default.contentsOfDirectory(atPath: data.path)
        .filter { $0.hasPrefix("catalog") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") }.sorted()
    }
  }

  private let all = ["talk 0.wav", "talk 1.wav", "talk 2.wav"]

  @Test("rows of a damaged catalog are read, also if their table lacks columns")
  func salvageWithoutColumns() throws {
    for column in ["noise_regions", "media", "working_key", "compared_at"] {
      try data.execute("ALTER TABLE recordings DROP COLUMN \(column)")
    }
    try data.execute("DROP TABLE jobs")
    try data.forgetDescriptions()
    try data.repair()
    #expect(try names() == all)
    #expect(data.store.orphanCount() == 0)
  }

  @Test("a row that lost the length and hash of its audio gets them from the audio")
  func salvageWithoutHash() throws {
    try data.execute("ALTER TABLE recordings RENAME COLUMN sha256 TO sha25")
    try data.forgetDescriptions()
    try data.repair()
    let catalog = try Catalog(path: data.store.catalogPath)
    #expect(try Set(catalog.recordings(limit: 9).map(\.sha256)) == Set(data.recordings.map(\.sha256)))
  }

  @Test("every recording is repaired, however many are read at once")
  func batches() throws {
    try data.forgetDescriptions()
    try data.execute("UPDATE recordings SET sample_rate = -1 WHERE id = '\(data.recordings[1].id)'")
    let done = try DataRepair(data.store, batch: 1, pyramidFault: { _ in nil }).run()
    #expect(done.done == ["2 descriptions were written again."])
  }

  @Test("the damaged catalog is kept next to the new one")
  func damagedCatalogIsKept() throws {
    try data.execute("DROP TABLE jobs")
    let bytes = try Data(contentsOf: URL(fileURLWithPath: data.store.catalogPath))
    try data.repair()
    let files = try catalogFiles
    #expect(files.count == 2 && files[1].hasPrefix("catalog.sqlite.damaged-"))
    #expect(try Data(contentsOf: URL(fileURLWithPath: data.path + "/" + files[1])) == bytes)
    #expect(try data.repair() == DataRepair.Outcome())
    #expect(try catalogFiles == files)
  }

  /// The points at which a repair may be killed.
  enum Kill: CaseIterable {
    case whileBuilding, beforeTheLogIsMoved, beforeTheNewOneIsInPlace
  }

  @Test("a killed repair is completed by the next one without losing a row", arguments: Kill.allCases)
  func killed(_ kill: Kill) throws {
    try data.forgetDescriptions()
    // The last row is only in the log.
    let aside = data.store.catalogPath + ".damaged-" + UUIDv7().text
    let open = try Catalog(path: data.store.catalogPath)
    try open.update(data.recordings[2].id) { $0.name = "renamed.wav" }
    let copy = data.folder("copy")
    for suffix in ["", "-wal"] { try FileSystem.copy(data.store.catalogPath + suffix, to: copy + suffix) }
    try open.close()
    for suffix in ["", "-wal", "-shm"] { try FileSystem.remove(data.store.catalogPath + suffix) }
    let (base, log) =
      switch kill {
      case .whileBuilding: (data.store.catalogPath, data.store.catalogPath)
      case .beforeTheLogIsMoved: (aside, data.store.catalogPath)
      case .beforeTheNewOneIsInPlace: (aside, aside)
      }
    try FileSystem.rename(copy, to: base)
    try FileSystem.rename(copy + "-wal", to: log + "-wal")
    if kill == .whileBuilding { try damageSchema() }
    let rebuilt = data.store.catalogPath + ".rebuilt-" + UUIDv7().text
    for suffix in ["", "-wal", "-shm"] { try write("half", to: rebuilt + suffix) }

    try data.repair()
    #expect(try names() == ["renamed.wav", "talk 0.wav", "talk 1.wav"])
    #expect(try !catalogFiles.contains { $0.contains("rebuilt") })
    #expect(data.store.orphanCount() == 0)
  }

  private func damageSchema() throws {
    // Kept open until the end, so that the log remains.
    try SQLiteConnection(data.store.catalogPath).execute("DROP TABLE jobs")
  }
}
