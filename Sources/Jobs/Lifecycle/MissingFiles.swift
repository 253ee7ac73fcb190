import Storage
import Terms
import Workers

/// Compares the rows with the files: the disk may have lost or truncated a file that the catalog still names, or a file
/// may have been restored from a backup.
///
/// A recording whose original file is missing, or has a different size than its row says, gets a warning, and requests
/// for its audio are answered with 410. The waveform and the working copy are made from that file and get rebuilt
/// (`WaveformRepairs`).
package struct MissingFiles: Sendable {
  /// The catalog with the rows.
  package let catalog: Catalog
  /// The store with the files.
  package let objects: any ObjectStore

  /// Creates a comparison of a catalog with the files it names.
  package init(catalog: Catalog, objects: any ObjectStore) { (self.catalog, self.objects) = (catalog, objects) }

  /// The code of the warning about a missing file and of the answer to requests for it.
  package static let code = "audio_missing"
  /// The code of the warning and the answer if the file's size has changed.
  package static let damagedCode = "audio_damaged"

  /// What is wrong with a recording's original file.
  package enum Fault: Sendable, Equatable {
    /// The file doesn't exist.
    case missing
    /// Its size has changed.
    case damaged(bytes: Int64, expected: Int64)
  }

  /// Checks a recording's original file and updates the recording's warnings. Returns the fault, or nil. Blocks.
  @discardableResult
  package func settle(_ recording: Recording) throws(StorageError) -> Fault? {
    let fault = fault(of: recording)
    let codes = recording.warnings.map(\.code).filter { [Self.code, Self.damagedCode].contains($0) }
    if codes != (fault.map { [$0.code] } ?? []) { try catalog.update(recording.id) { $0.note(fault) } }
    return fault
  }

  private func fault(of recording: Recording) -> Fault? {
    guard let key = recording.audioKey else { return nil }
    switch objects.look(at: key) {
    case .absent: return .missing
    case .present(let bytes):
      guard let expected = recording.bytes, bytes != expected else { return nil }
      return .damaged(bytes: bytes, expected: expected)
    case .unknown: return nil
    }
  }

  /// Whether a recording's working copy is missing or has a different size.
  package func hasLostWorkingCopy(_ recording: Recording) -> Bool {
    guard let key = recording.workingKey else { return false }
    switch objects.look(at: key) {
    case .absent: return true
    case .present(let bytes): return recording.workingBytes.map { $0 != bytes } ?? false
    case .unknown: return false
    }
  }
}

extension MissingFiles.Fault {
  /// The stable code of the warning, the answer, and the failed job.
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

  var warning: Warning { Warning(code: code, detail: detail) }

  /// The failure of a job that needs the file.
  var failure: WorkerFailure { WorkerFailure(code: code, detail: detail, retry: false) }
}

extension Recording {
  fileprivate mutating func note(_ fault: MissingFiles.Fault?) {
    warnings.removeAll { [MissingFiles.code, MissingFiles.damagedCode].contains($0.code) }
    if let fault { warnings.append(fault.warning) }
  }
}
