import Glibc

// What `stillwave check` compares: the catalog's rows, the folders' descriptions, the files, and their hashes. It
// changes nothing; DataRepair fixes what it can. While a service is running, a row and its files are read one after the
// other, so every finding is checked against the current row before it is reported.

/// Checks a data directory for inconsistencies and damage.
package struct DataCheck: Sendable {
  /// Something that is wrong.
  package struct Finding: Sendable, Equatable, Codable {
    /// A stable identifier in snake_case: "audio_missing".
    package var code: String
    /// The path of the file or folder in the data directory.
    package var path: String
    /// An explanation.
    package var detail: String
  }

  /// The extent of the check and its findings.
  package struct Report: Sendable, Equatable, Codable {
    /// Number of readable rows of recordings.
    package var recordings = 0
    /// Number of files checked.
    package var files = 0
    /// Total length of the audio files, in bytes.
    package var bytes: Int64 = 0
    /// Problems that a person or `--repair` must fix.
    package var problems: [Finding] = []
    /// Leftovers that the next start cleans up, or that a person may want to inspect.
    package var notes: [Finding] = []

    /// Creates an empty report.
    package init() {}

    /// Whether there are no problems.
    package var isSound: Bool { problems.isEmpty }
  }

  let store: MediaStore
  private let readsAudio: Bool
  private let pyramidFault: @Sendable (String) -> String?

  /// Creates a check.
  /// - Parameters:
  ///   - readsAudio: whether to read every audio file and compare its SHA-256, or only compare its length.
  ///   - pyramidFault: returns a description of what is wrong with the waveform file at a path, or nil.
  package init(
    _ store: MediaStore, readsAudio: Bool = true, pyramidFault: @escaping @Sendable (String) -> String?
  ) {
    (self.store, self.readsAudio, self.pyramidFault) = (store, readsAudio, pyramidFault)
  }

  /// Checks everything. After each recording, calls `progress` with the fraction done, 0 … 1; it returns whether to
  /// continue. Throws `.cancelled`, or an error if a folder can't be read at all. Blocks.
  package func run(progress: (Double) -> Bool = { _ in true }) throws(StorageError) -> Report {
    var report = Report()
    guard let view = try openCatalog(&report) else { return report }
    try checkRows(view.catalog, isLive: view.isLive, &report, progress)
    try checkFolders(view.catalog, &report)
    try checkUploads(view.catalog, &report)
    try noteLeftovers(["incoming", "jobs", "removed"], &report)
    return report
  }

  /// The same for the folder that several machines share and their catalog.
  package func run(
    sharedBy catalog: Catalog, progress: (Double) -> Bool = { _ in true }
  ) throws(StorageError) -> Report {
    var report = Report()
    try checkRows(catalog, isLive: true, &report, progress)
    try checkFolders(catalog, &report)
    try checkSegments(catalog, &report)
    try noteLeftovers(names(in: "incoming").map { "incoming/" + $0 } + ["jobs", "removed"], &report)
    return report
  }

  private func openCatalog(_ report: inout Report) throws(StorageError) -> CatalogView? {
    do {
      let view = try CatalogView(path: store.catalogPath)
      if view.isNew, try names(in: "recordings").contains(where: { RecordingID($0) != nil }) {
        throw StorageError.lostCatalog(path: store.catalogPath)
      }
      if view.isOlder {
        report.note(
          "schema_older", "catalog.sqlite", "The next start brings the catalog of an earlier version up to date.")
      }
      return view
    } catch StorageError.lostCatalog {
      report.add("catalog_lost", "catalog.sqlite", "There are recordings, but the catalog is missing or empty.")
    } catch StorageError.damagedCatalog(_, let detail) {
      report.add("catalog_damaged", "catalog.sqlite", "The catalog is damaged: \(detail).")
    } catch {
      throw StorageError(error)
    }
    return nil
  }

  /// What findings call the catalog.
  private var catalogName: String { store.isShared ? "catalog" : "catalog.sqlite" }

  /// Returns the names in one of the store's folders, none if the folder is missing.
  private func names(in folder: String) throws(StorageError) -> [String] {
    do { return try FileSystem.names(in: store.directory + "/" + folder) } catch .io(_, _, ENOENT) { return [] }
  }

  // MARK: Rows

  private func checkRows(
    _ catalog: Catalog, isLive: Bool, _ report: inout Report, _ progress: (Double) -> Bool
  ) throws(StorageError) {
    for id in try catalog.unreadableRecordings() {
      report.add("row_unreadable", catalogName, "The row of recording “\(id)” can't be read.")
    }
    for (table, count) in try catalog.unreadableCounts() {
      report.note("row_unreadable", catalogName, "\(count) rows of the table “\(table)” can't be read.")
    }
    let recordings = try catalog.recordings(limit: .max)
    var undescribed: [Recording] = []
    for (index, recording) in recordings.enumerated() {
      if let current = try check(recording, catalog, &report), !isDescribed(current) { undescribed.append(current) }
      guard progress(Double(index + 1) / Double(recordings.count)) else { throw .cancelled }
    }
    try checkDescriptions(undescribed, catalog, isLive: isLive, &report)
    for recording in try catalog.strandedRecordings() {
      report.add("job_missing", inner(recording.id), "The recording waits for a job that is not there.")
    }
  }

  /// Checks a recording, repeatedly if its row changes meanwhile. Returns nil if it was deleted.
  private func check(
    _ recording: Recording, _ catalog: Catalog, _ report: inout Report
  ) throws(StorageError) -> Recording? {
    var recording = recording
    while true {
      var found = Report()
      try check(recording, files: catalog.conversionFiles(of: recording.id), &found)
      if !found.problems.isEmpty || !found.notes.isEmpty {
        // If the row has become unreadable, the next check reports it.
        guard let current = try catalog.recording(recording.id) else { return nil }
        if current != recording {
          recording = current
          continue
        }
      }
      report.add(found)
      return recording
    }
  }

  private func check(
    _ recording: Recording, files conversions: [String], _ report: inout Report
  ) throws(StorageError) {
    report.recordings += 1
    guard let audio = recording.audioKey else { return }
    try checkAudio(audio, of: recording, &report)
    if let key = recording.workingKey { checkWorkingCopy(key, of: recording, &report) }
    if recording.waveformState == .ready, let key = recording.waveformKey {
      report.files += 1
      if store.look(at: key) == .absent {
        report.add("waveform_missing", "\(key)", "The waveform's file is missing.")
      } else if let fault = pyramidFault(store.path(of: key)) {
        report.add("waveform_damaged", "\(key)", "The waveform's file is damaged: \(fault).")
      }
    }
    try noteStrangeFiles(of: recording, beside: conversions, &report)
  }

  private func checkWorkingCopy(_ key: ObjectKey, of recording: Recording, _ report: inout Report) {
    let path = "\(key)"
    switch store.look(at: key) {
    case .absent: report.add("working_copy_missing", path, "The working copy of the audio is missing.")
    case .unknown: report.add("working_copy_damaged", path, "The working copy of the audio can't be read.")
    case .present(let bytes):
      guard let expected = recording.workingBytes, bytes != expected else { return }
      report.add("working_copy_damaged", path, "The working copy has \(bytes) bytes; the catalog says \(expected).")
    }
  }

  /// Notes files in a recording's folder that no row names.
  private func noteStrangeFiles(
    of recording: Recording, beside conversions: [String], _ report: inout Report
  ) throws(StorageError) {
    let named = [recording.audioFile, recording.workingFile, recording.waveformFile].compactMap { $0 } + conversions
    // A sound map is saved next to the file that it describes.
    let expected = Set(named + named.map { $0 + ".map" } + [RecordingDescription.fileName, MediaStore.marker])
    for name in try names(in: inner(recording.id)).sorted() where !expected.contains(name) {
      report.note("strange_file", inner(recording.id, name), "No row of the catalog names this file.")
    }
  }

  private func isDescribed(_ recording: Recording) -> Bool {
    recording.audioFile == nil || !FileSystem.isFolder(store.folder(of: recording.id))
      || store.description(of: recording.id) == RecordingDescription(recording)
  }

  /// Reports recordings whose description keeps differing from their row. A service updates the description shortly
  /// after the row, so recordings whose row changes are ignored.
  private func checkDescriptions(
    _ recordings: [Recording], _ catalog: Catalog, isLive: Bool, _ report: inout Report
  ) throws(StorageError) {
    var outdated = recordings
    for _ in 0..<10 where !outdated.isEmpty {
      var still: [Recording] = []
      for recording in outdated where try catalog.recording(recording.id) == recording && !isDescribed(recording) {
        still.append(recording)
      }
      outdated = still
      if !outdated.isEmpty, isLive { usleep(100_000) }
    }
    for recording in outdated {
      report.add(
        "description_outdated", inner(recording.id, RecordingDescription.fileName),
        "The folder's description is missing, damaged or not what the catalog says.")
    }
  }

  private func checkAudio(_ key: ObjectKey, of recording: Recording, _ report: inout Report) throws(StorageError) {
    let path = "\(key)"
    report.files += 1
    do {
      let length = try FileSystem.length(of: store.path(of: key))
      report.bytes += length
      guard length == recording.bytes else {
        let expected = recording.bytes.map { "\($0)" } ?? "an unknown number of"
        return report.add("audio_damaged", path, "The audio has \(length) bytes; the catalog says \(expected).")
      }
      guard readsAudio, let expected = recording.sha256 else { return }
      let file = try FileDescriptor(path: store.path(of: key), flags: O_RDONLY)
      if try MediaStore.measure(file).sha256 != expected {
        report.add("audio_damaged", path, "The audio's SHA-256 is not what the catalog says.")
      }
    } catch .io(_, _, let number) where number == ENOENT || number == ENOTDIR {
      report.add("audio_missing", path, "The audio is missing.")
    } catch .io(let operation, _, let number) {
      report.add("audio_damaged", path, "The audio can't be read: \(operation) failed (errno \(number)).")
    }
  }

  // MARK: Files

  private func checkFolders(_ catalog: Catalog, _ report: inout Report) throws(StorageError) {
    for name in try names(in: "recordings") {
      guard let id = RecordingID(name) else {
        report.note("strange_file", "recordings/" + name, "The service did not make this.")
        continue
      }
      let when = store.isShared ? "A node" : "The next start"
      // Read the mark first: it is removed only after the row exists.
      let isUnfinished = try store.isUnfinished(id)
      switch (try catalog.claim(on: id), isUnfinished) {
      case (.owned, false): break
      case (.owned, true): report.note("mark_left", inner(id, MediaStore.marker), "\(when) removes the mark.")
      case (.removed, _), (.finished, _), (.unknown, true):
        report.note("half_finished", inner(id), "\(when) clears away what is left of an upload or a deletion.")
      case (.unknown, false):
        guard FileSystem.isFolder(store.folder(of: id)) else { continue }
        report.add("row_missing", inner(id), "The catalog has no row for this folder.")
      }
    }
  }

  private func checkUploads(_ catalog: Catalog, _ report: inout Report) throws(StorageError) {
    for upload in try catalog.unfinishedUploads() {
      let length = try store.lengthOfPart(of: upload.id) ?? -1
      guard length < upload.offset, try catalog.upload(upload.id) == upload else { continue }
      report.add(
        "upload_damaged", "uploads/\(upload.id).part", "The upload was acknowledged up to byte \(upload.offset).")
    }
    var sweep = SweepReport()
    for id in store.parts(&sweep) {
      guard try catalog.claim(on: id) == .unknown, try !store.isSpare(id) else { continue }
      report.add("row_missing", "uploads/\(id).part", "The catalog has no row for this upload.")
    }
  }

  /// Compares unfinished uploads with the files of all their writers.
  private func checkSegments(_ catalog: Catalog, _ report: inout Report) throws(StorageError) {
    for upload in try catalog.unfinishedUploads() {
      let segments = try catalog.segments(of: upload.id)
      guard try !store.hasBytes(of: segments, upTo: upload.offset), try catalog.upload(upload.id) == upload else {
        continue
      }
      report.add(
        "upload_damaged", "uploads/\(upload.id).part", "The upload was acknowledged up to byte \(upload.offset).")
    }
  }

  private func noteLeftovers(_ folders: [String], _ report: inout Report) throws(StorageError) {
    for folder in folders {
      let count = try names(in: folder).count
      if count > 0 {
        report.note("half_finished", folder, "\(count) files or folders are in work, or were left by a crash.")
      }
    }
    let orphans = store.orphanCount()
    if orphans > 0 {
      report.note("orphaned_files", "orphaned", "\(orphans) folders or uploads are kept aside; they may be recordings.")
    }
  }

  private func inner(_ id: RecordingID, _ name: String? = nil) -> String {
    "recordings/" + id.text + (name.map { "/" + $0 } ?? "")
  }
}

extension DataCheck.Report {
  fileprivate mutating func add(_ code: String, _ path: String, _ detail: String) {
    problems.append(DataCheck.Finding(code: code, path: path, detail: detail))
  }

  fileprivate mutating func add(_ other: Self) {
    recordings += other.recordings
    files += other.files
    bytes += other.bytes
    problems += other.problems
    notes += other.notes
  }

  fileprivate mutating func note(_ code: String, _ path: String, _ detail: String) {
    notes.append(DataCheck.Finding(code: code, path: path, detail: detail))
  }
}
