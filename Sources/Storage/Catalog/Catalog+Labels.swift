// Labels of recordings. A track is a row, and its labels are chunks of some hundred, because an editor replaces all of
// them with every change and a window reads few: with 200,000 rows instead of 800, a change would take seconds. A
// window looks through the index of the chunks' times, which also finds labels that are longer than the others.
//
// Deleting 16 MB of chunks takes SQLite a tenth of a second, and a recording may have 64 such tracks. So a track is
// deleted without its chunks, which can no longer be read. A row of `garbage`, labels/<track>, names them, and
// `eraseTraces` deletes about a megabyte of them in each transaction, also after a crash.
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
  package func labels(
    of id: LabelTrackID, from start: Int64 = 0, to end: Int64 = .max, containing text: String? = nil,
    of tenant: Tenant? = nil
  ) throws(StorageError) -> (track: LabelTrack, chunks: [FoundLabels])? {
    let folded = text.flatMap { $0.isEmpty ? nil : NameSearch.foldLines([$0]) }
    let search = folded.map { ByteSearch(Array($0.utf8)) }
    return try read { db in
      guard let track = try Self.labelTrack(id, of: tenant, db) else { return nil }
      var filter = Filter()
      filter.add("track = ?", id.text)
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
      WHERE track IN (SELECT id FROM label_tracks\(filter.text)) AND number > ? AND start < ? AND until >= ?
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
    try write(.statementLocks) { db in
      // Locked, so that others who count its tracks wait.
      guard let recording = try Self.locked(track.recording, of: tenant, db) else {
        throw StorageError.noSuchRecording(track.recording)
      }
      var track = track
      track.tenant = recording.tenant
      let count =
        try db.first("SELECT count(*) FROM label_tracks WHERE recording = ?", [track.recording.text], as: Int.self) ?? 0
      guard count < limit else { throw StorageError.tooManyLabelTracks(limit: limit) }
      try Self.insert(track, chunks, db)
      try Self.checkBytes(limits, of: track.tenant, db)
    }
  }

  /// Inserts tracks found in a recording's file, as many as fit, unless it has such tracks already.
  static func insert(
    embedded tracks: [(track: LabelTrack, chunks: [LabelChunk])], of recording: Recording, limit: Int,
    _ db: CatalogTransaction
  ) throws {
    let rows = try db.rows("SELECT source FROM label_tracks WHERE recording = ?", [recording.id.text])
    guard try !rows.contains(where: { try choice($0, "source") == LabelTrack.Source.embedded }) else { return }
    for (track, chunks) in tracks.prefix(max(0, limit - rows.count)) {
      var track = track
      track.tenant = recording.tenant
      try insert(track, chunks, db)
    }
  }

  /// Changes a track and, with `chunks`, its labels. Returns the new track, or nil if it does not exist.
  /// Throws, without any change, `.changedMeanwhile` if `isExpected` returns false for the current track, and
  /// `.limitReached` if the labels would need more bytes than before and the tenant would have more than `limits`.
  package func update(
    _ id: LabelTrackID, of tenant: Tenant? = nil, if isExpected: @Sendable (LabelTrack) -> Bool,
    _ chunks: ChangedChunks = .none, within limits: StoredLimits? = nil, _ change: @Sendable (inout LabelTrack) -> Void
  ) throws(StorageError) -> LabelTrack? {
    try write(.statementLocks) { db in
      guard var track = try Self.lockedTrack(id, of: tenant, db) else { return nil }
      guard isExpected(track) else { throw StorageError.changedMeanwhile }
      let before = track.bytes
      change(&track)
      track.version += 1
      track.changedAt = max(time, track.createdAt)
      switch chunks {
      case .none: break
      case .all(let chunks):
        try db.erase("DELETE FROM label_chunks WHERE track = ?", [id.text])
        track.bytes = try Self.insert(chunks, of: id, db)
      case .some(let changes):
        for (number, (before, after)) in changes.sorted(by: { $0.key < $1.key }) {
          if before > 0 {
            try db.erase("DELETE FROM label_chunks WHERE track = ? AND number = ?", [id.text, number])
            track.bytes -= Int64(before)
          }
          if let after { track.bytes += try Self.insert([after], of: id, from: number, db) }
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
    let tracks = try db.eraseReturning("DELETE FROM label_tracks WHERE \(condition) RETURNING id", arguments)
    try Self.addGarbage(
      tracks.map { Self.chunkGarbage + (try value($0, "id") as String) }, due: try now(db), db)
  }

  /// How the name of a deleted track's chunks in `garbage` begins.
  static let chunkGarbage = "labels/"

  /// Deletes about a megabyte of the chunks of deleted tracks. Returns false if there are none. Several nodes may do
  /// this at once, each for other tracks.
  func eraseChunks() throws(StorageError) -> Bool {
    // "0" follows "/", and text is sorted by its bytes.
    let find = "SELECT object FROM garbage WHERE object > 'labels/' AND object < 'labels0' ORDER BY object LIMIT 1"
    // Usually there are none, and nothing is written.
    guard try read({ try $0.first(find, as: String.self) }) != nil else { return false }
    return try write(.statementLocks) { db in
      guard let name = try db.first(find + db.dialect.skippingLocked, as: String.self) else { return false }
      let track = String(name.dropFirst(Self.chunkGarbage.count))
      let rows = try db.rows(
        "SELECT number, CAST(length(labels) AS bigint) AS bytes FROM label_chunks WHERE track = ? ORDER BY number LIMIT ?",
        [track, Self.chunksAtOnce])
      var (bytes, count, last) = (0, 0, -1)
      for row in rows where bytes < Self.labelBytesAtOnce {
        bytes += try value(row, "bytes") as Int
        count += 1
        last = try value(row, "number")
      }
      try db.run("DELETE FROM label_chunks WHERE track = ? AND number <= ?", [track, last])
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

  private static func insert(_ track: LabelTrack, _ chunks: [LabelChunk], _ db: CatalogTransaction) throws {
    // The chunks need the track's row, which gets their length once it is known.
    try LabelTrackRow(track: track).insert(db)
    var track = track
    track.bytes = try insert(chunks, of: track.id, db)
    try LabelTrackRow(track: track).update(db)
  }

  /// Returns how many bytes the chunks have.
  private static func insert(
    _ chunks: [LabelChunk], of id: LabelTrackID, from first: Int = 0, _ db: CatalogTransaction
  ) throws -> Int64 {
    var bytes: Int64 = 0
    let sql = "INSERT INTO label_chunks (track, number, start, until, folded, labels) VALUES (?, ?, ?, ?, ?, ?)"
    for (number, chunk) in zip(first..., chunks) {
      bytes += Int64(chunk.bytes)
      try db.run(sql, [id.text, number, chunk.start, chunk.end, chunk.folded, chunk.labels])
    }
    return bytes
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
    container["next_label"] = track.nextLabel
    container["created_at"] = track.createdAt.milliseconds
    container["changed_at"] = track.changedAt.milliseconds
  }
}
