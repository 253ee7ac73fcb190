import Processing
import Storage

/// Compares the rows with the files: the disk may have lost or truncated a file that the catalog still names, or a
/// backup may have brought one back.
///
/// A recording whose own file is missing, or not as long as its row says, gets a warning, and requests for its audio
/// are answered with 410. The waveform and the working copy are made from that file and get rebuilt
/// (`WaveformRepairs`).
struct MissingFiles: Sendable {
  let catalog: Catalog
  let store: MediaStore

  /// The code of the warning about a missing file and of the answer to requests for it.
  static let code = "audio_missing"
  /// The same for a file whose size has changed.
  static let damagedCode = "audio_damaged"

  /// What happened to a recording's own file.
  enum Fault: Sendable, Equatable {
    case missing
    case damaged(bytes: Int64, expected: Int64)
  }

  /// The outcome of a sweep over all recordings.
  struct Report: Equatable {
    /// Files that are missing or have a different size.
    var sounds = 0
    /// Waveforms and working copies that have to be rebuilt.
    var waveforms = 0
  }

  /// Checks the files of every recording and records what has changed. Calls `giveUp` for anything that has to be
  /// rebuilt. Blocks, for some microseconds per file.
  func sweep(giveUp: (RecordingID, WaveformLoss) throws -> Void) throws -> Report {
    var report = Report()
    var last: RecordingID?
    while true {
      let page = try catalog.recordings(limit: 500, before: last)
      for recording in page {
        if try settle(recording) != nil { report.sounds += 1 }
        guard let loss = loss(of: recording) else { continue }
        report.waveforms += 1
        try giveUp(recording.id, loss)
      }
      guard let oldest = page.last else { return report }
      last = oldest.id
    }
  }

  /// Returns what happened to a recording's own file, and updates its warnings accordingly. Blocks.
  @discardableResult
  func settle(_ recording: Recording) throws(StorageError) -> Fault? {
    let fault = fault(of: recording)
    let codes = recording.warnings.map(\.code).filter { [Self.code, Self.damagedCode].contains($0) }
    if codes != (fault.map { [$0.code] } ?? []) { try catalog.update(recording.id) { $0.note(fault) } }
    return fault
  }

  private func fault(of recording: Recording) -> Fault? {
    guard let name = recording.audioFile else { return nil }
    switch store.look(at: name, of: recording.id) {
    case .absent: return .missing
    case .present(let bytes):
      guard let expected = recording.bytes, bytes != expected else { return nil }
      return .damaged(bytes: bytes, expected: expected)
    case .unknown: return nil
    }
  }

  /// Whether a recording's working copy is missing or has a different size.
  func hasLostWorkingCopy(_ recording: Recording) -> Bool {
    guard let name = recording.workingFile else { return false }
    switch store.look(at: name, of: recording.id) {
    case .absent: return true
    case .present(let bytes): return recording.workingBytes.map { $0 != bytes } ?? false
    case .unknown: return false
    }
  }

  private func loss(of recording: Recording) -> WaveformLoss? {
    if let name = recording.workingFile, hasLostWorkingCopy(recording) { return .workingCopy(file: name) }
    if recording.waveformState == .ready, let name = recording.waveformFile,
      store.look(at: name, of: recording.id) == .absent
    {
      return .waveform(file: name, nil)
    }
    return nil
  }
}

extension MissingFiles.Fault {
  /// Stable code of the warning, the answer, and the failed job.
  var code: String {
    switch self {
    case .missing: MissingFiles.code
    case .damaged: MissingFiles.damagedCode
    }
  }

  private var detail: String {
    switch self {
    case .missing: "The recording's file is gone from the service's disk."
    case .damaged(let bytes, let expected):
      "The recording's file has \(bytes) bytes on the service's disk; \(expected) were uploaded."
    }
  }

  var warning: RecordingWarning { RecordingWarning(code: code, detail: detail) }

  /// The failure of a job that needed the file.
  var failure: WorkerFailure { WorkerFailure(code: code, detail: detail, retry: false) }

  func error(_ id: RecordingID) -> ServiceError {
    switch self {
    case .missing: .audioMissing(id)
    case .damaged: .audioDamaged(id)
    }
  }
}

extension Recording {
  fileprivate mutating func note(_ fault: MissingFiles.Fault?) {
    warnings.removeAll { [MissingFiles.code, MissingFiles.damagedCode].contains($0.code) }
    if let fault { warnings.append(fault.warning) }
  }
}
