import FoundationEssentials
import GRDB

/// A transaction on one of the pool's connections, which keeps prepared statements by their text.
final class SQLiteSession: SQLSession {
  private let db: Database

  var dialect: SQLDialect { .sqlite }

  init(_ db: Database) { self.db = db }

  func rows(_ sql: String, bound arguments: [SQLValue]) throws(StorageError) -> [SQLRow] {
    do {
      let statement = try db.cachedStatement(sql: sql)
      let cursor = try Row.fetchCursor(statement, arguments: StatementArguments(arguments.map(\.stored)))
      let columns = statement.columnNames
      var rows: [SQLRow] = []
      while let row = try cursor.next() { rows.append(SQLRow(row, columns)) }
      return rows
    } catch {
      throw StorageError(error)
    }
  }

  func eachRow(_ sql: String, bound arguments: [SQLValue], _ body: (SQLRow) throws -> Bool) throws {
    let statement = try db.cachedStatement(sql: sql)
    let cursor = try Row.fetchCursor(statement, arguments: StatementArguments(arguments.map(\.stored)))
    let columns = statement.columnNames
    while let row = try cursor.next() {
      guard try body(SQLRow(row, columns)) else { return }
    }
  }

  func run(_ sql: String, bound arguments: [SQLValue]) throws(StorageError) -> Int {
    do {
      try db.cachedStatement(sql: sql).execute(arguments: StatementArguments(arguments.map(\.stored)))
      return db.changesCount
    } catch {
      throw StorageError(error)
    }
  }
}

extension SQLRow {
  /// Copies a row of a statement with these columns.
  fileprivate init(_ row: Row, _ columns: [String]) {
    self.init(columns: columns, values: row.databaseValues.map(SQLValue.init))
  }

  /// Copies a row.
  init(_ row: Row) { self.init(row, Array(row.columnNames)) }
}

extension SQLValue {
  fileprivate init(_ value: DatabaseValue) {
    self =
      switch value.storage {
      case .null: .null
      case .int64(let number): .integer(number)
      case .double(let number): .real(number)
      case .string(let text): .text(text)
      case .blob(let data): .blob(Array(data))
      }
  }

  fileprivate var stored: DatabaseValue {
    switch self {
    case .null: .null
    case .integer(let number): number.databaseValue
    case .real(let number): number.databaseValue
    case .text(let text): text.databaseValue
    case .blob(let bytes): Data(bytes).databaseValue
    }
  }
}

extension StorageError {
  /// Converts an error from GRDB.
  init(_ error: any Error) {
    switch error {
    case let error as StorageError:
      self = error
    case let error as DatabaseError where error.resultCode == .SQLITE_FULL:
      self = .diskFull
    case let error as DatabaseError where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode):
      self = .damagedCatalog(path: "", detail: error.message ?? "")
    case let error as DatabaseError:
      self = .database(code: error.extendedResultCode.rawValue, message: error.message ?? "")
    default:
      self = .database(code: ResultCode.SQLITE_ERROR.rawValue, message: String(describing: error))
    }
  }
}
