// Holding the files against the catalog, at a start. The files may be somebody's only copy; the catalog may be an older
// one (a backup that was put back, a log that was cut), and then knows nothing of what came after it. So files are removed
// only where something written before them says that they are half-finished:
//
//   what is found                               what becomes of it
//   in incoming/, removed/ or jobs/             removed: they are half-finished by their place
//   a folder or part with a row                 stays
//   one whose id is among the removals          removed: its deletion was in progress
//   a folder marked as unfinished               removed: its upload was never acknowledged
//   a folder with a description                 gets its row back
//   an empty folder; a part that is empty, or   removed: no bytes are lost
//   that has another name as well
//   any other folder or part                    kept, in orphaned/
//
// A row that can't be read is written again from its folder's description. A recording that waits for a job which is lost
// gets another.

/// Puts right, at a start, what an earlier run has left half-finished and what a catalog has lost.
public struct Reconciliation: Sendable {
  let catalog: Catalog
  let store: MediaStore

  /// For the data directory of `store`, which this process must have claimed, and its catalog.
  public init(catalog: Catalog, store: MediaStore) {
    (self.catalog, self.store) = (catalog, store)
  }

  /// Goes through the data directory once. With a catalog that is not `verified`, nothing is removed on its word. Where the
  /// catalog fails to answer, the files it was asked about stay. Never throws, as a service can serve beside leftovers.
  public func run(verified: Bool) -> SweepReport {
    var report = SweepReport()
    store.removeHalfFinished(&report)
    guard verified else { return report }
    // Before the uploads: until a marked folder is gone, its audio is a second name of the upload's part.
    for id in store.recordingFolders(&report) {
      attempt(&report) { report throws(StorageError) in try settle(id, &report) }
    }
    for id in store.parts(&report) {
      attempt(&report) { report throws(StorageError) in try settle(id, &report) }
    }
    attempt(&report) { report throws(StorageError) in try heal(&report) }
    if report.failures.isEmpty { attempt(&report) { _ throws(StorageError) in try forgetRemovals() } }
    return report
  }

  private func attempt(_ report: inout SweepReport, _ step: (inout SweepReport) throws(StorageError) -> Void) {
    do { try step(&report) } catch { report.failures.append(error) }
  }

  private func settle(_ id: RecordingID, _ report: inout SweepReport) throws(StorageError) {
    switch try catalog.claim(on: id) {
    case .owned: if store.isUnfinished(id) { catalog.describe(id) }
    case .removed:
      try store.remove(id)
      report.recordings += 1
    case .unknown where store.isUnfinished(id):
      try store.remove(id)
      report.recordings += 1
    case .unknown:
      if try adopt(id) {
        report.adopted += 1
      } else {
        store.removeFolderIfUnused(of: id)
        guard FileSystem.isFolder(store.folder(of: id)) else { return report.recordings += 1 }
        try store.setAside(id)
        report.orphans += 1
      }
    }
  }

  private func settle(_ id: UploadID, _ report: inout SweepReport) throws(StorageError) {
    switch try catalog.claim(on: id) {
    case .owned: return
    case .removed: store.removePart(of: id)
    case .unknown where try store.isSpare(id): store.removePart(of: id)
    case .unknown:
      try store.setAside(id)
      report.orphans += 1
      return
    }
    report.uploads += 1
  }

  /// Inserts the row that a recording's folder describes; false where it describes none, or its audio isn't there.
  func adopt(_ id: RecordingID) throws(StorageError) -> Bool {
    guard var recording = store.description(of: id)?.recording, let audio = recording.audioFile,
      store.hasFile(audio, of: id)
    else { return false }
    var jobs: [Job] = []
    let files = [recording.waveformFile, recording.media == nil ? nil : recording.workingFile].compactMap { $0 }
    if recording.waveformState != .ready || !files.allSatisfy({ store.hasFile($0, of: id) }) {
      // The job that was to build it is lost with its row.
      let job = Job(kind: .waveform, recording: id)
      (recording.waveformState, recording.waveformJob, recording.waveformFile) = (.queued, job.id, nil)
      jobs = [job]
    }
    try catalog.insert(recording, jobs: jobs)
    return true
  }

  private func heal(_ report: inout SweepReport) throws(StorageError) {
    for text in try catalog.unreadableRecordings() {
      guard let id = RecordingID(text) else {
        try catalog.deleteUnreadable(text)
        continue
      }
      guard let recording = store.description(of: id)?.recording else {
        report.unreadable += 1
        continue
      }
      try catalog.replaceUnreadable(with: recording)
      report.healed += 1
    }
    for recording in try catalog.strandedRecordings() { try catalog.resume(stranded: recording.id) }
  }

  /// Describes every recording that is not described yet, as none is in a data directory of an earlier version; believes
  /// the description of one whose row is damaged; and lets nobody but the owner into the folders. Beside the service, as it
  /// reads every folder. How many rows were put right.
  public func tendFolders() throws(StorageError) -> Int {
    var corrected = 0
    for name in try FileSystem.names(in: store.recordings) {
      guard let id = RecordingID(name) else { continue }
      let folder = store.folder(of: id)
      FileSystem.makePrivate(folder)
      // Deleted meanwhile.
      guard let files = try? FileSystem.names(in: folder) else { continue }
      for file in files { FileSystem.makePrivate(folder + "/" + file) }
      if !files.contains(RecordingDescription.fileName) {
        catalog.describe(id)
      } else if try correctRow(of: id, holds: { store.hasAudio(of: $0) }) {
        corrected += 1
      }
    }
    return corrected
  }

  /// Puts the description of a recording in the place of its row where the audio is what the description says, and not what
  /// the row says: then the row was damaged. `holds` compares a recording with its audio.
  func correctRow(of id: RecordingID, holds: (Recording) -> Bool) throws(StorageError) -> Bool {
    guard let recording = try catalog.recording(id), recording.audioFile != nil,
      let description = store.description(of: id), description != RecordingDescription(recording),
      !holds(recording), holds(description.recording)
    else { return false }
    try catalog.replaceUnreadable(with: description.recording)
    return true
  }

  /// Nothing is left of them: what was renamed away is durable before the last trace of it goes.
  private func forgetRemovals() throws(StorageError) {
    let gone = try catalog.removals()
    guard !gone.isEmpty else { return }
    try FileSystem.syncFolder(store.recordings)
    try FileSystem.syncFolder(store.uploads)
    try catalog.forgetRemovals(gone)
  }
}
