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
    _ media: some CheckedMedia, of catalog: Catalog, progress: (Double) -> Bool = { _ in true }
  ) throws(StorageError) -> Report {
    var report = Report()
    try checkRows(media, catalog, &report, progress)
    for upload in try catalog.unfinishedUploads() { try check(upload, media, catalog, &report) }
    try media.audit(catalog, &report) { progress(1) }
    return report
  }

  // MARK: Rows

  private func checkRows(
    _ media: some CheckedMedia, _ catalog: Catalog, _ report: inout Report, _ progress: (Double) -> Bool
  ) throws(StorageError) {
    try catalog.eachUnreadableRecording { id in
      report.add("row_unreadable", media.catalogName, "The row of recording “\(id)” can't be read.")
    }
    for (table, count) in try catalog.unreadableCounts() {
      report.note("row_unreadable", media.catalogName, "\(count) rows of the table “\(table)” can't be read.")
    }
    let total = Double(try catalog.recordingCount())
    var (done, place) = (0.0, nil as String?)
    repeat {
      let (recordings, next) = try catalog.recordings(limit: batch, after: place)
      var undescribed: [Recording] = []
      var conversions: [RecordingID: [Conversion]] = [:]
      if let newest = recordings.first?.id, let oldest = recordings.last?.id {
        conversions = try catalog.conversions(from: oldest, through: newest)
      }
      for recording in recordings {
        let rows = Rows(recording: recording, conversions: conversions[recording.id] ?? [])
        let current = try check(rows, media, catalog, &report)
        if let current, try !media.isDescribed(current) { undescribed.append(current) }
        done += 1
        guard progress(min(done / total, 1)) else { throw .cancelled }
      }
      try checkDescriptions(undescribed, media, catalog, &report)
      place = next
    } while place != nil
    repeat {
      let (stranded, next) = try catalog.strandedRecordings(limit: batch, after: place)
      for recording in stranded {
        report.add("job_missing", "recordings/\(recording.id)", "The recording waits for a job that is not there.")
      }
      place = next
    } while place != nil
  }

  /// What rows say about one recording's files.
  private struct Rows: Equatable {
    let recording: Recording
    let conversions: [Conversion]
  }

  /// Returns nil if the recording was deleted. If its row has become unreadable, the next check reports it.
  private func rows(_ id: RecordingID, _ catalog: Catalog) throws(StorageError) -> Rows? {
    guard let recording = try catalog.recording(id) else { return nil }
    return Rows(recording: recording, conversions: try catalog.conversions(of: id))
  }

  /// Checks a recording, and again if something seems wrong, until its rows stay the same. Returns it as it is then;
  /// nil if it was deleted.
  private func check(
    _ rows: Rows, _ media: some CheckedMedia, _ catalog: Catalog, _ report: inout Report
  ) throws(StorageError) -> Recording? {
    var (rows, isSecond) = (rows, false)
    while true {
      var found = Report()
      try check(rows, media, &found)
      if !found.foundProblems.isEmpty || !found.foundNotes.isEmpty {
        guard let current = try self.rows(rows.recording.id, catalog) else { return nil }
        let isSame = current == rows
        if !isSame || !isSecond {
          (rows, isSecond) = (current, isSame)
          continue
        }
      }
      report.add(found)
      return rows.recording
    }
  }

  private func check(_ rows: Rows, _ media: some CheckedMedia, _ report: inout Report) throws(StorageError) {
    let recording = rows.recording
    report.recordings += 1
    guard let audio = recording.audioKey else { return }
    report.files += 1
    switch try media.length(of: audio) {
    case .absent: report.add("audio_missing", "\(audio)", "The audio is missing.")
    case .unreadable(let reason): report.add("audio_damaged", "\(audio)", "The audio can't be read: \(reason).")
    case .present(let bytes):
      report.bytes += bytes
      let fault = try fault(in: audio, bytes, expecting: recording.bytes, recording.sha256, media)
      if let fault { report.add("audio_damaged", "\(audio)", "The audio\(fault)") }
    }
    if let key = recording.workingKey { try checkWorkingCopy(key, of: recording, media, &report) }
    if recording.waveformState == .ready, let key = recording.waveformKey {
      report.files += 1
      try checkWaveform(key, media, &report)
    }
    for conversion in rows.conversions { try check(conversion, media, &report) }
  }

  /// Returns the rest of a sentence about a file whose content isn't what its row says; nil if it is.
  private func fault(
    in key: ObjectKey, _ bytes: Int64, expecting expected: Int64?, _ sha256: String?, _ media: some CheckedMedia
  ) throws(StorageError) -> String? {
    guard bytes == expected else {
      return " has \(bytes) bytes; the catalog says \(expected.map { "\($0)" } ?? "an unknown number of")."
    }
    guard readsAudio, let sha256 else { return nil }
    switch try media.sha256(of: key, bytes: bytes) {
    case .absent: return " is missing."
    case .unreadable(let reason): return " can't be read: \(reason)."
    case .present(let found): return found == sha256 ? nil : "'s SHA-256 is not what the catalog says."
    }
  }

  private func checkWorkingCopy(
    _ key: ObjectKey, of recording: Recording, _ media: some CheckedMedia, _ report: inout Report
  ) throws(StorageError) {
    let path = "\(key)"
    switch try media.length(of: key) {
    case .absent: report.add("working_copy_missing", path, "The working copy of the audio is missing.")
    case .unreadable(let reason):
      report.add("working_copy_damaged", path, "The working copy of the audio can't be read: \(reason).")
    case .present(let bytes):
      let fault = try fault(in: key, bytes, expecting: recording.workingBytes, recording.workingSHA256, media)
      if let fault { report.add("working_copy_damaged", path, "The working copy\(fault)") }
    }
  }

  private func checkWaveform(
    _ key: ObjectKey, _ media: some CheckedMedia, _ report: inout Report
  ) throws(StorageError) {
    switch try media.fault(in: key, pyramidFault) {
    case .absent: report.add("waveform_missing", "\(key)", "The waveform's file is missing.")
    case .unreadable(let fault), .present(let fault?):
      report.add("waveform_damaged", "\(key)", "The waveform's file is damaged: \(fault).")
    case .present(nil): break
    }
  }

  /// A missing conversion is made again when it is asked for; a damaged one would be served.
  private func check(
    _ conversion: Conversion, _ media: some CheckedMedia, _ report: inout Report
  ) throws(StorageError) {
    let (path, what) = ("\(conversion.key)", "The recording's sound as \(conversion.format)")
    switch try media.length(of: conversion.key) {
    case .absent: report.note("conversion_missing", path, "\(what) is missing; it is made again on request.")
    case .unreadable(let reason): report.add("conversion_damaged", path, "\(what) can't be read: \(reason).")
    case .present(let bytes):
      let fault = try fault(in: conversion.key, bytes, expecting: conversion.bytes, conversion.sha256, media)
      if let fault { report.add("conversion_damaged", path, what + fault) }
    }
  }

  /// Reports recordings whose description keeps differing from their row. A service updates the description shortly
  /// after the row, so recordings whose row changes are ignored.
  private func checkDescriptions(
    _ recordings: [Recording], _ media: some CheckedMedia, _ catalog: Catalog, _ report: inout Report
  ) throws(StorageError) {
    var outdated = recordings
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
    _ upload: Upload, _ media: some CheckedMedia, _ catalog: Catalog, _ report: inout Report
  ) throws(StorageError) {
    for _ in 0..<2 {
      if try media.hasBytes(of: upload, catalog) { return }
      guard try catalog.upload(upload.id) == upload else { return }
    }
    report.add("upload_damaged", media.path(of: upload.id), "The upload was acknowledged up to byte \(upload.offset).")
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
