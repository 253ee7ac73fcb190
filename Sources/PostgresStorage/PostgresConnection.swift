import CPostgres
import Glibc
import Storage
import Terms

/// A connection to a PostgreSQL server, with its prepared statements.
///
/// Calls block, but not beyond a deadline: libpq is used in its non-blocking mode, because its blocking functions would
/// wait forever for a server that is stopped but whose kernel still acknowledges what it gets. A connection that
/// failed in any other way than by an error of a statement is broken for good.
///
/// Not thread-safe.
@safe final class PostgresConnection: @unchecked Sendable {
  // Unchecked because a connection has one user at a time: the caller that took it, or the listener's queue.

  private let handle: OpaquePointer
  private let settings: PostgresSettings
  /// Names of prepared statements by their text.
  private var statements: [String: String] = [:]
  private var preparedCount = 0
  /// What `ServerEpoch` found.
  private(set) var epoch: String?
  private(set) var isBroken = false
  /// See `PostgresSettings.clock`.
  var clock: Clock { settings.clock }

  /// Maximum number of prepared statements.
  private static let statementLimit = 256
  /// Seconds for the server's response after its own timeout.
  private static let responseSeconds = 5.0

  /// Connects to the first server that accepts, and blocks meanwhile: per host, up to the connection timeout.
  init(_ settings: PostgresSettings) throws(PostgresError) {
    try Libpq.load()
    self.settings = settings
    guard let handle = unsafe Self.connect(settings.parameters) else { throw .cannotConnect(reason: "out of memory") }
    unsafe self.handle = handle
    guard unsafe pq_status(handle) == PQ_CONNECTION_OK else { throw .cannotConnect(reason: libraryMessage) }
    unsafe pq_silence(handle)
    let version = unsafe Int(pq_server_version(handle))
    guard version >= 150_000 else { throw .unsupportedServer(version: version) }
    unsafe _ = pq_set_nonblocking(handle, 1)
    try set(
      statementTimeoutSeconds: settings.statementTimeoutSeconds,
      idleInTransactionTimeoutSeconds: settings.idleInTransactionTimeoutSeconds)
    epoch = try ServerEpoch.read(self)
  }

  deinit { unsafe pq_finish(handle) }

  @unsafe
  private static func connect(_ parameters: [(keyword: String, value: String)]) -> OpaquePointer? {
    let keywords = unsafe parameters.map { unsafe strdup($0.keyword) }
    let values = unsafe parameters.map { unsafe strdup($0.value) }
    defer { unsafe (keywords + values).forEach { unsafe free($0) } }
    return unsafe pq_connect(
      keywords.map { unsafe UnsafePointer($0) } + [nil], values.map { unsafe UnsafePointer($0) } + [nil], 1)
  }

  /// The descriptor of the connection, which stays the same.
  var descriptor: Int32 { unsafe pq_socket(handle) }
  /// The process ID of the session's backend.
  var backend: Int32 { unsafe pq_backend(handle) }
  /// Whether a transaction is open.
  var isInTransaction: Bool { unsafe pq_transaction_status(handle) != PQ_IDLE }

  /// Returns whether the connection can be used as far as is known without asking the server. Costs a system call.
  func looksAlive() -> Bool {
    guard !isBroken, !isInTransaction else { return false }
    // A server that ends a session says so, and then closes the connection.
    if isReady(POLLIN, seconds: 0) { consume() }
    return !isBroken
  }

  /// Makes the connection count as broken.
  func giveUp() { isBroken = true }

  /// Sets timeouts of the session. 0 means no timeout.
  func set(statementTimeoutSeconds: Double, idleInTransactionTimeoutSeconds: Double) throws(PostgresError) {
    try run(
      script: """
        SET statement_timeout = \(Int(statementTimeoutSeconds * 1000));
        SET idle_in_transaction_session_timeout = \(Int(idleInTransactionTimeoutSeconds * 1000))
        """)
  }

  // MARK: Statements

  /// The outcome of a script's last statement.
  struct ScriptResult {
    /// Like "COMMIT" or "INSERT 0 1".
    var command = ""
    /// The first column of the first row.
    var value: String?
  }

  /// Runs statements that have no arguments and are separated by semicolons.
  @discardableResult
  func run(script: String, seconds: Double? = nil) throws(PostgresError) -> ScriptResult {
    let seconds = seconds ?? settings.statementTimeoutSeconds + Self.responseSeconds
    try checkSent(unsafe pq_send_script(handle, script))
    var outcome = ScriptResult()
    try unsafe receive(Deadline(seconds: seconds, by: clock)) { result in
      outcome.command = unsafe String(cString: pq_command(result))
      if unsafe pq_row_count(result) > 0, unsafe pq_column_count(result) > 0, unsafe pq_is_null(result, 0, 0) == 0 {
        outcome.value = unsafe String(cString: pq_value(result, 0, 0))
      }
    }
    return outcome
  }

  /// Runs a statement, preparing it the first time. Arguments are `?`; their types are those that the server infers.
  func run(_ sql: String, _ arguments: [SQLValue]) throws(PostgresError) -> StatementResult {
    let deadline = Deadline(seconds: settings.statementTimeoutSeconds + Self.responseSeconds, by: clock)
    let encoded = try EncodedArguments(arguments)
    let name = try prepared(sql, deadline)
    let sent = unsafe encoded.withPointers { values, lengths, formats in
      unsafe pq_send_prepared(handle, name, Int32(arguments.count), values, lengths, formats, 1)
    }
    try checkSent(sent)
    var result = StatementResult(rows: [], changedRows: 0)
    var unsupported: PostgresError?
    do {
      try unsafe receive(deadline) { response in
        do throws(PostgresError) {
          result = try unsafe Self.decoded(response)
        } catch { unsupported = error }
      }
    } catch {
      if case .statement(let failure) = error, failure.isStaleStatement { forgetStatements() }
      throw error
    }
    if let unsupported { throw unsupported }
    return result
  }

  private func prepared(_ sql: String, _ deadline: Deadline) throws(PostgresError) -> String {
    if let name = statements[sql] { return name }
    if statements.count >= Self.statementLimit {
      try run(script: "DEALLOCATE ALL")
      statements = [:]
    }
    preparedCount += 1
    let name = "s\(preparedCount)"
    try checkSent(unsafe pq_send_prepare(handle, name, numberingArguments(of: sql), 0, nil))
    try unsafe receive(deadline) { _ in }
    statements[sql] = name
    return name
  }

  /// New names are used from now on; the server keeps the old statements as long as the session.
  private func forgetStatements() { statements = [:] }

  // MARK: Notifications

  /// Sends a statement without waiting for its response, which `drain` reads.
  func send(script: String) throws(PostgresError) {
    try checkSent(unsafe pq_send_script(handle, script))
    // A few bytes, which the socket has room for unless the server has stopped reading.
    guard unsafe pq_flush(handle) >= 0 else { throw lost() }
  }

  /// Reads what has arrived without waiting. Returns the payloads of notifications and whether a statement ended.
  func drain() -> (payloads: [String], responded: Bool) {
    var payloads: [String] = []
    var responded = false
    consume()
    while let notification = unsafe pq_notifies(handle) {
      unsafe payloads.append(String(cString: notification.pointee.payload))
      unsafe pq_free(notification)
    }
    while !isBroken, unsafe pq_is_busy(handle) == 0, let result = unsafe pq_next_result(handle) {
      if unsafe pq_result_status(result) == PQ_TUPLES_OK { responded = true }
      unsafe pq_clear(result)
    }
    return (payloads, responded)
  }

  // MARK: Sending and receiving

  private func checkSent(_ succeeded: Int32) throws(PostgresError) {
    guard succeeded == 1 else { throw lost() }
  }

  /// Waits for all results of what was sent and passes each to `take`, except errors, the first of which is thrown.
  private func receive(_ deadline: Deadline, _ take: (OpaquePointer) -> Void) throws(PostgresError) {
    try flush(deadline)
    var failure: PostgresFailure?
    while let result = try unsafe next(deadline) {
      switch unsafe pq_result_status(result) {
      case PQ_COMMAND_OK, PQ_TUPLES_OK: unsafe take(result)
      case PQ_EMPTY_QUERY: break
      case PQ_FATAL_ERROR: if failure == nil { failure = unsafe self.failure(result) }
      // COPY would need more of the protocol.
      default: isBroken = true
      }
      unsafe pq_clear(result)
      if isBroken { break }
    }
    if unsafe isBroken || pq_status(handle) != PQ_CONNECTION_OK { throw lost(failure) }
    if let failure { throw .statement(failure) }
  }

  private func flush(_ deadline: Deadline) throws(PostgresError) {
    while true {
      switch unsafe pq_flush(handle) {
      case 0: return
      case 1:
        // The server may need to send before it goes on reading.
        try wait(POLLIN | POLLOUT, deadline)
        consume()
      default: throw lost()
      }
    }
  }

  @unsafe
  private func next(_ deadline: Deadline) throws(PostgresError) -> OpaquePointer? {
    while unsafe pq_is_busy(handle) == 1 {
      try wait(POLLIN, deadline)
      guard consume() else { break }
    }
    return unsafe pq_next_result(handle)
  }

  @discardableResult
  private func consume() -> Bool {
    if unsafe pq_consume(handle) == 0 || pq_status(handle) != PQ_CONNECTION_OK { isBroken = true }
    return !isBroken
  }

  private func wait(_ events: Int32, _ deadline: Deadline) throws(PostgresError) {
    guard isReady(events, seconds: deadline.secondsLeft) else {
      isBroken = true
      throw .connectionLost(sqlState: nil, reason: "the server didn't respond in time")
    }
  }

  private func isReady(_ events: Int32, seconds: Double) -> Bool {
    let deadline = Deadline(seconds: seconds, by: clock)
    var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    while true {
      let count = unsafe poll(&entry, 1, Int32(min(deadline.secondsLeft * 1000, 1e9).rounded(.up)))
      if count >= 0 { return count > 0 }
      guard errno == EINTR else { return true }
    }
  }

  // MARK: Errors and results

  private var libraryMessage: String {
    unsafe settings.address.redacted(String(cString: pq_error_message(handle)))
  }

  private func lost(_ failure: PostgresFailure? = nil) -> PostgresError {
    isBroken = true
    return .connectionLost(sqlState: failure?.sqlState, reason: failure?.message ?? libraryMessage)
  }

  @unsafe
  private func failure(_ result: OpaquePointer) -> PostgresFailure {
    func field(_ code: Int32) -> String? {
      unsafe pq_result_field(result, code).map { unsafe String(cString: $0) }
    }
    let sqlState = field(PQ_SQLSTATE) ?? ""
    // "cached plan must not change result type" shares its SQLSTATE with unsupported features. 26000 is a missing
    // statement.
    let isStale =
      sqlState == "0A000" && field(PQ_SOURCE_FUNCTION) == "RevalidateCachedQuery" || sqlState == "26000"
    return PostgresFailure(
      sqlState: sqlState, message: settings.address.redacted(field(PQ_MESSAGE) ?? libraryMessage),
      constraint: field(PQ_CONSTRAINT), isStaleStatement: isStale)
  }

  @unsafe
  private static func decoded(_ result: OpaquePointer) throws(PostgresError) -> StatementResult {
    let count = unsafe pq_column_count(result)
    let types = (0..<count).map { unsafe pq_column_type(result, $0) }
    let columns = (0..<count).map { unsafe String(cString: pq_column_name(result, $0)) }
    var rows: [SQLRow] = []
    for row in 0..<(unsafe pq_row_count(result)) {
      var values: [SQLValue] = []
      values.reserveCapacity(types.count)
      for column in 0..<count {
        guard unsafe pq_is_null(result, row, column) == 0 else {
          values.append(.null)
          continue
        }
        let bytes = unsafe UnsafeRawBufferPointer(
          start: pq_value(result, row, column), count: Int(pq_length(result, row, column)))
        guard let value = BinaryFormat.value(unsafe Array(bytes), type: types[Int(column)]) else {
          throw .unsupportedType(column: columns[Int(column)], type: types[Int(column)])
        }
        values.append(value)
      }
      rows.append(SQLRow(columns: columns, values: values))
    }
    return StatementResult(rows: rows, changedRows: Int(unsafe String(cString: pq_changed_rows(result))) ?? 0)
  }
}
