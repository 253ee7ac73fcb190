import PresentRows
import Synchronization

@testable import Storage

/// An engine that notes which statements run, and how many rows each returns or changes.
final class StatementNotes: PassingEngine {
  struct Note: Equatable {
    let sql: String
    let rows: Int
  }

  let engine: any SQLEngine
  private let notes = Mutex<[Note]>([])

  init(_ engine: any SQLEngine) { self.engine = engine }

  /// Returns what has been noted since the last call.
  func take() -> [Note] {
    notes.withLock { notes in
      defer { notes = [] }
      return notes
    }
  }

  private func note(_ sql: String, _ rows: Int) { notes.withLock { $0.append(Note(sql: sql, rows: rows)) } }

  func read<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value {
    try engine.read { try body(Session($0, self)) }
  }

  func write<Value: Sendable>(
    _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
  ) throws(StorageError) -> Value {
    try engine.write(isolation) { try body(Session($0, self)) }
  }

  private final class Session: SQLSession {
    private let session: any SQLSession
    private let notes: StatementNotes

    init(_ session: any SQLSession, _ notes: StatementNotes) { (self.session, self.notes) = (session, notes) }

    var dialect: SQLDialect { session.dialect }

    func rows(_ sql: String, bound arguments: [SQLValue]) throws(StorageError) -> [SQLRow] {
      let rows = try session.rows(sql, bound: arguments)
      notes.note(sql, rows.count)
      return rows
    }

    func eachRow(_ sql: String, bound arguments: [SQLValue], _ body: (SQLRow) throws -> Bool) throws {
      var count = 0
      try session.eachRow(sql, bound: arguments) { row in
        count += 1
        return try body(row)
      }
      notes.note(sql, count)
    }

    func run(_ sql: String, bound arguments: [SQLValue]) throws(StorageError) -> Int {
      let count = try session.run(sql, bound: arguments)
      notes.note(sql, count)
      return count
    }
  }
}
