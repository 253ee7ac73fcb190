import Foundation
import PresentRows
import Synchronization
import Testing

@testable import Storage

// Checks every writing call of the conformance suite: the rows of recordings and jobs that it has changed are those
// that the catalog says it has changed, which other processes and caches hear of. Only on SQLite, whose single writer
// leaves no other transaction between the two looks at a table.

/// An engine that looks at the tables before and after each transaction.
final class NotedEngine: PassingEngine {
  let engine: any SQLEngine
  /// What the last transaction of a thread has changed; nil if the tables are too large to look at.
  private let last = Mutex<[ThreadID: Rows]>([:])
  private static let rowLimit = 40

  struct ThreadID: Hashable {
    let thread = ObjectIdentifier(Thread.current)
  }

  struct Rows: Equatable {
    var recordings: Set<String> = []
    var deleted: Set<String> = []
    var jobs: Set<String> = []
  }

  init(_ engine: SQLiteEngine) { self.engine = engine }

  /// Compares what the thread's last transaction has changed with what the catalog says.
  func check(_ changes: CatalogChanges) {
    guard let rows = last.withLock({ $0.removeValue(forKey: ThreadID()) }) else { return }
    let noted = Rows(
      recordings: Set(changes.recordings.map(\.id.text)), deleted: Set(changes.deleted.map(\.id.text)),
      jobs: Set(changes.jobs.map(\.id.text)))
    #expect(rows.recordings.subtracting(noted.recordings).isEmpty, "a recording was changed without a note")
    #expect(rows.deleted.subtracting(noted.deleted).isEmpty, "a recording was deleted without a note")
    #expect(rows.jobs.subtracting(noted.jobs).isEmpty, "a job was changed without a note")
  }

  func write<Value: Sendable>(
    _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
  ) throws(StorageError) -> Value {
    try engine.write(isolation) { session in
      let before = try Self.tables(session)
      let value = try body(session)
      let changed = try before.flatMap { before in try Self.tables(session).map { Self.changes(before, $0) } }
      last.withLock { $0[ThreadID()] = changed }
      return value
    }
  }

  private typealias Tables = (recordings: [String: String], jobs: [String: String])

  private static func tables(_ session: any SQLSession) throws -> Tables? {
    func rows(_ table: String) throws -> [String: String]? {
      let rows = try session.rows("SELECT * FROM \(table) LIMIT \(rowLimit + 1)")
      guard rows.count <= rowLimit else { return nil }
      return Dictionary(
        rows.map { row in
          // Nobody is shown when a lease ends.
          let shown = zip(row.columns, row.values).filter { $0.0 != "lease_until" }.map { "\($0.1)" }
          return (row["id"]?.description ?? "", shown.joined(separator: "|"))
        }, uniquingKeysWith: { $1 })
    }
    guard let recordings = try rows("recordings"), let jobs = try rows("jobs") else { return nil }
    return (recordings, jobs)
  }

  private static func changes(_ before: Tables, _ after: Tables) -> Rows {
    Rows(
      recordings: Set(after.recordings.filter { before.recordings[$0.key] != $0.value }.keys),
      deleted: Set(before.recordings.keys).subtracting(after.recordings.keys),
      jobs: Set(after.jobs.filter { before.jobs[$0.key] != $0.value }.keys))
  }
}

/// The check above finds what it looks for.
@Suite struct NotedEngineTests {
  @Test("a change without a note is found, and one with a note isn't")
  func check() throws {
    let folder = try TemporaryFolder()
    let engine = NotedEngine(try SQLiteEngine(path: folder("catalog.sqlite")))
    let catalog = Catalog(engine: engine)
    let found = Mutex(0)
    catalog.whenChanged { changes in
      withKnownIssue(isIntermittent: true) {
        engine.check(changes)
      } matching: { _ in
        found.withLock { $0 += 1 }
        return true
      }
    }
    let recording = sample()
    try catalog.insert(recording, jobs: [Job(kind: .waveform, recording: recording.id)])
    #expect(found.withLock { $0 } == 0)
    try catalog.write { _ = try $0.run("UPDATE recordings SET name = 'other'") }
    #expect(found.withLock { $0 } == 1)
    try catalog.write { _ = try $0.run("UPDATE jobs SET progress = 0.5") }
    #expect(found.withLock { $0 } == 2)
    try catalog.write { _ = try $0.run("DELETE FROM recordings") }
    #expect(found.withLock { $0 } == 3)
  }
}
