// Moves what one machine has in a data folder into the catalog and the media that several machines share, or back. The
// source stays as it is.
//
//   1. the place      the target's catalog is bound to its media as those of an unfinished move, or a data folder gets
//                     a file that says so. Until step 4, no service starts there
//   2. the files      each file that a row of the source names is copied under its key, and compared with the length
//                     and the SHA-256 that the row has. In a bucket it is announced before (Catalog+Objects)
//   3. the rows       in one transaction, which fails unless all files are there that the rows name, nothing else has
//                     come into the target, and uploads are as they were when their bytes were copied
//   4. the end        all rows of both are compared, and the target becomes usable
//
// A move that was killed at any moment goes on when it is run again: what is in place with the right length and hash
// isn't copied again. A data folder as the source is locked like by a service. A catalog as the source can't be locked;
// nodes that work on it meanwhile are found out by the comparison at the end.

/// Where a move reads: a catalog and the media that it describes.
package struct MoveSource {
  let catalog: Catalog
  let media: any ObjectStore
  /// What is released at the end.
  private let hold: AnyObject?

  /// The media that several machines share, and their catalog, whose tables are those of this version.
  ///
  /// Throws `.otherMedia` if they don't belong together, and `.unfinishedMove` if a move has filled them in part.
  package init(_ catalog: Catalog, _ media: any ObjectStore) throws(StorageError) {
    guard let id = try catalog.boundMedia().id, try media.mediaID() == id else { throw .otherMedia(path: media.name) }
    (self.catalog, self.media, hold) = (catalog, media, nil)
  }

  /// A data folder, which this process claims. It isn't changed. A catalog of an earlier version is read from a copy
  /// in the folder for temporary files.
  ///
  /// Throws `.inUse`, `.sharedMedia`, `.unfinishedMove`, `.lostCatalog`, `.damagedCatalog` or `.newerSchema`.
  package init(dataFolder path: String) throws(StorageError) {
    let store = MediaStore(lookingAt: path)
    try store.checkIsDataFolder()
    guard FileSystem.identity(of: store.catalogPath) != nil else { throw .lostCatalog(path: store.catalogPath) }
    try store.claim()
    let view = try CatalogView(path: store.catalogPath)
    guard !view.isNew else { throw .lostCatalog(path: store.catalogPath) }
    (catalog, media, hold) = (view.catalog, FolderStore(store), view)
  }
}

/// Copies everything from one place to another that is empty.
package struct Move {
  /// What was moved.
  package struct Report: Sendable {
    /// Number of recordings.
    package var recordings = 0
    /// Number of unfinished uploads.
    package var uploads = 0
    /// Number of files that were copied; with `earlierFiles`, all.
    package var files = 0
    /// Total length of these, in bytes.
    package var bytes: Int64 = 0
    /// Number of files that an earlier run had copied.
    package var earlierFiles = 0
    /// Number of conversions that were left out, because their file was missing or damaged. They are made again when
    /// someone asks for them.
    package var lostConversions: Int { omitted.count }
    /// Their keys.
    var omitted: Set<String> = []
    /// Number of recordings whose waveform or working copy was left out, because its file was missing or damaged. The
    /// service at the new place finds out and builds it again.
    package var lostWaveforms = 0
    /// Number of recordings that an earlier run had copied to a data folder and that are gone from the source. Their
    /// folders are in `orphaned`, so that the service doesn't take them up again.
    package var forgottenRecordings = 0
    /// What is wrong at the source. If there is anything, no rows were copied.
    package var foundProblems = DataCheck.Findings()

    /// The first problems of each code.
    package var problems: [DataCheck.Finding] { foundProblems.listed }

    /// Adds what was done for other recordings.
    mutating func add(_ more: Self) {
      files += more.files
      bytes += more.bytes
      earlierFiles += more.earlierFiles
      omitted.formUnion(more.omitted)
      lostWaveforms += more.lostWaveforms
      foundProblems.add(more.foundProblems)
    }
  }

  private let source: MoveSource
  private let target: any MoveTarget
  private let waveformFault: @Sendable (String) -> String?

  /// Creates a move. Nothing is changed yet. `waveformFault` returns what is wrong with the waveform file at a path, or
  /// nil.
  package init(
    from source: MoveSource, to target: any MoveTarget, waveformFault: @escaping @Sendable (String) -> String?
  ) {
    (self.source, self.target, self.waveformFault) = (source, target, waveformFault)
  }

  /// How many recordings are read at once.
  private static let page = 200
  /// Announcements are for a day.
  private static let renewalSeconds = 3600.0
  /// Maximum size of an object with bytes of an upload.
  private static let uploadObjectBytes: Int64 = 64 << 20
  /// A source with more problems needs `stillwave check`: no more are looked for.
  package static let problemLimit = 1000

  /// Moves everything. Reads every file once. Calls `progress` a few times per second with the fraction done, 0 … 1; it
  /// returns whether to continue.
  ///
  /// Throws `.notEmpty` if the target has anything, `.sourceChanged` if somebody works on the source, `.cancelled`,
  /// `.diskFull`, `.storeFull` and the errors of the stores. What was copied then stays for the next run. Blocks.
  package func run(progress: (Double) -> Bool = { _ in true }) throws(StorageError) -> Report {
    var report = Report()
    report.foundProblems = try unreadableRows()
    guard report.foundProblems.isEmpty else { return report }
    if try isWritten() { return try ended(report) }
    try copyFiles(&report, progress)
    let uploads = try report.foundProblems.isEmpty ? copyUploads(&report) : []
    guard report.foundProblems.isEmpty else { return report }
    try target.media.sync()
    try target.announcements?.renewAnnouncements()
    let omitted = report.omitted
    try target.write { [catalog = source.catalog] db, confirm in
      try Self.copyRows(from: catalog, to: db, uploads, without: omitted, confirm)
    }
    guard try isSame(without: omitted) else { throw .sourceChanged }
    return try ended(report)
  }

  /// Whether an earlier run was killed after it had written all rows. Removes them if the source has changed since.
  private func isWritten() throws(StorageError) -> Bool {
    switch target.state {
    case .new, .begun: return false
    case .ended:
      guard try isSame() else { throw .notEmpty(path: target.name) }
    case .written:
      guard try isSame() else {
        try target.clear()
        return false
      }
    }
    return true
  }

  private func ended(_ report: Report) throws(StorageError) -> Report {
    var report = report
    report.forgottenRecordings = try target.end()
    (report.recordings, report.uploads) = try counts()
    return report
  }

  private func unreadableRows() throws(StorageError) -> DataCheck.Findings {
    var found = DataCheck.Findings()
    func add(_ rows: String) {
      found.add(DataCheck.Finding(code: "row_unreadable", path: "catalog", detail: "\(rows) can't be read."))
    }
    try source.catalog.eachUnreadableRecording { add("The row of recording “\($0)”") }
    for (table, count) in try source.catalog.unreadableCounts() { add("\(count) rows of the table “\(table)”") }
    return found
  }

  private func counts() throws(StorageError) -> (recordings: Int, uploads: Int) {
    try source.catalog.read { db in
      (
        try db.first("SELECT count(*) FROM recordings") ?? 0,
        try db.first("SELECT count(*) FROM uploads WHERE recording IS NULL") ?? 0
      )
    }
  }

  // MARK: Files

  private func copyFiles(_ report: inout Report, _ progress: (Double) -> Bool) throws(StorageError) {
    let (catalog, clock) = (source.catalog, source.catalog.clock)
    let objects = ObjectMove(
      source: source.media, target: target.media, isResumed: target.state != .new, clock: clock,
      waveformFault: waveformFault)
    let total = try catalog.movedWeight()
    var (done, renewed) = (0.0, clock.now)
    try Inventory(of: catalog, batch: Self.page).eachPage { (page) throws(StorageError) in
      guard report.foundProblems.count < Self.problemLimit else { return }
      try target.announcements?.announce(page.flatMap { $0.recording.objects + $0.conversions.map(\.key) })
      let before = report.bytes
      try objects.run(page, &report) { (bytes) throws(StorageError) in
        if clock.seconds(since: renewed) > Self.renewalSeconds {
          try target.announcements?.renewAnnouncements()
          renewed = clock.now
        }
        return progress(min(1, (done + Double(bytes - before)) / total))
      }
      done += page.reduce(0) { $0 + $1.recording.movedWeight }
      guard progress(min(1, done / total)) else { throw .cancelled }
    }
  }

  /// Copies the bytes of unfinished uploads: into one file, or as objects.
  private func copyUploads(_ report: inout Report) throws(StorageError) -> [MovedUpload] {
    let (from, to) = (source.media, target.media)
    var moved: [MovedUpload] = []
    for upload in try source.catalog.unfinishedUploads() {
      var objects: [UploadObject] = []
      if to.isBucket {
        for start in stride(from: 0, to: upload.offset, by: Int(Self.uploadObjectBytes)) {
          let bytes = min(Self.uploadObjectBytes, upload.offset - start)
          objects.append(UploadObject(of: upload.id, start: start, bytes: bytes))
        }
        try target.announcements?.announce(objects)
      }
      var isWhole = false
      if let pieces = try source.catalog.pieces(of: upload, in: from) {
        isWhole =
          if to.isBucket { try put(objects, from: pieces) } else {
            try to.take(pieces, of: from, as: to.path(of: upload.id)) { _ in true } != nil
          }
      }
      guard isWhole else {
        report.foundProblems.add(
          DataCheck.Finding(
            code: "upload_damaged", path: "uploads/\(upload.id)",
            detail: "The upload was acknowledged up to byte \(upload.offset), and there are fewer."))
        continue
      }
      report.files += 1
      report.bytes += upload.offset
      moved.append(MovedUpload(id: upload.id, offset: upload.offset, objects: objects))
    }
    return moved
  }

  /// Puts the objects of an upload, whose bytes are in one file. Returns false if the file lacks some.
  private func put(_ objects: [UploadObject], from pieces: [ObjectPiece]) throws(StorageError) -> Bool {
    guard !objects.isEmpty else { return true }
    guard pieces.count == 1 else { return false }
    for object in objects {
      let piece = ObjectPiece(pieces[0].key, object.start..<object.end)
      if try target.media.take([piece], of: source.media, as: object.key, if: { _ in true }) == nil { return false }
    }
    return true
  }

  // MARK: Rows

  /// Called in a transaction with the keys of objects that its rows name, and of others that they may have; throws if
  /// one of the former isn't there.
  package typealias Confirmation = ([String], [String]) throws -> Void

  /// Copies all rows into a transaction, except conversions with the keys `omitted`. Rows of recordings may name
  /// waveforms and working copies that are lost.
  private static func copyRows(
    from source: Catalog, to target: any SQLSession, _ uploads: [MovedUpload], without omitted: Set<String>,
    _ confirm: Confirmation
  ) throws {
    let offsets = Dictionary(uploads.map { ($0.id.text, $0.offset) }) { $1 }
    try source.engine.read { session in
      for table in MovedTable.all {
        // Triggers have counted what was inserted so far; the source knows better which deleted profiles don't count.
        if table.name == "usage" { try target.run("DELETE FROM usage", bound: []) }
        var inserter = RowInserter(table, target)
        var named = NamedObjects()
        try table.eachRow(in: session, without: omitted) { row in
          try named.add(row, of: table, confirm)
          if table.name == "uploads", row["recording"] == .null {
            guard case .text(let id)? = row["id"], row["offset"] == offsets[id].map(SQLValue.integer) else {
              throw StorageError.sourceChanged
            }
          }
          try inserter.insert(row)
        }
        try inserter.flush()
        try named.flush(confirm)
      }
    }
    let db = CatalogTransaction(target)
    for object in uploads.flatMap(\.objects) {
      try db.run(
        "INSERT INTO upload_objects (upload, start, bytes, name) VALUES (?, ?, ?, ?)",
        [object.upload.text, object.start, object.bytes, object.name])
      try confirm([object.key], [])
    }
  }

  /// Whether both catalogs have the same rows.
  private func isSame(without omitted: Set<String> = []) throws(StorageError) -> Bool {
    let there = try CatalogDigest(of: target.catalogForReading())
    return try CatalogDigest(of: source.catalog, without: omitted) == there
  }
}

/// An unfinished upload whose bytes were copied.
private struct MovedUpload: Sendable {
  let id: UploadID
  let offset: Int64
  let objects: [UploadObject]
}

/// Collects the keys that rows name, and has them confirmed in batches.
private struct NamedObjects {
  private var named: [String] = []
  private var others: [String] = []
  private static let batch = 300

  mutating func add(_ row: SQLRow, of table: MovedTable, _ confirm: Move.Confirmation) throws {
    func keys(_ columns: [String]) -> [String] {
      columns.compactMap { if case .text(let key)? = row[$0] { key } else { nil } }
    }
    if table.name == "conversions" { named += keys(["key"]) }
    if table.name == "recordings", case .text(let id)? = row["id"] {
      // Waveforms and working copies may be lost: the service makes them again.
      let (sounds, parts) = (keys(["audio_key"]), keys(["working_key", "waveform_key"]))
      named += sounds
      others += parts
      let keys = sounds + parts
      guard !keys.isEmpty else { return }
      others += keys.map { $0 + ".map" }
      if let id = RecordingID(id), case .integer(let version)? = row["version"] {
        others.append("\(ObjectKey.description(of: id, version: version))")
      }
    }
    if max(named.count, others.count) >= Self.batch { try flush(confirm) }
  }

  mutating func flush(_ confirm: Move.Confirmation) throws {
    guard !named.isEmpty || !others.isEmpty else { return }
    try confirm(named, others)
    (named, others) = ([], [])
  }
}

extension Recording {
  /// The recording's part of the work, in bytes: each has some small files.
  fileprivate var movedWeight: Double { Double(bytes ?? 0) + Double(Catalog.smallFileWeight) }
}

extension Catalog {
  fileprivate static let smallFileWeight = 65_536

  /// The whole work, in bytes.
  fileprivate func movedWeight() throws(StorageError) -> Double {
    let sql = "SELECT count(*) AS recordings, CAST(coalesce(sum(bytes), 0) AS bigint) AS bytes FROM recordings"
    return try read { db in
      guard let row = try db.row(sql) else { return 1 }
      let count: Int = try value(row, "recordings")
      return max(1, Double(try value(row, "bytes") as Int64) + Double(count * Self.smallFileWeight))
    }
  }
}
