import CSQLite
import Terms

/// A connection to an SQLite file, which is also the session of its transactions. It keeps prepared statements by their
/// text.
///
/// Blocks while another process writes, for as long as the creator says. Not thread-safe, except for `interrupt`.
@safe final class SQLiteConnection: SQLSession, @unchecked Sendable {
  // Unchecked because only one caller uses a connection at a time: the one that took it from its engine or created it.

  /// nil once it is closed.
  private var handle: OpaquePointer?
  private var statements: [String: SQLiteStatement] = [:]
  private var isInTransaction = false

  var dialect: SQLDialect { .sqlite }

  /// Opens the file `path`, and creates it unless the connection only reads; ":memory:" is a database in memory.
  ///
  /// `settings` are statements to run first. Throws `.damagedCatalog` if the file isn't a database.
  init(
    _ path: String, isReadOnly: Bool = false, patienceSeconds: Double = 0, settings: String = ""
  ) throws(StorageError) {
    let access = isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
    let code = unsafe sqlite3_open_v2(path, &handle, access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
    guard code == SQLITE_OK else { throw failure }
    unsafe stillwave_refuse_quoted_text(handle)
    unsafe sqlite3_busy_timeout(handle, Int32(patienceSeconds * 1000))
    unsafe addNumberFunction()
    try execute("PRAGMA foreign_keys = ON; \(settings)")
    // SQLite reads the file only now.
    try execute("SELECT 1 FROM sqlite_schema LIMIT 1")
  }

  /// The function `recording_number(id)`: `RecordingID.number`, or NULL if the text is no ID.
  @unsafe private func addNumberFunction() {
    unsafe sqlite3_create_function_v2(
      handle, "recording_number", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nil,
      { context, _, values in
        guard let value = unsafe values?[0], unsafe sqlite3_value_type(value) == SQLITE_TEXT,
          let text = unsafe sqlite3_value_text(value), let id = unsafe RecordingID(String(cString: text))
        else { return }
        unsafe sqlite3_result_int64(context, id.number)
      }, nil, nil, nil)
  }

  deinit {
    statements = [:]
    unsafe sqlite3_close_v2(handle)
  }

  /// Closes the connection. Later calls throw.
  func close() throws(StorageError) {
    statements = [:]
    guard unsafe sqlite3_close(handle) == SQLITE_OK else { throw failure }
    unsafe handle = nil
  }

  // MARK: Statements

  func rows(_ sql: String, bound arguments: [SQLValue]) throws(StorageError) -> [SQLRow] {
    let statement = try prepared(sql, arguments)
    defer { statement.reset() }
    var rows: [SQLRow] = []
    while try step(statement) { rows.append(statement.row) }
    return rows
  }

  func eachRow(_ sql: String, bound arguments: [SQLValue], _ body: (SQLRow) throws -> Bool) throws {
    let statement = try prepared(sql, arguments)
    defer { statement.reset() }
    while try step(statement), try body(statement.row) {}
  }

  func run(_ sql: String, bound arguments: [SQLValue]) throws(StorageError) -> Int {
    let statement = try prepared(sql, arguments)
    defer { statement.reset() }
    while try step(statement) {}
    return unsafe Int(sqlite3_changes(handle))
  }

  /// Runs statements without arguments, separated by semicolons, whose results aren't needed.
  func execute(_ script: String) throws(StorageError) {
    try checkOpen()
    guard unsafe sqlite3_exec(handle, script, nil, nil, nil) == SQLITE_OK else { throw failure }
  }

  /// Runs `body` in a transaction and commits it, or rolls it back if `body` throws.
  func transaction<Value>(
    _ beginning: String = "BEGIN IMMEDIATE", _ body: () throws -> Value
  ) throws(StorageError) -> Value {
    try run(beginning)
    isInTransaction = true
    defer { isInTransaction = false }
    do {
      let value = try body()
      try run("COMMIT")
      return value
    } catch {
      if unsafe sqlite3_get_autocommit(handle) == 0 { try? execute("ROLLBACK") }
      throw StorageError(error)
    }
  }

  private func prepared(_ sql: String, _ arguments: [SQLValue]) throws(StorageError) -> SQLiteStatement {
    try checkOpen()
    // After some errors, SQLite has rolled back the transaction by itself, and would commit each further statement.
    guard unsafe !isInTransaction || sqlite3_get_autocommit(handle) == 0 else {
      throw .database(code: SQLITE_ABORT, message: "the transaction was aborted")
    }
    let statement: SQLiteStatement
    if let kept = statements[sql] {
      statement = kept
    } else {
      guard let new = unsafe SQLiteStatement(sql, handle) else { throw failure }
      statements[sql] = new
      statement = new
    }
    guard statement.argumentCount == arguments.count else {
      throw .database(code: SQLITE_RANGE, message: "wrong number of arguments")
    }
    guard statement.bind(arguments) else { throw failure }
    return statement
  }

  /// Returns whether there is another row.
  private func step(_ statement: SQLiteStatement) throws(StorageError) -> Bool {
    switch statement.step() {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default: throw failure
    }
  }

  private func checkOpen() throws(StorageError) {
    if unsafe handle == nil { throw .database(code: SQLITE_MISUSE, message: "the connection is closed") }
  }

  /// The error of the last call.
  private var failure: StorageError {
    let code = unsafe sqlite3_extended_errcode(handle)
    let message = unsafe String(cString: sqlite3_errmsg(handle))
    switch code & 0xFF {
    case SQLITE_FULL: return .diskFull
    case SQLITE_CORRUPT, SQLITE_NOTADB: return .damagedCatalog(path: "", detail: message)
    default: return .database(code: code, message: message)
    }
  }

  // MARK: Maintenance

  /// Moves the log into the main file and empties it. Throws if another connection is in the way.
  func checkpoint() throws(StorageError) {
    try checkOpen()
    guard unsafe sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil) == SQLITE_OK else {
      throw failure
    }
  }

  /// Frees prepared statements, and pages that are cached and not in use.
  func releaseMemory() {
    statements = [:]
    unsafe sqlite3_db_release_memory(handle)
  }

  /// Makes the statement in progress fail with SQLITE_INTERRUPT. The connection must be open.
  func interrupt() { unsafe sqlite3_interrupt(handle) }
}

/// A prepared statement, used by the connection that has it.
@safe private final class SQLiteStatement {
  private let handle: OpaquePointer
  private lazy var columns = (0..<(unsafe sqlite3_column_count(handle))).map { column in
    unsafe sqlite3_column_name(handle, column).map { unsafe String(cString: $0) } ?? ""
  }

  /// Prepares the only statement of a text. Returns nil with the connection's error if it isn't valid.
  @unsafe init?(_ sql: String, _ connection: OpaquePointer?) {
    var statement: OpaquePointer?
    unsafe sqlite3_prepare_v3(connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
    guard let statement = unsafe statement else { return nil }
    unsafe handle = statement
  }

  deinit { unsafe sqlite3_finalize(handle) }

  var argumentCount: Int { unsafe Int(sqlite3_bind_parameter_count(handle)) }

  /// Binds copies of the arguments. Returns false with the connection's error if one is too large.
  func bind(_ arguments: [SQLValue]) -> Bool {
    for (index, argument) in zip(Int32(1)..., arguments) {
      let code =
        switch argument {
        case .null: unsafe sqlite3_bind_null(handle, index)
        case .integer(let number): unsafe sqlite3_bind_int64(handle, index, number)
        case .real(let number): unsafe sqlite3_bind_double(handle, index, number)
        case .text(let text):
          unsafe stillwave_bind_text(handle, index, text, UInt64(text.utf8.count))
        case .blob(let bytes):
          unsafe stillwave_bind_blob(handle, index, bytes, UInt64(bytes.count))
        }
      guard code == SQLITE_OK else { return false }
    }
    return true
  }

  func step() -> Int32 { unsafe sqlite3_step(handle) }

  /// Ends the statement and frees its arguments.
  func reset() {
    unsafe sqlite3_reset(handle)
    unsafe sqlite3_clear_bindings(handle)
  }

  /// A copy of the row that the last step has reached.
  var row: SQLRow { SQLRow(columns: columns, values: columns.indices.map { value(Int32($0)) }) }

  private func value(_ column: Int32) -> SQLValue {
    // The type comes first, and the length after the pointer: https://sqlite.org/c3ref/column_blob.html
    switch unsafe sqlite3_column_type(handle, column) {
    case SQLITE_INTEGER: return .integer(unsafe sqlite3_column_int64(handle, column))
    case SQLITE_FLOAT: return .real(unsafe sqlite3_column_double(handle, column))
    case SQLITE_TEXT:
      let text = unsafe UnsafeRawPointer(sqlite3_column_text(handle, column))
      return .text(unsafe String(decoding: bytes(text, column), as: UTF8.self))
    case SQLITE_BLOB:
      let blob = unsafe sqlite3_column_blob(handle, column)
      return .blob(unsafe Array(bytes(blob, column)))
    default: return .null
    }
  }

  @unsafe private func bytes(_ start: UnsafeRawPointer?, _ column: Int32) -> UnsafeRawBufferPointer {
    unsafe UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(handle, column)))
  }
}

extension StorageError {
  /// Converts an error of a transaction's body.
  init(_ error: any Error) {
    self = error as? StorageError ?? .database(code: SQLITE_ERROR, message: String(describing: error))
  }
}
