// Labels of recordings. A track is a row, and its labels are chunks of some hundred, because an editor replaces all of
// them with every change and a window reads few: with 200,000 rows instead of 800, a change would take seconds. A
// window looks through the index of the chunks' times, which also finds labels that are longer than the others.
//
// The row names its chunks as a series. Inserting or deleting 16 MB of chunks takes SQLite a tenth of a second or two,
// so other writes would wait. A row of `garbage`, labels/<series>, names a series that no track has: while it is
// stored, about a megabyte in each transaction, and after its track was deleted or has got another. Once that is due,
// `eraseTraces` deletes it, as much at a time, also after a crash.
//
// `folded` contains the texts of a chunk as names are folded (see NameSearch), one line for each label, so that a
// search reads only the chunks that contain what is searched for.

import FoundationEssentials

extension Catalog {
  /// Returns the tracks of a recording, oldest first.
  package func labelTracks(of id: RecordingID) throws(StorageError) -> [LabelTrack] { try labelTracks(of: id, of: nil) }

  /// Returns the tracks if they are `tenant`'s; with nil, any tenant's.
  func labelTracks(of id: RecordingID, of tenant: Tenant?) throws(StorageError) -> [LabelTrack] {
    var filter = Filter()
    filter.add("recording = ?", id.text)
    filter.add(tenant)
    let (sql, arguments) = ("SELECT * FROM label_tracks\(filter.text) ORDER BY id", filter.arguments)
    return try read { db in try Self.intact(db.rows(sql, arguments)) { try LabelTrackRow(row: $0).track } }
  }

  /// Returns the recording whose tracks a recording has: itself if there are any, or else the nearest one with tracks
  /// of those from which it was cleaned; nil if no recording of these has any. Only a tenant's count.
  func labelOwner(of recording: Recording, of tenant: Tenant) throws(StorageError) -> RecordingID? {
    var next: Recording? = recording
    for _ in 0..<Self.inheritanceLimit {
      guard let current = next else { return nil }
      if try !labelTracks(of: current.id, of: tenant).isEmpty { return current.id }
      guard let source = current.derivedFrom, source.operation == "denoise" else { return nil }
      next = try self.recording(source.recording, of: tenant)
    }
    return nil
  }

  /// How many recordings are asked for tracks, because each is a query.
  private static let inheritanceLimit = 32

  /// Returns a track, or nil.
  package func labelTrack(_ id: LabelTrackID) throws(StorageError) -> LabelTrack? { try labelTrack(id, of: nil) }

  /// Returns the track if it is `tenant`'s; with nil, any tenant's.
  func labelTrack(_ id: LabelTrackID, of tenant: Tenant?) throws(StorageError) -> LabelTrack? {
    try read { try Self.labelTrack(id, of: tenant, $0) }
  }

  /// Returns a track and those of its chunks that overlap a window, from `start` up to but without `end` in
  /// microseconds, and that contain a text, ignoring case; nil if there is no such track. All are from one moment.
  /// Reads no chunks if `areNeeded` returns false for the track.
  package func labels(
    of id: LabelTrackID, from start: Int64 = 0, to end: Int64 = .max, containing text: String? = nil,
    of tenant: Tenant? = nil, if areNeeded: (LabelTrack) -> Bool = { _ in true }
  ) throws(StorageError) -> (track: LabelTrack, chunks: [FoundLabels])? {
    let folded = text.flatMap { $0.isEmpty ? nil : NameSearch.foldLines([$0]) }
    let search = folded.map { ByteSearch(Array($0.utf8)) }
    return try read { db in
      guard let track = try Self.labelTrack(id, of: tenant, db) else { return nil }
      guard areNeeded(track) else { return (track, []) }
      var filter = Filter()
      filter.add("series = ?", track.series)
      filter.add("start < ?", end)
      filter.add("until >= ?", start)
      if let folded { filter.add(db.dialect.contains("folded"), Self.beginning(of: folded)) }
      let columns = "number, start, until, labels" + (folded == nil ? "" : ", folded")
      let rows = try db.rows("SELECT \(columns) FROM label_chunks\(filter.text) ORDER BY number", filter.arguments)
      let chunks = try rows.compactMap { row -> FoundLabels? in
        let matches = try search?.lines(of: value(row, "folded"))
        if let matches, !matches.contains(true) { return nil }
        return FoundLabels(
          number: try value(row, "number"), start: try value(row, "start"), end: try value(row, "until"),
          labels: try value(row, "labels"),
          matches: matches)
      }
      return (track, chunks)
    }
  }

  /// Returns what databases look for of a text. They compare it at each place, so 256 bytes that nearly match
  /// everywhere in 16 MiB of labels take PostgreSQL 1.5 s, and the first eight characters 0.09 s.
  private static func beginning(of text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.prefix(8)))
  }

  /// Returns the next chunk of a track after the one with the number `last` that overlaps a window, from `start` up to
  /// but without `end` in microseconds, and the folded line of each of its labels; nil if that was the last one.
  package func labels(
    after last: Int, of id: LabelTrackID, from start: Int64 = 0, to end: Int64 = .max, of tenant: Tenant? = nil
  ) throws(StorageError) -> (found: FoundLabels, lines: [Substring])? {
    let filter = Filter(id: id.text, of: tenant)
    let sql = """
      SELECT * FROM label_chunks
      WHERE series IN (SELECT series FROM label_tracks\(filter.text)) AND number > ? AND start < ? AND until >= ?
      ORDER BY number LIMIT 1
      """
    return try read { db in
      try db.row(sql, filter.arguments + [last, end, start]).map { row in
        let folded: String = try value(row, "folded")
        return (
          FoundLabels(
            number: try value(row, "number"), start: try value(row, "start"), end: try value(row, "until"),
            labels: try value(row, "labels"), matches: nil),
          folded.split(separator: "\n", omittingEmptySubsequences: false)
        )
      }
    }
  }

  /// Inserts a track with its labels. Throws `.noSuchRecording`, `.tooManyLabelTracks` if the recording has `limit`
  /// tracks already, or `.limitReached` if the tenant would have more bytes than `limits`.
  package func insert(
    _ track: LabelTrack, _ chunks: [LabelChunk], of tenant: Tenant? = nil, limit: Int,
    within limits: StoredLimits? = nil
  ) throws(StorageError) {
    try naming([chunks]) { series, db in
      // Locked, so that others who count its tracks wait.
      guard let recording = try Self.locked(track.recording, of: tenant, db) else {
        throw StorageError.noSuchRecording(track.recording)
      }
      var track = track
      track.tenant = recording.tenant
      let count =
        try db.first("SELECT count(*) FROM label_tracks WHERE recording = ?", [track.recording.text], as: Int.self) ?? 0
      guard count < limit else { throw StorageError.tooManyLabelTracks(limit: limit) }
      try insert(track, series[0], db)
      try Self.checkBytes(limits, of: track.tenant, db)
    }
  }

  /// Inserts tracks found in a recording's file, as many as fit, unless it has such tracks already.
  func insert(
    embedded tracks: [(track: LabelTrack, series: ChunkSeries)], of recording: Recording, limit: Int,
    _ db: CatalogTransaction
  ) throws {
    let rows = try db.rows("SELECT source FROM label_tracks WHERE recording = ?", [recording.id.text])
    guard try !rows.contains(where: { try choice($0, "source") == LabelTrack.Source.embedded }) else { return }
    for (track, series) in tracks.prefix(max(0, limit - rows.count)) {
      var track = track
      track.tenant = recording.tenant
      try insert(track, series, db)
    }
  }

  /// Changes a track and, with `chunks`, its labels. Returns the new track, or nil if it does not exist.
  /// Throws, without any change, `.changedMeanwhile` if `isExpected` returns false for the current track, and
  /// `.limitReached` if the labels would need more bytes than before and the tenant would have more than `limits`.
  package func update(
    _ id: LabelTrackID, of tenant: Tenant? = nil, if isExpected: @Sendable (LabelTrack) -> Bool,
    _ chunks: ChangedChunks = .none, within limits: StoredLimits? = nil, _ change: @Sendable (inout LabelTrack) -> Void
  ) throws(StorageError) -> LabelTrack? {
    let whole: [[LabelChunk]] = if case .all(let chunks) = chunks { [chunks] } else { [] }
    return try naming(whole) { series, db in
      guard var track = try Self.lockedTrack(id, of: tenant, db) else { return nil }
      guard isExpected(track) else { throw StorageError.changedMeanwhile }
      let before = track.bytes
      change(&track)
      track.version += 1
      track.changedAt = max(time, track.createdAt)
      switch chunks {
      case .none: break
      case .all:
        try Self.addGarbage(Self.chunkGarbage + track.series, due: try now(db), db)
        db.noteTraces()
        (track.series, track.bytes) = (series[0].name, series[0].bytes)
        try name(series[0], db)
      case .some(let changes):
        for (number, (before, after)) in changes.sorted(by: { $0.key < $1.key }) {
          if before > 0 {
            try db.erase("DELETE FROM label_chunks WHERE series = ? AND number = ?", [track.series, number])
            track.bytes -= Int64(before)
          }
          guard let after else { continue }
          try Self.insert(after, as: number, of: track.series, db)
          track.bytes += Int64(after.bytes)
        }
      }
      try LabelTrackRow(track: track).update(db)
      if track.bytes > before { try Self.checkBytes(limits, of: track.tenant, db) }
      return track
    }
  }

  /// Deletes a track; returns false if there is none. Throws `.changedMeanwhile`, without any change, if `isExpected`
  /// returns false for the current track.
  package func deleteLabelTrack(
    _ id: LabelTrackID, of tenant: Tenant? = nil, if isExpected: @Sendable (LabelTrack) -> Bool
  ) throws(StorageError) -> Bool {
    try write(.statementLocks) { db in
      guard let track = try Self.lockedTrack(id, of: tenant, db) else { return false }
      guard isExpected(track) else { throw StorageError.changedMeanwhile }
      try deleteTracks("id = ? AND tenant = ?", [id.text, track.tenant.name], db)
      return true
    }
  }

  /// Deletes the tracks of a recording whose row is deleted in the same transaction.
  func deleteLabels(of id: String, _ db: CatalogTransaction) throws { try deleteTracks("recording = ?", [id], db) }

  private func deleteTracks(
    _ condition: String, _ arguments: [(any SQLConvertible)?], _ db: CatalogTransaction
  ) throws {
    let tracks = try db.eraseReturning("DELETE FROM label_tracks WHERE \(condition) RETURNING series", arguments)
    try Self.addGarbage(
      tracks.map { Self.chunkGarbage + (try value($0, "series") as String) }, due: try now(db), db)
  }

  /// How the name of a series in `garbage` begins.
  static let chunkGarbage = "labels/"

  /// Deletes about a megabyte of chunks that no track has. Returns false if there are none. Several nodes may do this
  /// at once, each for other series.
  func eraseChunks() throws(StorageError) -> Bool {
    // "0" follows "/", and text is sorted by its bytes.
    let find =
      "SELECT object FROM garbage WHERE object > 'labels/' AND object < 'labels0' AND due <= ? ORDER BY object LIMIT 1"
    // Usually there are none, and nothing is written.
    guard try read({ db in try db.first(find, [try now(db).milliseconds], as: String.self) }) != nil else {
      return false
    }
    return try write(.statementLocks) { db in
      let found = try db.first(find + db.dialect.skippingLocked, [try now(db).milliseconds], as: String.self)
      guard let name = found else { return false }
      let series = String(name.dropFirst(Self.chunkGarbage.count))
      let rows = try db.rows(
        "SELECT number, CAST(length(labels) AS bigint) AS bytes FROM label_chunks WHERE series = ? ORDER BY number LIMIT ?",
        [series, Self.chunksAtOnce])
      var (bytes, count, last) = (0, 0, -1)
      for row in rows where bytes < Self.labelBytesAtOnce {
        bytes += try value(row, "bytes") as Int
        count += 1
        last = try value(row, "number")
      }
      try db.run("DELETE FROM label_chunks WHERE series = ? AND number <= ?", [series, last])
      if count == rows.count, count < Self.chunksAtOnce { try db.run("DELETE FROM garbage WHERE object = ?", [name]) }
      return true
    }
  }

  /// Deleting a chunk also deletes its folded text, which is about as long as half of the labels.
  private static let labelBytesAtOnce = 600_000
  private static let chunksAtOnce = 64

  private static func labelTrack(
    _ id: LabelTrackID, of tenant: Tenant? = nil, by lock: String = "", _ db: CatalogTransaction
  ) throws -> LabelTrack? {
    let filter = Filter(id: id.text, of: tenant)
    return try db.row("SELECT * FROM label_tracks\(filter.text)\(lock)", filter.arguments)
      .map(LabelTrackRow.init(row:))?.track
  }

  /// Returns a track that the transaction is about to change, or nil. Its recording can't be deleted meanwhile.
  private static func lockedTrack(
    _ id: LabelTrackID, of tenant: Tenant?, _ db: CatalogTransaction
  ) throws -> LabelTrack? {
    let found = try labelTrack(id, of: tenant, db)
    guard let track = found, !db.dialect.changingRows.isEmpty else { return found }
    try hold([track.recording], db)
    return try labelTrack(id, of: tenant, by: db.dialect.changingRows, db)
  }

  // MARK: Series of chunks

  /// Runs a transaction that may name a series for each list of chunks, all but the last megabyte of which are stored
  /// before.
  func naming<R: Sendable>(
    _ lists: [[LabelChunk]], kind: StaticString = #function,
    _ body: @Sendable ([ChunkSeries], CatalogTransaction) throws -> R
  ) throws(StorageError) -> R {
    let series = lists.map(ChunkSeries.init)
    // If this fails, they're deleted after an hour.
    defer { try? giveUp(series) }
    var stored: [ChunkSeries] = []
    for series in series { stored.append(try store(series)) }
    return try write(.statementLocks, kind: kind) { [stored] db in try body(stored, db) }
  }

  /// Stores all of a series but the last megabyte. The transaction that names it is the change that is audited.
  private func store(_ series: ChunkSeries) throws(StorageError) -> ChunkSeries {
    var series = series
    while let batch = series.takeBatch() {
      let (garbage, name) = (Self.chunkGarbage + series.name, series.name)
      try write(.statementLocks, isAudited: false) { db in
        let now = try now(db)
        let due = now + Self.secondsToName
        if batch.startIndex == 0 {
          try Self.addGarbage(garbage, due: due, db)
        } else {
          let arguments: [(any SQLConvertible)?] = [due.milliseconds, garbage, now.milliseconds]
          let kept = try db.run("UPDATE garbage SET due = ? WHERE object = ? AND due > ?", arguments)
          guard kept == 1 else { throw StorageError.changedMeanwhile }
        }
        for number in batch.indices { try Self.insert(batch[number], as: number, of: name, db) }
      }
    }
    return series
  }

  /// Seconds after its last transaction until an unnamed series is deleted.
  private static let secondsToName = 3600.0

  /// Stores the rest of a series that a track's row now names.
  private func name(_ series: ChunkSeries, _ db: CatalogTransaction) throws {
    if series.isStored {
      let arguments: [(any SQLConvertible)?] = [Self.chunkGarbage + series.name, try now(db).milliseconds]
      let taken = try db.run("DELETE FROM garbage WHERE object = ? AND due > ?", arguments)
      guard taken == 1 else { throw StorageError.changedMeanwhile }
    }
    for number in series.rest.indices { try Self.insert(series.rest[number], as: number, of: series.name, db) }
  }

  /// Makes partly stored series that no track names due for deletion.
  private func giveUp(_ series: [ChunkSeries]) throws(StorageError) {
    let names = series.filter(\.isLong).map { Self.chunkGarbage + $0.name }
    guard !names.isEmpty else { return }
    try write(.statementLocks, isAudited: false) { db in
      for name in names {
        try db.erase("UPDATE garbage SET due = ? WHERE object = ?", [try now(db).milliseconds, name])
      }
    }
  }

  private func insert(_ track: LabelTrack, _ series: ChunkSeries, _ db: CatalogTransaction) throws {
    var track = track
    (track.series, track.bytes) = (series.name, series.bytes)
    try LabelTrackRow(track: track).insert(db)
    try name(series, db)
  }

  private static func insert(
    _ chunk: LabelChunk, as number: Int, of series: String, _ db: CatalogTransaction
  ) throws {
    try db.run(
      "INSERT INTO label_chunks (series, number, start, until, folded, labels) VALUES (?, ?, ?, ?, ?, ?)",
      [series, number, chunk.start, chunk.end, chunk.folded, chunk.labels])
  }
}

/// The chunks of a track that no row names yet.
struct ChunkSeries: Sendable {
  /// Its name in the rows of the chunks and of their track.
  let name = UUIDv7().text
  /// Total size of the chunks in the catalog, in bytes.
  let bytes: Int64
  /// The chunks that aren't stored yet. The index of each is its number.
  private(set) var rest: ArraySlice<LabelChunk>

  init(_ chunks: [LabelChunk]) {
    bytes = chunks.reduce(0) { $0 + Int64($1.bytes) }
    rest = chunks[...]
  }

  /// Whether some are stored.
  var isStored: Bool { rest.startIndex > 0 }
  /// Whether some are stored, or will be, before the transaction that names them.
  var isLong: Bool { bytes > LabelChunk.bytesAtOnce }

  /// Takes about a megabyte off, unless these are the last ones.
  mutating func takeBatch() -> ArraySlice<LabelChunk>? {
    var (bytes, end) = (0, rest.startIndex)
    while end < rest.endIndex, bytes < LabelChunk.bytesAtOnce {
      bytes += rest[end].bytes
      end += 1
    }
    guard end < rest.endIndex else { return nil }
    defer { rest = rest[end...] }
    return rest[..<end]
  }
}

/// A track as a row of `label_tracks`.
struct LabelTrackRow: TableRow {
  static let table = "label_tracks"

  let track: LabelTrack

  init(track: LabelTrack) { self.track = track }

  init(row: SQLRow) throws {
    var track = LabelTrack(
      id: try identifier(row, "id"), recording: try identifier(row, "recording"), name: try value(row, "name"),
      kind: try choice(row, "kind"), language: try nullable(row, "language"), source: try choice(row, "source"),
      createdAt: Timestamp(milliseconds: try value(row, "created_at")),
      changedAt: Timestamp(milliseconds: try value(row, "changed_at")))
    track.tenant = try tenant(row)
    track.count = try value(row, "count")
    track.words = try value(row, "words")
    track.bytes = try value(row, "bytes")
    track.start = try nullable(row, "start")
    track.end = try nullable(row, "until")
    track.version = try value(row, "version")
    track.series = try value(row, "series")
    track.nextLabel = try value(row, "next_label")
    self.track = track
    guard track.createdAt.isPlausible, track.changedAt.isPlausible, track.count >= 0, track.words >= 0 else {
      throw StorageError.corrupt(column: "label_tracks", value: track.id.text)
    }
  }

  func encode(to container: inout ColumnValues) throws {
    container["id"] = track.id.text
    container["tenant"] = track.tenant.name
    container["recording"] = track.recording.text
    container["name"] = track.name
    container["kind"] = track.kind.rawValue
    container["language"] = track.language
    container["source"] = track.source.rawValue
    container["count"] = track.count
    container["words"] = track.words
    container["bytes"] = track.bytes
    container["start"] = track.start
    container["until"] = track.end
    container["version"] = track.version
    container["series"] = track.series
    container["next_label"] = track.nextLabel
    container["created_at"] = track.createdAt.milliseconds
    container["changed_at"] = track.changedAt.milliseconds
  }
}
