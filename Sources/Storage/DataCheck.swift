import Glibc

// What `stillwave check` holds against each other: the catalog's rows, the folders' descriptions, the files and their
// hashes. It changes nothing; DataRepair puts right what can be.

/// Looks through a data directory for what is not as it should be.
public struct DataCheck: Sendable {
  /// Something that is not as it should be.
  public struct Finding: Sendable, Equatable, Codable {
    /// Stable, snake_case: "audio_missing".
    public var code: String
    /// The file or folder, by its path within the data directory.
    public var path: String
    /// What it means.
    public var detail: String
  }

  /// What was looked at, and what was found.
  public struct Report: Sendable, Equatable, Codable {
    /// How many rows of recordings could be read.
    public var recordings = 0
    /// How many files were looked at.
    public var files = 0
    /// How long the audio files are together.
    public var bytes: Int64 = 0
    /// What a person or `--repair` has to do something about.
    public var problems: [Finding] = []
    /// What the next start tidies up by itself, or a person may want to look at.
    public var notes: [Finding] = []

    /// Nothing yet.
    public init() {}

    /// Whether all is well.
    public var isSound: Bool { problems.isEmpty }
  }

  let store: MediaStore
  private let readsAudio: Bool
  private let pyramidFault: @Sendable (String) -> String?

  /// - Parameters:
  ///   - readsAudio: Whether every audio file is read to compare its SHA-256, or its length alone is compared.
  ///   - pyramidFault: What is wrong with the waveform file at a path, in words; nil where nothing is.
  public init(
    _ store: MediaStore, readsAudio: Bool = true, pyramidFault: @escaping @Sendable (String) -> String?
  ) {
    (self.store, self.readsAudio, self.pyramidFault) = (store, readsAudio, pyramidFault)
  }

  /// Looks at everything. After each recording, `progress` is given the share of them that is done, 0 … 1, and returns
  /// whether to go on. Throws `.cancelled`, or where a folder can't be read at all. Blocks.
  public func run(progress: (Double) -> Bool = { _ in true }) throws(StorageError) -> Report {
    var report = Report()
    guard let catalog = try openCatalog(&report) else { return report }
    try checkRows(catalog, &report, progress)
    try checkFolders(catalog, &report)
    try checkUploads(catalog, &report)
    try noteLeftovers(&report)
    try catalog.close()
    return report
  }

  private func openCatalog(_ report: inout Report) throws(StorageError) -> Catalog? {
    do {
      guard try Catalog.inspect(path: store.catalogPath, withinSeconds: 3600) != .new || !store.hasRecordings() else {
        throw StorageError.lostCatalog(path: store.catalogPath)
      }
      return try Catalog(path: store.catalogPath)
    } catch StorageError.lostCatalog {
      report.add("catalog_lost", "catalog.sqlite", "There are recordings, but the catalog is missing or empty.")
    } catch StorageError.damagedCatalog(_, let detail) {
      report.add("catalog_damaged", "catalog.sqlite", "The catalog is damaged: \(detail).")
    } catch {
      throw StorageError(error)
    }
    return nil
  }

  // MARK: Rows

  private func checkRows(
    _ catalog: Catalog, _ report: inout Report, _ progress: (Double) -> Bool
  ) throws(StorageError) {
    for id in try catalog.unreadableRecordings() {
      report.add("row_unreadable", "catalog.sqlite", "The row of recording “\(id)” can't be read.")
    }
    let recordings = try catalog.recordings(limit: .max)
    for (index, recording) in recordings.enumerated() {
      try check(recording, &report)
      guard progress(Double(index + 1) / Double(recordings.count)) else { throw .cancelled }
    }
    for recording in try catalog.strandedRecordings() {
      report.add("job_missing", inner(recording.id), "The recording waits for a job that is not there.")
    }
  }

  private func check(_ recording: Recording, _ report: inout Report) throws(StorageError) {
    report.recordings += 1
    guard let audio = recording.audioFile else { return }
    try checkAudio(audio, of: recording, &report)
    if let name = recording.workingFile, !store.hasFile(name, of: recording.id) {
      report.add("working_copy_missing", inner(recording.id, name), "The working copy of the audio is missing.")
    }
    if recording.waveformState == .ready, let name = recording.waveformFile {
      report.files += 1
      if !store.hasFile(name, of: recording.id) {
        report.add("waveform_missing", inner(recording.id, name), "The waveform's file is missing.")
      } else if let fault = pyramidFault(store.folder(of: recording.id) + "/" + name) {
        report.add("waveform_damaged", inner(recording.id, name), "The waveform's file is damaged: \(fault).")
      }
    }
    guard FileSystem.isFolder(store.folder(of: recording.id)) else { return }
    if store.description(of: recording.id) != RecordingDescription(recording) {
      report.add(
        "description_outdated", inner(recording.id, RecordingDescription.fileName),
        "The folder's description is missing, damaged or not what the catalog says.")
    }
  }

  private func checkAudio(_ name: String, of recording: Recording, _ report: inout Report) throws(StorageError) {
    let path = inner(recording.id, name)
    report.files += 1
    do {
      let length = try FileSystem.length(of: store.folder(of: recording.id) + "/" + name)
      report.bytes += length
      guard length == recording.bytes else {
        let expected = recording.bytes.map { "\($0)" } ?? "an unknown number of"
        return report.add("audio_damaged", path, "The audio has \(length) bytes; the catalog says \(expected).")
      }
      guard readsAudio, let expected = recording.sha256 else { return }
      let file = try FileDescriptor(path: store.folder(of: recording.id) + "/" + name, flags: O_RDONLY)
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
    for name in try FileSystem.names(in: store.recordings) {
      guard let id = RecordingID(name) else {
        report.note("strange_file", "recordings/" + name, "The service did not make this.")
        continue
      }
      switch (try catalog.claim(on: id), try store.isUnfinished(id)) {
      case (.owned, false): break
      case (.owned, true): report.note("mark_left", inner(id, MediaStore.marker), "The next start removes the mark.")
      case (.removed, _), (.finished, _), (.unknown, true):
        report.note("half_finished", inner(id), "The next start removes what is left of an upload or a deletion.")
      case (.unknown, false):
        report.add("row_missing", inner(id), "The catalog has no row for this folder.")
      }
    }
  }

  private func checkUploads(_ catalog: Catalog, _ report: inout Report) throws(StorageError) {
    for upload in try catalog.unfinishedUploads() {
      let length = try store.lengthOfPart(of: upload.id) ?? -1
      guard length < upload.offset else { continue }
      report.add(
        "upload_damaged", "uploads/\(upload.id).part", "The upload was acknowledged up to byte \(upload.offset).")
    }
    var sweep = SweepReport()
    for id in store.parts(&sweep) {
      guard try catalog.claim(on: id) == .unknown, try !store.isSpare(id) else { continue }
      report.add("row_missing", "uploads/\(id).part", "The catalog has no row for this upload.")
    }
  }

  private func noteLeftovers(_ report: inout Report) throws(StorageError) {
    for folder in ["incoming", "jobs", "removed"] {
      let count = try FileSystem.names(in: store.directory + "/" + folder).count
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

  fileprivate mutating func note(_ code: String, _ path: String, _ detail: String) {
    notes.append(DataCheck.Finding(code: code, path: path, detail: detail))
  }
}
