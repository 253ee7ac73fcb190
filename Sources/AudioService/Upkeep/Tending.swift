import Jobs
import Storage

/// Looks after the files of the recordings in this service's own folder, without reading their sound: descriptions,
/// permissions, files that are missing or that nothing needs.
///
/// The scrub does this for each recording that it compares, so that no start has to look into every folder. A start
/// only looks after those that an earlier run may have left in another state.
struct Tending: Sendable {
  private let catalog: Catalog
  private let reconciliation: Reconciliation
  private let files: MissingFiles
  private let log: ServiceLog
  private let giveUp: @Sendable (RecordingID, WaveformLoss) throws(StorageError) -> Void

  /// `giveUp` discards a waveform or a working copy that has to be made again.
  init(
    _ catalog: Catalog, _ store: MediaStore, _ files: MissingFiles, _ log: ServiceLog,
    giveUp: @escaping @Sendable (RecordingID, WaveformLoss) throws(StorageError) -> Void
  ) {
    (self.catalog, self.files, self.log, self.giveUp) = (catalog, files, log, giveUp)
    reconciliation = Reconciliation(catalog: catalog, store: store)
  }

  /// Looks after one recording. Blocks, for some dozen system calls.
  func tend(_ recording: Recording) throws(StorageError) {
    let isVerified = catalog.startReport.withLock { !$0.isUnverified }
    // A file may be lent to a running ffmpeg as well as to one that a killed run has left.
    let report = try reconciliation.tend(recording.id, verified: isVerified, isLent: TemporaryAccess.settle)
    let context = ["recording": recording.id.text]
    if report.corrected > 0 { log.failure("a damaged row was written again from the folder", context) }
    if report.removed > 0 { log.notice("removed conversions that the catalog doesn't know", context) }
    let missing = try files.sweep([recording], giveUp: giveUp)
    if missing.sounds + missing.waveforms > 0 { log.failure("files are missing", context) }
  }

  /// Restores rows that can't be read.
  func heal(_ unreadable: [String]) throws(StorageError) {
    var report = SweepReport()
    try reconciliation.heal(unreadable, &report)
    let isKnown = catalog.startReport.withLock { known in
      defer { known.unreadable = report.unreadable }
      return known.unreadable == report.unreadable
    }
    guard report.healed > 0 || !isKnown else { return }
    log.failure(
      "the catalog has rows that can't be read",
      ["written again": "\(report.healed)", "unreadable": "\(report.unreadable)"])
  }

  /// Looks after what unfinished work may have left open to others, and after recordings whose files were missing.
  func start() {
    do {
      try reconciliation.tendUploads(isLent: TemporaryAccess.settle)
      let begun = Set(try catalog.unfinishedJobs().map(\.recording))
      for id in begun { if let recording = try catalog.recording(id) { try tend(recording) } }
      for code in [MissingFiles.code, MissingFiles.damagedCode] {
        _ = try files.sweep(catalog.recordings(withWarning: code), giveUp: giveUp)
      }
    } catch {
      log.failure("the recordings' folders could not be searched", ["error": logText(error)])
    }
  }
}
