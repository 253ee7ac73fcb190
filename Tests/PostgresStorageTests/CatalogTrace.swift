import Foundation
import PresentRows
import Storage
import Synchronization

/// What a program has done with a catalog: each statement with its arguments and what came of it. A later program can
/// repeat it on a schema that has been migrated since, as nodes of the earlier version will that are still running.
///
/// As a file: JSON, a line for each migration, statement, transaction and message. A value is `null`, a number, a text,
/// `{"real": 0.5}` or `{"blob": "base64"}`.
struct CatalogTrace: Codable, Sendable {
  struct Migration: Codable, Equatable, Sendable {
    var number: Int
    var name: String
    var oldest: Int
    var script: String
  }

  struct Statement: Codable, Sendable {
    var sql: String
    /// The columns of its result; nil if it has none, or never returned a row.
    var columns: [String]?
  }

  struct Call: Codable, Sendable {
    /// The statement's index.
    var statement: Int
    var arguments: [SQLValue]
    var rows: [[SQLValue]]?
    /// The number of changed rows, if no rows were asked for.
    var changed: Int?
  }

  struct Transaction: Codable, Sendable {
    /// `read`, or the name of the isolation with which it wrote.
    var mode: String
    var calls: [Call]
  }

  /// The migrations of the schema.
  var migrations: [Migration] = []
  var statements: [Statement] = []
  /// The transactions, in two parts: tables may be migrated in between.
  var acts: [[Transaction]] = [[]]
  /// The columns, as `table.column`, that had a value in some row after the first part.
  var columns: [String] = []
  /// What other nodes were told.
  var messages: [String] = []

  /// The number of the schema.
  var schema: Int { migrations.count }

  private mutating func index(of sql: String) -> Int {
    if let index = statements.firstIndex(where: { $0.sql == sql }) { return index }
    statements.append(Statement(sql: sql))
    return statements.count - 1
  }

  fileprivate mutating func add(_ mode: String, _ calls: [TracedSession.Call]) {
    let calls = calls.map { call in
      let index = index(of: call.sql)
      if let row = call.rows?.first { statements[index].columns = row.columns }
      return Call(
        statement: index, arguments: call.arguments, rows: call.rows?.map(\.values), changed: call.changed)
    }
    acts[acts.count - 1].append(Transaction(mode: mode, calls: calls))
  }

  // MARK: As a file

  private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures")

  private static func file(_ schema: Int) -> URL { folder.appending(path: "schema-\(schema).json") }

  /// Reads the file of a schema. Returns nil if there is none.
  init?(schema: Int) throws {
    guard FileManager.default.fileExists(atPath: Self.file(schema).path) else { return nil }
    self = try JSONDecoder().decode(Self.self, from: Data(contentsOf: Self.file(schema)))
  }

  init() {}

  /// Writes the file of the schema.
  func write() throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
    func lines(_ values: [some Encodable]) throws -> String {
      try values.map { String(decoding: try encoder.encode($0), as: UTF8.self) }.joined(separator: ",\n")
    }
    let text = """
      {"migrations": [
      \(try lines(migrations))
      ],
      "columns": \(try lines([columns])),
      "statements": [
      \(try lines(statements))
      ],
      "messages": [
      \(try lines(messages))
      ],
      "acts": [[
      \(try acts.map(lines).joined(separator: "\n],\n[\n"))
      ]]}

      """
    try Data(text.utf8).write(to: Self.file(schema))
  }
}

extension SQLValue: Codable {
  private enum Key: String, CodingKey { case real, blob }

  package init(from decoder: any Decoder) throws {
    if let container = try? decoder.container(keyedBy: Key.self) {
      let real = try container.decodeIfPresent(Double.self, forKey: .real)
      self = try real.map { .real($0) } ?? .blob(Array(container.decode(Data.self, forKey: .blob)))
      return
    }
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let number = try? container.decode(Int64.self) {
      self = .integer(number)
    } else {
      self = .text(try container.decode(String.self))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .integer(let number): try container.encode(number)
    case .real(let number): try container.encode(["real": number])
    case .text(let text): try container.encode(text)
    case .blob(let bytes): try container.encode(["blob": Data(bytes)])
    }
  }
}

/// An engine whose transactions are noted. One that fails isn't.
final class TracedEngine: PassingEngine {
  let engine: any SQLEngine
  private let traced = Mutex(CatalogTrace())

  init(_ engine: any SQLEngine) { self.engine = engine }

  var trace: CatalogTrace { traced.withLock { $0 } }

  /// Begins the second part.
  func beginNextAct() { traced.withLock { $0.acts.append([]) } }

  private func note(_ mode: String, _ calls: [TracedSession.Call]) { traced.withLock { $0.add(mode, calls) } }

  func read<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value {
    let (value, calls) = try engine.read { try TracedSession.run($0, body) }
    note("read", calls)
    return value
  }

  func readLatest<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value { try read(body) }

  func write<Value: Sendable>(
    _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
  ) throws(StorageError) -> Value {
    let (value, calls) = try engine.write(isolation) { try TracedSession.run($0, body) }
    note("\(isolation)", calls)
    return value
  }
}

private final class TracedSession: SQLSession {
  struct Call: Sendable {
    var sql: String
    var arguments: [SQLValue]
    var rows: [SQLRow]?
    var changed: Int?
  }

  private let session: any SQLSession
  private var calls: [Call] = []

  private init(_ session: any SQLSession) { self.session = session }

  static func run<Value>(
    _ session: any SQLSession, _ body: (any SQLSession) throws -> Value
  ) throws -> (Value, [Call]) {
    let traced = TracedSession(session)
    return (try body(traced), traced.calls)
  }

  var dialect: SQLDialect { session.dialect }

  func rows(_ sql: String, bound arguments: [SQLValue]) throws(StorageError) -> [SQLRow] {
    let rows = try session.rows(sql, bound: arguments)
    calls.append(Call(sql: sql, arguments: arguments, rows: rows))
    return rows
  }

  func eachRow(_ sql: String, bound arguments: [SQLValue], _ body: (SQLRow) throws -> Bool) throws {
    for row in try rows(sql, bound: arguments) where try !body(row) { return }
  }

  func run(_ sql: String, bound arguments: [SQLValue]) throws(StorageError) -> Int {
    let changed = try session.run(sql, bound: arguments)
    calls.append(Call(sql: sql, arguments: arguments, changed: changed))
    return changed
  }
}

// MARK: - Repeating

extension CatalogTrace {
  /// What a statement returns differently each time: the time, and where a row is.
  private static let changing: Set<String> = ["now", "milliseconds", "row"]

  /// Runs a part of the trace again. Returns the first few differences: statements that fail, or have another outcome.
  /// What an earlier program doesn't ask for, such as more columns, is no difference.
  func repeated(act: Int, on engine: any SQLEngine) -> [String] {
    var differences: [String] = []
    for transaction in acts[act] where differences.count < 3 {
      do throws(StorageError) {
        switch transaction.mode {
        case "read": differences += try engine.read { try repeated(transaction, $0) }
        case "statementLocks": differences += try engine.write(.statementLocks) { try repeated(transaction, $0) }
        case "unflushed": differences += try engine.write(.unflushed) { try repeated(transaction, $0) }
        default: differences += try engine.write(.serializable) { try repeated(transaction, $0) }
        }
      } catch {
        let texts = transaction.calls.map { statements[$0.statement].sql }
        differences.append("\(error) in one of: \(texts.joined(separator: "; "))")
      }
    }
    return differences
  }

  private func repeated(_ transaction: Transaction, _ session: any SQLSession) throws -> [String] {
    var differences: [String] = []
    // A row is where the migrated table has it.
    var places: [String: SQLValue] = [:]
    for call in transaction.calls {
      let statement = statements[call.statement]
      let arguments = call.arguments.map { places[$0.description] ?? $0 }
      guard let expected = call.rows else {
        let changed = try session.run(statement.sql, bound: arguments)
        if changed != call.changed {
          differences.append("\(changed) rows instead of \(call.changed ?? 0): \(statement.sql)")
        }
        continue
      }
      let rows = try session.rows(statement.sql, bound: arguments)
      let columns = statement.columns ?? []
      let known = expected.map { SQLRow(columns: columns, values: $0) }
      for (before, after) in zip(known, rows) {
        if let place = before["row"] { places[place.description] = after["row"] }
      }
      let (wanted, got) = (Self.described(known, columns), Self.described(rows, columns))
      if wanted != got { differences.append("\(got) instead of \(wanted): \(statement.sql)") }
    }
    return differences
  }

  /// Returns a value as a text, from which a number differs.
  private static func described(_ value: SQLValue) -> String {
    if case .text(let text) = value { "\"\(text)\"" } else { "\(value)" }
  }

  /// Returns the rows as texts in no particular order.
  private static func described(_ rows: [SQLRow], _ columns: [String]) -> [String] {
    rows.map { row in
      columns.map { column in
        let value = row[column].map(Self.described) ?? "missing"
        return "\(column): \(changing.contains(column) && row[column] != nil ? "…" : value)"
      }.joined(separator: ", ")
    }.sorted()
  }
}
