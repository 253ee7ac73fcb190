import CSQLite

// Copies what can still be read of a damaged catalog to a new one, whose indexes are thereby built again.
//
// Each table is read by its row IDs, without an index: forward up to the first damaged page, then backward down to the
// last. Of the rows between them, each is read that the index of the table's own key has; if that can't be read either,
// the halves of what is between are read in the same way as the whole, and so on. So a damaged page costs the rows that
// are on it, or below it, and no others. SQLite reports a damaged page as often as it is read, so the number of halves
// is limited.
//
// If not all rows could be read, or the index has more entries, the keys that weren't copied are listed as lost.
// Without damage outside the indexes, nothing is.

/// What was copied of a damaged catalog.
struct Salvage: Sendable {
  /// Number of rows copied.
  fileprivate(set) var rows = 0
  /// What couldn't be copied.
  fileprivate(set) var losses: [Loss] = []

  /// Rows of a table that couldn't be read, or don't fit the table.
  struct Loss: Sendable {
    let table: String
    /// The keys of the rows, as far as they are known: the values of their columns, separated by slashes.
    var keys: Set<String> = []
    /// Whether there may be others.
    var isIncomplete = false
  }

  /// Copies rows from the file `damaged`, which isn't changed, to the new catalog `path`. There are none in a file that
  /// SQLite can't open.
  init(from damaged: String, to path: String) throws(StorageError) {
    do throws(StorageError) {
      let target = try SQLiteConnection(path)
      // Otherwise a schema with one damaged entry can't be read at all.
      let settings = "PRAGMA writable_schema = ON"
      guard let source = try? SQLiteConnection(damaged, isReadOnly: true, settings: settings) else {
        losses = try RowCopy.tables(of: target).map { Loss(table: $0, isIncomplete: true) }
        return
      }
      self = try target.transaction { try RowCopy(source: source, target: target).copyAll() }
    } catch {
      throw error.naming(path)
    }
  }

  fileprivate init() {}
}

/// Copies rows from one connection to another.
private struct RowCopy {
  let source, target: SQLiteConnection
  /// How often a table without a readable index is read from another place.
  private static let attemptLimit = 4_000

  /// The tables to copy, each after those that its rows refer to: all but those that belong to the new catalog.
  static func tables(of db: SQLiteConnection) throws(StorageError) -> [String] {
    try db.texts(
      """
      SELECT name FROM pragma_table_list WHERE schema = 'main' AND strict AND name NOT IN ('usage', 'heartbeat')
      ORDER BY EXISTS (SELECT 1 FROM pragma_foreign_key_list(name)), name
      """)
  }

  /// Copies all tables.
  func copyAll() throws -> Salvage {
    var salvage = Salvage()
    for table in try Self.tables(of: target) { try copy(table, &salvage) }
    try recount()
    // Chunks whose track couldn't be read can't be found otherwise.
    try target.execute(
      """
      INSERT OR IGNORE INTO garbage (object, due)
        SELECT DISTINCT '\(Catalog.chunkGarbage)' || series, 0 FROM label_chunks
        WHERE series NOT IN (SELECT series FROM label_tracks)
      """)
    return salvage
  }

  /// Counts what tenants have. The triggers haven't counted a conversion whose tenant had no row yet, and have counted
  /// profiles that are deleted and still used.
  private func recount() throws {
    try target.execute(
      """
      DELETE FROM usage;
      INSERT INTO usage SELECT tenant, sum(recordings), sum(bytes) FROM (
        SELECT tenant, 1 AS recordings, \(TenantUsage.fileBytes(of: "recordings")) AS bytes FROM recordings
        UNION ALL SELECT tenant, 0, bytes FROM conversions
        UNION ALL SELECT tenant, 0, bytes FROM label_tracks
        UNION ALL SELECT tenant, 0, length(spectrum) FROM noise_profiles WHERE NOT is_deleted
      ) GROUP BY tenant
      """)
  }

  private func copy(_ table: String, _ salvage: inout Salvage) throws {
    let names = "SELECT name FROM pragma_table_info(?)"
    let present = (try? source.texts(names, [table])) ?? []
    let columns = try target.texts(names, [table]).filter {
      // A trigger sets the number of a recording.
      present.contains($0) && !(table == "recordings" && $0 == "number")
    }
    guard !columns.isEmpty else { return salvage.losses.append(Salvage.Loss(table: table, isIncomplete: true)) }
    let list = columns.map { "\"\($0)\"" }.joined(separator: ", ")
    let marks = columns.map { _ in "?" }.joined(separator: ", ")
    // A row that was read twice is skipped.
    let insert = "INSERT INTO \(table) (\(list)) VALUES (\(marks)) ON CONFLICT DO NOTHING"
    var copied = 0
    let key = try Key(of: table, target)
    var loss = Salvage.Loss(table: table)
    let isWhole = try eachRow(of: table, key, "SELECT rowid, \(list) FROM \(table) NOT INDEXED") { row in
      do {
        copied += try target.run(insert, bound: Array(row.values.dropFirst()))
      } catch StorageError.database(let code, _) where code & 0xFF == SQLITE_CONSTRAINT {
        if let key { loss.keys.insert(Self.text(key.columns.map { row[$0] ?? .null })) }
      }
    }
    salvage.rows += copied
    if let key { try addKeys(from: key, to: &loss, copied: copied, isWhole) }
    if !loss.keys.isEmpty || loss.isIncomplete { salvage.losses.append(loss) }
  }

  /// Calls `body` with each row that can be read. Returns whether all could. Throws what `body` throws.
  private func eachRow(
    of table: String, _ key: Key?, _ select: String, _ body: (SQLRow) throws -> Void
  ) throws -> Bool {
    var ranges: [ClosedRange<Int64>] = [1...Int64.max]
    var (attempts, isWhole) = (0, true)
    while attempts < Self.attemptLimit, let range = ranges.popLast() {
      var (low, high) = (range.lowerBound, range.upperBound)
      attempts += 1
      // A damaged page may have row IDs that are out of order.
      guard let forward = try read(select, low, high, "ASC", body) else { continue }
      isWhole = false
      if let last = forward.last, last >= low {
        guard last < high else { continue }
        low = last + 1
      }
      guard let backward = try read(select, low, high, "DESC", body) else { continue }
      if let last = backward.last, last <= high {
        guard last > low else { continue }
        high = last - 1
      }
      if attempts == 1, let key, let between = rowIDs(low...high, of: table, key) {
        for id in between { _ = try read(select, id, id, "ASC", body) }
        break
      }
      guard low < high else { continue }
      let middle = low + (high - low) / 2
      ranges += [middle + 1...high, low...middle]
    }
    return isWhole
  }

  /// Where reading ended because of damage: the last row that could be read, nil if none could.
  private struct End {
    var last: Int64?
  }

  /// Reads a range of rows. Returns nil if it could be read to its end. Throws what `body` throws.
  private func read(
    _ select: String, _ low: Int64, _ high: Int64, _ order: String, _ body: (SQLRow) throws -> Void
  ) throws -> End? {
    var end = End()
    let sql = "\(select) WHERE rowid BETWEEN ? AND ? ORDER BY rowid \(order)"
    let isWhole = try readAll(sql, [low, high]) { row in
      try body(row)
      end.last = Int64(row.values[0])
    }
    return isWhole ? nil : end
  }

  /// Calls `body` with each row of a result of the damaged file. Returns whether it could be read to its end. Throws
  /// what `body` throws.
  private func readAll(
    _ sql: String, _ arguments: [Int64] = [], _ body: (SQLRow) throws -> Void
  ) throws -> Bool {
    var failure: (any Error)?
    do {
      try source.eachRow(sql, arguments) { row in
        do { try body(row) } catch { failure = error }
        return failure == nil
      }
    } catch {
      return false
    }
    if let failure { throw failure }
    return true
  }

  /// Returns the row IDs that an index has, or nil if it can't be read.
  private func rowIDs(_ range: ClosedRange<Int64>, of table: String, _ key: Key) -> [Int64]? {
    let rows = try? source.rows("SELECT rowid FROM \(table) INDEXED BY \"\(key.index)\"")
    return rows?.compactMap { Int64($0.values[0]) }.filter(range.contains).sorted()
  }

  /// The unique index of a table's own key.
  private struct Key {
    let index: String
    let columns: [String]

    /// Returns nil if the table has none.
    init?(of table: String, _ db: SQLiteConnection) throws(StorageError) {
      let indexes = "SELECT name FROM pragma_index_list(?) WHERE \"unique\" ORDER BY origin = 'pk' DESC"
      guard let index = try db.texts(indexes, [table]).first else { return nil }
      self.index = index
      columns = try db.texts("SELECT name FROM pragma_index_info(?)", [index])
    }
  }

  /// Adds the keys that an index has and whose rows weren't copied.
  private func addKeys(from key: Key, to loss: inout Salvage.Loss, copied: Int, _ isWhole: Bool) throws {
    let columns = key.columns.map { "\"\($0)\"" }
    let condition = columns.map { "\($0) = ?" }.joined(separator: " AND ")
    let find = "SELECT 1 FROM \(loss.table) WHERE \(condition)"
    let list = """
      SELECT \(columns.joined(separator: ", ")) FROM \(loss.table) INDEXED BY "\(key.index)" ORDER BY \(columns[0])
      """
    var (entries, missing, isIndexWhole) = (0, Set<String>(), false)
    for order in ["ASC", "DESC"] where !isIndexWhole {
      isIndexWhole = try readAll("\(list) \(order)") { row in
        entries += 1
        if try target.rows(find, bound: row.values).isEmpty { missing.insert(Self.text(row.values)) }
      }
    }
    if !isWhole || isIndexWhole && entries > copied { loss.keys.formUnion(missing) }
    loss.isIncomplete = !isWhole && !isIndexWhole
  }

  private static func text(_ values: [SQLValue]) -> String { values.map(\.description).joined(separator: "/") }
}

extension SQLiteConnection {
  /// The first column of each row, as text.
  fileprivate func texts(_ sql: String, _ arguments: [String] = []) throws(StorageError) -> [String] {
    try rows(sql, arguments).map { $0.values[0].description }
  }
}
