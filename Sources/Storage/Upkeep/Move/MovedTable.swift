// The rows that a move copies from one catalog to another, whose engines may differ. Both have the same schema, by
// their migrations; a test compares the list below with the tables of both.
//
// What isn't copied belongs to the old place:
//
//   attempts, garbage, removals        say which files there are unneeded; only files that rows name are moved
//   chunks of labels without a track   wait there to be deleted
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
  /// The columns that identify a row, by which the rows are sorted.
  let key: String
  /// Whether triggers count the table's rows in `usage`, which is copied too.
  let isCounted: Bool
  /// The columns that belong to the old place. All others are copied.
  let omitted: Set<String>
  /// Chooses the rows that are copied.
  private let condition: String

  private init(
    _ name: String, key: String = "id", isCounted: Bool = false, without omitted: Set<String> = [],
    where condition: String = "TRUE"
  ) {
    (self.name, self.key, self.isCounted, self.omitted) = (name, key, isCounted, omitted)
    self.condition = condition
  }

  /// All tables, each after those that its rows refer to.
  static let all: [MovedTable] = [
    MovedTable("recordings", isCounted: true, without: ["number"]),
    MovedTable("jobs", without: ["lease_until"]),
    MovedTable("batches"),
    MovedTable("batch_recordings", key: "batch"),
    MovedTable("uploads", without: ["writer"]),
    MovedTable("spent_tokens"),
    MovedTable("answers", key: "tenant, scope, key"),
    MovedTable("webhooks", key: "job", without: ["node", "lease_until"]),
    MovedTable("conversions", key: "recording, format", isCounted: true),
    MovedTable("label_tracks", isCounted: true),
    MovedTable(
      "label_chunks", key: "series, number, start, until", where: "series IN (SELECT series FROM label_tracks)"),
    MovedTable("noise_profiles", isCounted: true),
    MovedTable("audit_lines"),
    MovedTable("usage", key: "tenant"),
    MovedTable("job_seconds", key: "tenant, day"),
  ]

  /// Calls `body` with each row as it is copied, except conversions with the keys `conversions`. The order of the
  /// columns is the same on both engines.
  func eachRow(
    in session: any SQLSession, without conversions: Set<String> = [], _ body: (SQLRow) throws -> Void
  ) throws {
    var kept: [(name: String, place: Int)]?
    try session.eachRow("SELECT * FROM \(name) WHERE \(condition) ORDER BY \(key)", bound: []) { row in
      if name == "conversions", case .text(let key)? = row["key"], conversions.contains(key) { return true }
      let columns =
        kept ?? row.columns.enumerated().filter { !omitted.contains($1) }.map { ($1, $0) }.sorted { $0 < $1 }
      kept = columns
      let isRunningJob = name == "jobs" && row["state"] == .text("running")
      let values = columns.map { name, place -> SQLValue in
        switch (name, row.values[place]) {
        case ("state", _) where isRunningJob: .text("queued")
        case ("interruptions", .integer(let count)) where isRunningJob: .integer(count + 1)
        case (_, let value): value
        }
      }
      try body(SQLRow(columns: columns.map(\.name), values: values))
      return true
    }
  }

  /// The statement that inserts a number of rows like this one.
  fileprivate func inserting(_ count: Int, like row: SQLRow) -> String {
    let marks = "(" + row.columns.map { _ in "?" }.joined(separator: ", ") + ")"
    let names = row.columns.map { "\"\($0)\"" }.joined(separator: ", ")
    return "INSERT INTO \(name) (\(names)) VALUES " + Array(repeating: marks, count: count).joined(separator: ", ")
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
      try session.run(table.inserting(waiting.count, like: row), bound: waiting.flatMap(\.values))
      (waiting, waitingBytes) = ([], 0)
    } else if waitingBytes > Self.bytesAtOnce {
      try flush()
    }
  }

  /// Inserts the rest.
  mutating func flush() throws {
    for row in waiting { try session.run(table.inserting(1, like: row), bound: row.values) }
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
        try table.eachRow(in: session, without: omitted) { row in
          digest.update(row.digestBytes.span)
          count += 1
        }
        tables[table.name] = Table(count: count, sha256: digest.hexDigest())
      }
      return tables
    }
  }
}

extension SQLRow {
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
