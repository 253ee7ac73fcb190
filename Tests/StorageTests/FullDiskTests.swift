import Testing

@testable import Storage

@Suite struct FullDiskTests {
  @Test("a full disk fails a write, which changes nothing")
  func fullDisk() throws {
    let folder = try TemporaryFolder()
    let catalog = try Catalog(path: folder("catalog.sqlite"))
    try catalog.check()
    try catalog.sqlite.withWriter { try $0.execute("PRAGMA max_page_count = 1") }
    #expect(throws: StorageError.diskFull) {
      try catalog.insert(sample(String(repeating: "x", count: 1_000_000)))
    }
    #expect(try catalog.recordings(limit: 9).isEmpty)
  }
}
