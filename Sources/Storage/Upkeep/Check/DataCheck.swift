import Glibc

// What `stillwave check` compares: the catalog's rows, the descriptions, the files, and their hashes. It changes
// nothing; DataRepair fixes what it can in a data folder.
//
// While services are running, a row and its files are read one after the other. So what seems wrong is looked at again,
// and reported only if the row is still the same: a file stays as long as a row names it.

/// Checks media and their catalog for inconsistencies and damage.
package struct DataCheck: Sendable {
  /// The extent of the check and its findings.
  package struct Report: Sendable, Equatable {
    /// Number of readable rows of recordings.
    package var recordings = 0
    /// Number of files checked.
    package var files = 0
    /// Total length of the audio files, in bytes.
    package var bytes: Int64 = 0
    /// Problems that a person or `--repair` must fix.
    package fileprivate(set) var foundProblems = Findings()
    /// Leftovers that the next start cleans up, or that a person may want to inspect.
    package fileprivate(set) var foundNotes = Findings()

    /// Creates an empty report.
    package init() {}

    /// Whether there are no problems.
    package var isSound: Bool { foundProblems.isEmpty }

    /// The first problems of each code.
    package var problems: [Finding] { foundProblems.listed }

    /// The first notes of each code.
    package var notes: [Finding] { foundNotes.listed }
  }

  private let readsAudio: Bool
  private let pyramidFault: @Sendable (String) -> String?
  private let batch: Int

  /// Creates a check.
  /// - Parameters:
  ///   - readsAudio: whether to read every audio file and compare its SHA-256, or only compare its length.
  ///   - batch: how many recordings are in memory at once.
  ///   - pyramidFault: returns a description of what is wrong with the waveform file at a path, or nil.
  package init(readsAudio: Bool = true, batch: Int = 500, pyramidFault: @escaping @Sendable (String) -> String?) {
    (self.readsAudio, self.batch, self.pyramidFault) = (readsAudio, batch, pyramidFault)
  }

  /// Checks everything. After each recording, calls `progress` with the fraction done, 0 … 1; it returns whether to
  /// continue. Throws `.cancelled`, or an error if the catalog or the media can't be read at all. Blocks.
  package func run(
    _ media: CheckedStore, of catalog: Catalog, progress: (Double) -> Bool = { _ in true }
  ) throws(StorageError) -> Report {
    var report = Report()
    try checkRows(media, catalog, &report, progress)
    for upload in try catalog.unfinishedUploads() { try check(upload, media, catalog, &report) }
    try media.audit(catalog, &report) { progress(1) }
    return report
  }

  // MARK: Rows

  private func checkRows(
    _ media: CheckedStore, _ catalog: Catalog, _ report: inout Report, _ progress: (Double) -> Bool
  ) throws(StorageError) {
    try catalog.eachUnreadableRecording { id in
      report.add("row_unreadable", media.catalogName, "The row of recording “\(id)” can't be read.")
    }
    for (table, count) in try catalog.unreadableCounts() {
      report.note("row_unreadable", media.catalogName, "\(count) rows of the table “\(table)” can't be read.")
    }
    let inventory = Inventory(of: catalog, batch: batch)
    var undescribed: [Recording] = []
    try inventory.each(progress: progress) { (entry) throws(StorageError) in
      if let current = try check(entry, media, inventory, &report), try !media.isDescribed(current) {
        undescribed.append(current)
      }
      if undescribed.count >= batch { try checkDescriptions(&undescribed, media, catalog, &report) }
    }
    try checkDescriptions(&undescribed, media, catalog, &report)
    var place: String?
    repeat {
      let (stranded, next) = try catalog.strandedRecordings(limit: batch, after: place)
      for recording in stranded {
        report.add("job_missing", "recordings/\(recording.id)", "The recording waits for a job that is not there.")
      }
      place = next
    } while place != nil
  }

  /// Checks a recording, and again if something seems wrong, until its rows stay the same. Returns it as it is then;
  /// nil if it was deleted. If its row has become unreadable, the next check reports it.
  private func check(
    _ entry: InventoryEntry, _ media: CheckedStore, _ inventory: Inventory, _ report: inout Report
  ) throws(StorageError) -> Recording? {
    var (entry, isSecond) = (entry, false)
    while true {
      var found = Report()
      try check(entry, media, &found)
      if !found.foundProblems.isEmpty || !found.foundNotes.isEmpty {
        guard let current = try inventory.entry(entry.recording.id) else { return nil }
        let isSame = current == entry
        if !isSame || !isSecond {
          (entry, isSecond) = (current, isSame)
          continue
        }
      }
      report.add(found)
      return entry.recording
    }
  }

  private func check(
    _ entry: InventoryEntry, _ media: CheckedStore, _ report: inout Report
  ) throws(StorageError) {
    report.recordings += 1
    for item in entry.items {
      let (bytes, fault) = try media.look(at: item, readsAll: readsAudio, pyramidFault: pyramidFault)
      if item.kind == .audio { report.bytes += bytes }
      if [.audio, .waveform].contains(item.kind) { report.files += 1 }
      guard let fault else { continue }
      let finding = Finding(fault, of: item)
      // One that is damaged would be served.
      if item.isMadeAgain, fault == .missing {
        report.foundNotes.add(finding)
      } else {
        report.foundProblems.add(finding)
      }
    }
  }

  /// Reports recordings whose description keeps differing from their row. A service updates the description shortly
  /// after the row, so recordings whose row changes are ignored.
  private func checkDescriptions(
    _ recordings: inout [Recording], _ media: CheckedStore, _ catalog: Catalog, _ report: inout Report
  ) throws(StorageError) {
    var outdated = recordings
    recordings = []
    for _ in 0..<10 where !outdated.isEmpty {
      var still: [Recording] = []
      for recording in outdated where try catalog.recording(recording.id) == recording {
        if try !media.isDescribed(recording) { still.append(recording) }
      }
      outdated = still
      if !outdated.isEmpty, media.isLive { catalog.clock.pause(0.1) }
    }
    for recording in outdated {
      let path = "\(recording.descriptionKey)"
      if try catalog.isDescriptionPromised(of: recording) {
        report.note("description_outdated", path, "A node will write the recording's description within an hour or so.")
      } else {
        report.add(
          "description_outdated", path,
          "The recording's description is missing, damaged or not what the catalog says.")
      }
    }
  }

  // MARK: Uploads

  private func check(
    _ upload: Upload, _ media: CheckedStore, _ catalog: Catalog, _ report: inout Report
  ) throws(StorageError) {
    for _ in 0..<2 {
      if try media.hasBytes(of: upload, catalog) { return }
      guard try catalog.upload(upload.id) == upload else { return }
    }
    report.add(
      "upload_damaged", media.store.path(of: upload.id), "The upload was acknowledged up to byte \(upload.offset).")
  }
}

extension DataCheck.Report {
  /// Adds a problem.
  package mutating func add(_ code: String, _ path: String, _ detail: String) {
    foundProblems.add(DataCheck.Finding(code: code, path: path, detail: detail))
  }

  /// Adds a note.
  package mutating func note(_ code: String, _ path: String, _ detail: String) {
    foundNotes.add(DataCheck.Finding(code: code, path: path, detail: detail))
  }

  /// Adds the findings of another part of the check.
  mutating func add(_ other: Self) {
    recordings += other.recordings
    files += other.files
    bytes += other.bytes
    foundProblems.add(other.foundProblems)
    foundNotes.add(other.foundNotes)
  }
}
