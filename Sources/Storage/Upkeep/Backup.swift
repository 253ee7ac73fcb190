import Glibc

// A backup is itself a data directory, on which `stillwave serve` could be started:
//
//   BACKUP/catalog.sqlite           a snapshot of the catalog (VACUUM INTO)
//   BACKUP/recordings/<id>/…        the files of every recording in it
//   BACKUP/uploads/<id>.part        the acknowledged bytes of unfinished uploads
//   BACKUP/token-secret             the secrets for tokens: those of a file of the operator's, or the service's own
//   BACKUP/SHA256SUMS               "<64 digits>  <path>" for each file, in the format of sha256sum -c
//
// The catalog is copied first, then the files. Files never change once they have a row, so those of a recording in the
// catalog are right whenever they are read, and descriptions are written as the copied rows are; a recording deleted in
// between is dropped from the backup too. The bytes of
// an upload that has ended in between are a recording's by now, whose rows, with those of the labels that it brought,
// are read from the live catalog. The backup appears under its name once all of it is on disk; in an existing empty
// folder, SHA256SUMS appears last.

/// Copies a data directory to a backup, even while a service uses it.
package struct Backup: Sendable {
  /// How files get into the backup.
  package enum Method: Sendable {
    /// Creates hard links if both are on one disk, which takes no room but doesn't protect against a failing disk.
    /// Otherwise copies.
    case link
    case copy
  }

  /// The contents of a completed backup.
  package struct Report: Sendable, Equatable {
    /// Number of recordings.
    package var recordings = 0
    /// Number of unfinished uploads.
    package var uploads = 0
    /// Number of files, including the catalog.
    package var files = 0
    /// Total length of the files without the catalog, in bytes.
    package var bytes: Int64 = 0
    /// Recordings damaged on disk: their row can't be read, or their audio was lost or changed before the backup.
    package var damaged: [RecordingID] = []
    /// Whether the backup has secrets for tokens.
    package var hasSecrets = false
  }

  /// The name of the list of checksums.
  static let sums = "SHA256SUMS"

  private let source: String
  private let destination: String
  private let method: Method
  private let secrets: String?

  /// Creates a backup of the data directory `source` at `destination`, which must not exist or must be empty. `secrets`
  /// is the file of secrets for tokens, if the service uses one outside its data directory.
  package init(of source: String, to destination: String, method: Method = .link, secrets: String? = nil) {
    (self.source, self.destination, self.method, self.secrets) = (source, destination, method, secrets)
  }

  /// Makes the backup. Reads every file once for its checksum. After each recording, calls `progress` with the fraction
  /// done, 0 … 1; it returns whether to continue.
  ///
  /// Throws `.damagedCatalog` or `.lostCatalog` if there is no usable catalog, or `.cancelled`, `.diskFull`, or `.io`,
  /// leaving nothing behind. Blocks.
  package func make(progress: (Double) -> Bool = { _ in true }) throws(StorageError) -> Report {
    let catalogPath = source + "/catalog.sqlite"
    guard try Catalog.inspect(path: catalogPath, withinSeconds: 3600) != .new else {
      throw .lostCatalog(path: catalogPath)
    }
    var folder = try TemporaryDirectory(for: destination, lastFile: Self.sums)
    try copyCatalog(from: catalogPath, to: folder.path + "/catalog.sqlite")
    var contents = BackupContents(folder: folder.path, method: method)
    let report = try contents.take(from: source, secrets: secrets, progress: progress)
    try folder.commit()
    return report
  }

  /// Opens a catalog that a service may use.
  fileprivate static func openLive(_ path: String) throws(StorageError) -> SQLiteConnection {
    try SQLiteConnection(path, patienceSeconds: 30)
  }

  private func copyCatalog(from path: String, to copy: String) throws(StorageError) {
    do throws(StorageError) { try Self.openLive(path).run("VACUUM INTO ?", [copy]) } catch { throw error.naming(path) }
    FileSystem.makePrivate(copy)
    try FileDescriptor(path: copy, flags: O_RDWR).sync()
  }
}

/// A backup being made.
private struct BackupContents {
  let folder: String
  let method: Backup.Method
  private var report = Backup.Report()
  private var sums: [String] = []

  init(folder: String, method: Backup.Method) {
    (self.folder, self.method) = (folder, method)
  }

  /// Copies the files named by the copied catalog from the data directory `source`.
  mutating func take(
    from source: String, secrets: String?, progress: (Double) -> Bool
  ) throws(StorageError) -> Backup.Report {
    let catalog = try Catalog(path: folder + "/catalog.sqlite")
    for name in ["recordings", "uploads"] { try FileSystem.makeFolder(folder + "/" + name) }
    try Inventory(of: catalog).each(progress: progress) { (entry) throws(StorageError) in
      try take(entry, from: source, catalog)
    }
    for id in try catalog.unreadableRecordings().compactMap(RecordingID.init) {
      try take(unreadable: id, from: source)
    }
    for upload in try catalog.unfinishedUploads() { try take(upload, from: source, catalog) }
    try takeSecrets(from: secrets ?? source + "/" + MediaStore.tokenSecret, mustExist: secrets != nil)
    while try catalog.eraseChunks() {}
    // The removals' files aren't in the backup, so their IDs would stay in it forever.
    try catalog.forgetRemovals(catalog.removals())
    try catalog.close()
    for name in ["recordings", "uploads"] { try FileSystem.syncFolder(folder + "/" + name) }
    note("catalog.sqlite", try digest("catalog.sqlite").sha256)
    let list = sums.sorted { $0.dropFirst(66) < $1.dropFirst(66) }.map { $0 + "\n" }.joined()
    try FileSystem.replace(folder + "/" + Backup.sums, with: Array(list.utf8))
    return report
  }

  private mutating func take(
    _ entry: InventoryEntry, from source: String, _ catalog: Catalog
  ) throws(StorageError) {
    // Without items, the job that produces it hasn't finished, so there is nothing to copy yet.
    let (items, recording) = (entry.items, entry.recording)
    guard let audio = items.first else { return }
    let inner = "recordings/\(recording.id)"
    try FileSystem.makeFolder(folder + "/" + inner)
    guard let found = try copy("\(audio.key)", from: source) else {
      // If the folder is gone too, the recording was deleted. A row without audio is useless in a backup.
      if FileSystem.isFolder(source + "/" + inner) { report.damaged.append(recording.id) }
      try FileSystem.remove(folder + "/" + inner)
      _ = try catalog.deleteRecording(recording.id)
      return
    }
    if found != recording.sha256 { report.damaged.append(recording.id) }
    // A damaged row may name a file twice, or another recording's.
    let keys = Set(items.map(\.key) + entry.maps).filter {
      $0.recording == recording.id && $0.descriptionVersion == nil
    }
    for key in keys where key != audio.key { _ = try copy("\(key)", from: source) }
    let description = "\(recording.descriptionKey)"
    try FileSystem.replace(folder + "/" + description, with: recording.describedJSON)
    try add(description, digest(description))
    try FileSystem.syncFolder(folder + "/" + inner)
    report.recordings += 1
  }

  /// The row stays unreadable in the copied catalog. With the folder's description, the next start can restore it.
  private mutating func take(unreadable id: RecordingID, from source: String) throws(StorageError) {
    report.damaged.append(id)
    let inner = "recordings/\(id)"
    try FileSystem.makeFolder(folder + "/" + inner)
    let names: [String]
    do { names = try FileSystem.names(in: source + "/" + inner) } catch .io(_, _, ENOENT) { return }
    for name in names { _ = try copy(inner + "/" + name, from: source) }
    try FileSystem.syncFolder(folder + "/" + inner)
  }

  /// A part may grow or be truncated while it is copied; only its acknowledged beginning, which doesn't change, is
  /// copied.
  private mutating func take(_ upload: Upload, from source: String, _ catalog: Catalog) throws(StorageError) {
    let inner = "uploads/" + upload.id.text + ".part"
    do {
      add(inner, try FileSystem.copy(source + "/" + inner, to: folder + "/" + inner, bytes: upload.offset))
    } catch .io(_, _, ENOENT) {
      return try follow(upload, in: source, catalog)
    }
    report.uploads += 1
  }

  /// Takes the recording that an upload has become since the catalog was copied, alone or joined with others. Drops the
  /// upload if it was canceled or its recording deleted.
  private mutating func follow(_ upload: Upload, in source: String, _ catalog: Catalog) throws(StorageError) {
    let made = try Self.rows(madeOf: upload.id, in: source + "/catalog.sqlite")
    if made?.upload.id != upload.id { _ = try catalog.deleteUpload(upload.id) }
    // The upload that others were joined into may be in the copy itself, and each of them leads to it.
    guard let (finished, recording, rows) = made, try catalog.recording(recording.id) == nil else { return }
    if try catalog.upload(finished.id) == nil {
      try catalog.insert(recording, jobs: [])
      try catalog.insert(rows)
    } else {
      try catalog.insert(recording, jobs: [], finishing: finished.id, expiresAt: finished.expiresAt)
      try catalog.insert(rows.filter { $0.table != "uploads" })
    }
    try take(InventoryEntry(recording: recording, conversions: []), from: source, catalog)
  }

  /// Returns the recording that an upload has become, the upload that it was finished as, and the rows of that, of its
  /// labels and of the job that found them: without that, the labels would be taken in again when the waveform is
  /// rebuilt. Nil if there is no recording.
  private static func rows(
    madeOf upload: UploadID, in path: String
  ) throws(StorageError) -> (upload: Upload, Recording, [(table: String, row: SQLRow)])? {
    do throws(StorageError) {
      let live = try Backup.openLive(path)
      return try live.transaction("BEGIN") {
        let joined = "substr(concatenation, 1, 6) = 'final;' AND instr(concatenation, ?) > 0"
        let found = try live.row(
          "SELECT * FROM uploads WHERE recording IS NOT NULL AND (id = ? OR \(joined))", [upload.text, upload.text])
        guard let finished = try found.map({ try UploadRow(row: $0).upload }), let id = finished.recording,
          let row = try live.row("SELECT * FROM recordings WHERE id = ?", [id.text])
        else { return nil }
        let recording = try RecordingRow(row: row).recording
        let rows = try [
          ("uploads", "recording = ?"), ("jobs", "recording = ? AND kind = 'waveform' AND state = 'succeeded'"),
          ("label_tracks", "recording = ?"),
          ("label_chunks", "series IN (SELECT series FROM label_tracks WHERE recording = ?)"),
        ].flatMap { table, condition in
          try live.rows("SELECT * FROM \(table) WHERE \(condition)", [recording.id.text]).map {
            (table: table, row: $0)
          }
        }
        return (finished, recording, rows)
      }
    } catch {
      throw error.naming(path)
    }
  }

  /// A link would change with the secrets.
  private mutating func takeSecrets(from path: String, mustExist: Bool) throws(StorageError) {
    do {
      note(MediaStore.tokenSecret, try FileSystem.copy(path, to: folder + "/" + MediaStore.tokenSecret).sha256)
    } catch {
      guard !mustExist, case .io(_, _, ENOENT) = error else { throw error }
      return
    }
    report.hasSecrets = true
  }

  /// Copies a file, and returns its SHA-256; nil if it is missing, or if a damaged row has given it a name that the
  /// list of checksums can't have.
  private mutating func copy(_ inner: String, from source: String) throws(StorageError) -> String? {
    guard Backup.isOwnFile(String(inner.split(separator: "/").last ?? "")) else { return nil }
    let (path, copy) = (source + "/" + inner, folder + "/" + inner)
    do {
      var isLinked = false
      if method == .link {
        do {
          try FileSystem.link(path, to: copy)
          isLinked = true
        } catch .io(_, _, let number) where [EXDEV, EPERM, EMLINK, EOPNOTSUPP].contains(number) {
          // It is on another disk, or the disk doesn't support links: copy instead.
        }
      }
      let found = try isLinked ? digest(inner) : FileSystem.copy(path, to: copy)
      add(inner, found)
      return found.sha256
    } catch .io(_, _, ENOENT) {
      return nil
    }
  }

  private func digest(_ inner: String) throws(StorageError) -> (bytes: Int64, sha256: String) {
    // A pipe that was put among the files would never be opened otherwise.
    try FileDescriptor(path: folder + "/" + inner, flags: O_RDONLY | O_NONBLOCK).digest()
  }

  private mutating func add(_ inner: String, _ found: (bytes: Int64, sha256: String)) {
    note(inner, found.sha256)
    report.bytes += found.bytes
  }

  private mutating func note(_ inner: String, _ digest: String) {
    sums.append("\(digest)  \(inner)")
    report.files += 1
  }
}

extension Backup {
  /// Whether a file in a recording's folder was created and completed by the service.
  static func isOwnFile(_ name: String) -> Bool {
    MediaStore.isFileName(name) && name != MediaStore.marker && !name.hasSuffix(".new")
      && name.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\\") }
  }
}
