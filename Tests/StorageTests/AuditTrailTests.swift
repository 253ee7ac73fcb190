import PresentRows
import Testing

@testable import Storage

@Suite(.onEveryEngine) struct AuditTrailTests {
  private let folder: TemporaryFolder
  private let catalog: Catalog

  init() throws {
    folder = try TemporaryFolder()
    catalog = try Catalog(at: folder("catalog.sqlite"))
  }

  private func trail(_ id: String = "a", isDueAtOnce: Bool = false) -> AuditTrail {
    AuditTrail(isDueAtOnce: isDueAtOnce) { changes in
      [AuditEntry(id: id, line: changes.recordings.map(\.id.text).joined())]
    }
  }

  private func under(_ trail: AuditTrail, _ body: () throws -> Void) rethrows {
    try AuditTrail.$current.withValue(trail, operation: body)
  }

  private func all() throws -> [AuditEntry] {
    try catalog.read { db in
      try db.rows("SELECT id, line FROM audit_lines ORDER BY id").map {
        AuditEntry(id: try value($0, "id"), line: try value($0, "line"))
      }
    }
  }

  @Test("the line of a change is committed with it, once for several transactions, and not with a refused one")
  func transactions() throws {
    let (recording, trail) = (sample(), trail())
    let orphan = Job(kind: .denoise, recording: RecordingID())
    under(trail) { #expect(throws: StorageError.self) { try catalog.insert(sample(), jobs: [orphan]) } }
    // A transaction that changes nothing has no line either.
    try under(trail) { _ = try catalog.deleteRecording(RecordingID()) }
    #expect(try !trail.isCommitted && all() == [])
    try under(trail) {
      try catalog.insert(recording)
      try catalog.update(recording.id) { $0.name = "b" }
    }
    #expect(try trail.isCommitted && all() == [AuditEntry(id: "a", line: recording.id.text)])
    try catalog.forgetAuditLines(["a"])
    trail.close()
    try under(trail) { try catalog.update(recording.id) { $0.name = "c" } }
    try catalog.update(recording.id) { $0.name = "d" }
    #expect(try all() == [])
  }

  @Test("a line that its process may write soon is taken only with all; one that is due, by one process at a time")
  func taking() throws {
    let (first, second) = (sample(), sample())
    try under(trail("a")) { try catalog.insert(first) }
    try under(trail("b", isDueAtOnce: true)) { try catalog.insert(second) }
    #expect(try catalog.takeAuditLines() == [AuditEntry(id: "b", line: second.id.text)])
    #expect(try catalog.takeAuditLines() == [])
    #expect(try catalog.takeAuditLines(all: true).map(\.id) == ["a", "b"])
    try catalog.forgetAuditLines(["b", "c"])
    #expect(try all().map(\.id) == ["a"])
    func makeDue() throws {
      _ = try catalog.engine.write(.statementLocks) { try $0.run("UPDATE audit_lines SET due = 0", []) }
    }
    try makeDue()
    // A later transaction shows that its process goes on.
    try under(trail("a")) { try catalog.update(first.id) { $0.name = "b" } }
    #expect(try catalog.takeAuditLines() == [])
    try makeDue()
    #expect(try catalog.takeAuditLines().map(\.id) == ["a"], "overdue")
  }
}
