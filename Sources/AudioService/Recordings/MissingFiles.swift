import Processing
import Storage

/// Holds the rows against the files: a disk may have lost or cut what the catalog still names, and a backup may have
/// brought it back.
///
/// A recording whose own file is gone, or not as long as its row says, gets a warning, and requests for its sound are
/// answered 410. What is made of that file, the waveform and the working copy, is built again (`WaveformRepairs`).
struct MissingFiles: Sendable {
  let catalog: Catalog
  let store: MediaStore

  /// The warning of a lost file, and the code of the answer to requests for it.
  static let code = "audio_missing"
  /// The same for a file that is not as long as it was.
  static let damagedCode = "audio_damaged"

  /// What the disk has done to a recording's own file.
  enum Fault: Sendable, Equatable {
    case missing
    case damaged(bytes: Int64, expected: Int64)
  }

  /// What was found in all recordings.
  struct Report: Equatable {
    /// Files that are gone or of another length.
    var sounds = 0
    /// Waveforms and working copies that have to be built again.
    var waveforms = 0
  }

  /// Looks for the files of every recording, and writes down what has changed; `giveUp` is called for what has to be
  /// built again. Blocks, for some microseconds a file.
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

  /// What has become of a recording's own file; its warnings say so from now on, or no longer. Blocks.
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

  /// Whether a recording's working copy is gone or of another length.
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
  /// Stable: of the warning, the answer and the failed job.
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

  /// Of a job that would have read the file.
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
