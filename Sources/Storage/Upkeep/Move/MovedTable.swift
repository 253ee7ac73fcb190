// The rows that a move copies from one catalog to another, whose engines may differ. Both have the same schema, by
// their migrations; a test compares the list below with the tables of both.
//
// What isn't copied belongs to the old place:
//
//   attempts, garbage, removals        say which files there are unneeded; only files that rows name are moved
//   held_keys, a webhook's lease       what the processes there were doing
//   upload_segments, upload_objects,   where the bytes of an unfinished upload are there. In the new place they are in
//   an upload's writer                 one file, or in objects that the move has put
//   heartbeat, media_folder            the place itself
//   recordings.number                  SQLite's own; a trigger makes it
//
// A job that ran there is queued, as after a crash: its attempt doesn't count as a failure.

/// A table, and how a move reads its rows.
struct MovedTable: Sendable {
  /// The table's name.
  let name: String
  /// The columns that are copied, each with the expression that reads it.
  let columns: [(name: String, expression: String)]
  /// The columns that identify a row, by which the rows are sorted.
  let key: String
  /// Whether triggers count the table's rows in `usage`, which is copied too.
  let isCounted: Bool

  private init(
    _ name: String, key: String = "id", isCounted: Bool = false, _ columns: String,
    reading expressions: [String: String] = [:]
  ) {
    (self.name, self.key, self.isCounted) = (name, key, isCounted)
    self.columns = columns.split(separator: " ").map { column in
      (name: "\"\(column)\"", expression: expressions[String(column)] ?? "\"\(column)\"")
    }
  }

  /// All tables, each after those that its rows refer to.
  static let all: [MovedTable] = [
    MovedTable(
      "recordings", isCounted: true,
      """
      id tenant name name_folded created_at bytes sha256 container codec sample_rate channels frames estimated_frames \
      duration waveform_state waveform_job media working_bytes working_sha256 warnings \
      noise_regions derived_recording derived_job derived_operation audio_key waveform_key working_key compared_at \
      waveform_bytes map_bytes version
      """),
    MovedTable(
      "jobs",
      """
      id tenant client kind recording batch output state progress created_at started_at finished_at attempts interruptions \
      postponements not_before nonce node expected_bytes parameters result error
      """,
      reading: [
        "state": "CASE state WHEN 'running' THEN 'queued' ELSE state END",
        "interruptions": "interruptions + CASE state WHEN 'running' THEN 1 ELSE 0 END",
      ]),
    MovedTable(
      "batches",
      "id tenant client kind parameters total begun succeeded failed cancelled is_cancelled created_at finished_at"),
    MovedTable("batch_recordings", key: "batch", "batch recordings"),
    MovedTable("uploads", "id tenant client token length offset metadata expires_at recording"),
    MovedTable("spent_tokens", "id expires_at"),
    MovedTable(
      "answers", key: "tenant, scope, key", "tenant scope key fingerprint status location body created_at"),
    MovedTable("webhooks", key: "job", "job url attempts not_before traceparent"),
    MovedTable(
      "conversions", key: "recording, format", isCounted: true, "recording tenant format key bytes sha256 used_at"),
    MovedTable(
      "label_tracks", isCounted: true,
      """
      id tenant recording name kind language source count words start until version created_at changed_at bytes \
      next_label
      """),
    MovedTable("label_chunks", key: "track, number, start, until", "track number start until folded labels"),
    MovedTable(
      "noise_profiles", isCounted: true,
      """
      id tenant name recording noise sample_rate channels spectrum version created_at changed_at is_deleted
      """),
    MovedTable("audit_lines", "id line due"),
    MovedTable("usage", key: "tenant", "tenant recordings bytes"),
    MovedTable("job_seconds", key: "tenant, day", "tenant day milliseconds"),
  ]

  /// The statement that reads all rows.
  var reading: String {
    let columns = columns.map { "\($0.expression) AS \($0.name)" }.joined(separator: ", ")
    return "SELECT \(columns) FROM \(name) ORDER BY \(key)"
  }

  /// The statement that inserts a number of rows.
  func inserting(_ count: Int) -> String {
    let row = "(" + columns.map { _ in "?" }.joined(separator: ", ") + ")"
    let names = columns.map(\.name).joined(separator: ", ")
    return "INSERT INTO \(name) (\(names)) VALUES " + Array(repeating: row, count: count).joined(separator: ", ")
  }
}

/// Inserts the rows of a table, many with one statement.
struct RowInserter {
  private let table: MovedTable
  private let session: any SQLSession
  private var waiting: [SQLRow] = []
  private var waitingBytes = 0
  /// Number of rows so far.
  private(set) var count = 0
  /// Few texts of statements, so that engines keep them prepared.
  private static let rowsAtOnce = 100
  private static let bytesAtOnce = 8 << 20

  init(_ table: MovedTable, _ session: any SQLSession) { (self.table, self.session) = (table, session) }

  mutating func insert(_ row: SQLRow) throws {
    waiting.append(row)
    waitingBytes += row.values.reduce(0) { $0 + $1.byteCount }
    count += 1
    if waiting.count == Self.rowsAtOnce {
      try session.run(table.inserting(waiting.count), bound: waiting.flatMap(\.values))
      (waiting, waitingBytes) = ([], 0)
    } else if waitingBytes > Self.bytesAtOnce {
      try flush()
    }
  }

  /// Inserts the rest.
  mutating func flush() throws {
    for row in waiting { try session.run(table.inserting(1), bound: row.values) }
    (waiting, waitingBytes) = ([], 0)
  }
}

/// The digests of all rows, to compare two catalogs.
struct CatalogDigest: Sendable, Equatable {
  /// The number of rows and the SHA-256 of each table.
  private(set) var tables: [String: Table] = [:]

  struct Table: Sendable, Equatable {
    let count: Int
    let sha256: String
  }

  /// Reads all rows of a catalog as a move reads them, except conversions with these keys.
  init(of catalog: Catalog, without omitted: Set<String> = []) throws(StorageError) {
    tables = try catalog.engine.read { session in
      var tables: [String: Table] = [:]
      for table in MovedTable.all {
        var digest = SHA256()
        var count = 0
        try session.eachRow(table.reading, bound: []) { row in
          if row.isOmitted(from: table, omitted) { return true }
          digest.update(row.digestBytes.span)
          count += 1
          return true
        }
        tables[table.name] = Table(count: count, sha256: digest.hexDigest())
      }
      return tables
    }
  }
}

extension SQLRow {
  /// Whether the row is that of a conversion with one of these keys.
  func isOmitted(from table: MovedTable, _ keys: Set<String>) -> Bool {
    guard !keys.isEmpty, table.name == "conversions", case .text(let key)? = self["key"] else { return false }
    return keys.contains(key)
  }

  /// The values, each with its type and length, so that different rows have different bytes.
  fileprivate var digestBytes: [UInt8] {
    var bytes: [UInt8] = []
    func append(_ type: UInt8, _ content: some Collection<UInt8>) {
      bytes.append(type)
      bytes += "\(content.count):".utf8
      bytes += content
    }
    for value in values {
      switch value {
      case .null: append(0, [])
      case .integer(let number): append(1, "\(number)".utf8)
      case .real(let number): append(2, "\(number.bitPattern)".utf8)
      case .text(let text): append(3, text.utf8)
      case .blob(let blob): append(4, blob)
      }
    }
    return bytes
  }
}

extension SQLValue {
  fileprivate var byteCount: Int {
    switch self {
    case .null, .integer, .real: 8
    case .text(let text): text.utf8.count
    case .blob(let bytes): bytes.count
    }
  }
}
