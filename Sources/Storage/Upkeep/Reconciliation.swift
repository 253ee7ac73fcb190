// Holding the files against the catalog, at a start. The files may be somebody's only copy; the catalog may be an older
// one (a backup that was put back, a log that was cut), and then knows nothing of what came after it. So files are
// removed only where something written before them says that they are half-finished:
//
//   what is found                               what becomes of it
//   in incoming/, removed/ or jobs/             removed: they are half-finished by their place
//   a folder or part with a row                 stays
//   a row without audio, a folder with it       the row takes what the folder says: the job had ended
//   one whose id is among the removals          removed: its deletion was in progress
//   a folder marked as unfinished               removed: its upload was never acknowledged
//   a folder with a description                 gets its row back
//   an empty folder; a part that is empty, or   removed: no bytes are lost
//   that has another name as well
//   any other folder or part                    kept, in orphaned/
//
// A row that can't be read is written again from its folder's description. A recording that waits for a job which is
// lost gets another. What the disk doesn't answer for stays.

/// Puts right, at a start, what an earlier run has left half-finished and what a catalog has lost.
package struct Reconciliation: Sendable {
  let catalog: Catalog
  let store: MediaStore

  /// For the data directory of `store`, which this process must have claimed, and its catalog.
  package init(catalog: Catalog, store: MediaStore) {
    (self.catalog, self.store) = (catalog, store)
  }

  /// How many recordings get their rows back in one transaction.
  private static let batch = 500

  /// Goes through the data directory once. If the catalog is not `verified`, nothing is removed or moved because of
  /// what it says; lost rows are inserted all the same. Where the catalog or the disk fails to answer, the files that
  /// were asked about stay. Never throws, as a service can serve beside leftovers.
  package func run(verified: Bool) -> SweepReport {
    var report = SweepReport()
    report.isUnverified = !verified
    store.removeHalfFinished(&report)
    // First, so that nothing below meets a row that can't be read.
    if verified { attempt(&report) { report throws(StorageError) in try heal(&report) } }
    // Before the uploads: until a marked folder is gone, its audio is a second name of the upload's part.
    var lost: [(recording: Recording, jobs: [Job])] = []
    for id in store.recordingFolders(&report) {
      attempt(&report) { report throws(StorageError) in
        if let row = try settle(id, verified, &report) { lost.append(row) }
        if lost.count == Self.batch { try insert(&lost, &report) }
      }
    }
    attempt(&report) { report throws(StorageError) in try insert(&lost, &report) }
    guard verified else { return report }
    for id in store.parts(&report) {
      attempt(&report) { report throws(StorageError) in try settle(id, &report) }
    }
    attempt(&report) { _ throws(StorageError) in try resumeStranded() }
    if report.failures.isEmpty { attempt(&report) { _ throws(StorageError) in try forgetRemovals() } }
    return report
  }

  private func attempt(_ report: inout SweepReport, _ step: (inout SweepReport) throws(StorageError) -> Void) {
    do { try step(&report) } catch { report.failures.append(error) }
  }

  /// Settles one folder; the row to insert if it has lost its own.
  private func settle(
    _ id: RecordingID, _ verified: Bool, _ report: inout SweepReport
  ) throws(StorageError) -> (recording: Recording, jobs: [Job])? {
    // A folder that was copied here may be closed even to its owner.
    FileSystem.makePrivate(store.folder(of: id))
    switch (try catalog.claim(on: id), try store.isUnfinished(id)) {
    case (.owned, let isUnfinished):
      if isUnfinished { catalog.describe(id) } else if try finish(id) { report.adopted += 1 }
    case (.removed, _) where verified, (.unknown, true) where verified:
      try store.remove(id)
      report.recordings += 1
    case (.unknown, false):
      if let row = lostRow(of: id) { return row }
      if verified { try setAside(id, &report) }
    default: break
    }
    return nil
  }

  private func setAside(_ id: RecordingID, _ report: inout SweepReport) throws(StorageError) {
    store.removeFolderIfUnused(of: id)
    guard FileSystem.isFolder(store.folder(of: id)) else { return report.recordings += 1 }
    try store.setAside(id)
    report.orphans += 1
  }

  private func settle(_ id: UploadID, _ report: inout SweepReport) throws(StorageError) {
    switch try catalog.claim(on: id) {
    case .owned: return
    case .removed: break
    case .finished, .unknown:
      guard try store.isSpare(id) else {
        try store.setAside(id)
        report.orphans += 1
        return
      }
    }
    store.removePart(of: id)
    report.uploads += 1
  }

  /// A row that waits for its job, of an older catalog, whose folder holds what the job made: takes that.
  private func finish(_ id: RecordingID) throws(StorageError) -> Bool {
    guard let row = try catalog.recording(id), row.audioFile == nil,
      let described = store.description(of: id)?.recording, store.hasAudio(of: described)
    else { return false }
    try catalog.finish(with: described)
    return true
  }

  /// The row that a recording's folder describes, with the job that it needs; nil if it describes none, or its audio
  /// isn't there.
  private func lostRow(of id: RecordingID) -> (recording: Recording, jobs: [Job])? {
    guard var recording = store.description(of: id)?.recording, let audio = recording.audioFile,
      store.hasFile(audio, of: id)
    else { return nil }
    let files = [recording.waveformFile, recording.media == nil ? nil : recording.workingFile].compactMap { $0 }
    if recording.waveformState == .ready, files.allSatisfy({ store.hasFile($0, of: id) }) { return (recording, []) }
    // The job that was to build it is lost with its row.
    let job = Job(kind: .waveform, recording: id)
    (recording.waveformState, recording.waveformJob, recording.waveformFile) = (.queued, job.id, nil)
    return (recording, [job])
  }

  private func insert(
    _ lost: inout [(recording: Recording, jobs: [Job])], _ report: inout SweepReport
  ) throws(StorageError) {
    guard !lost.isEmpty else { return }
    let rows = lost
    lost = []
    try catalog.insert(rows)
    report.adopted += rows.count
  }

  private func heal(_ report: inout SweepReport) throws(StorageError) {
    report.forgotten = try catalog.deleteUnreadableWork()
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
  }

  /// Begins the lost jobs of recordings again. A row without audio, whose job is lost, goes; but not if its folder
  /// holds something that nothing explains.
  private func resumeStranded() throws(StorageError) {
    for recording in try catalog.strandedRecordings() {
      let folder = store.folder(of: recording.id)
      if recording.audioFile == nil, FileSystem.isFolder(folder), try !store.isUnfinished(recording.id) { continue }
      try catalog.resume(stranded: recording.id)
    }
  }

  /// Describes every recording that is not described yet, as none is in a data directory of an earlier version;
  /// believes the description of one whose row is damaged; and gives folders and files their private modes. Runs beside
  /// the service, because it reads every folder.
  ///
  /// If the catalog is not `verified`, no file is removed on its word. `isLent` is asked about each file that isn't
  /// private: one that it answers for is left to it, because a program that runs now may be about to open it.
  package func tendFolders(
    verified: Bool, isLent: (String) -> Bool = { _ in false }
  ) throws(StorageError) -> TendingReport {
    var report = TendingReport()
    for name in try FileSystem.names(in: store.recordings) {
      guard let id = RecordingID(name) else { continue }
      let folder = store.folder(of: id)
      FileSystem.makePrivate(folder)
      // Deleted meanwhile.
      guard let files = try? FileSystem.names(in: folder) else { continue }
      for file in files { FileSystem.makePrivate(folder + "/" + file, unless: isLent) }
      if verified { report.removed += try removeLostConversions(among: files, of: id) }
      if try correctRow(of: id, holds: { store.hasAudio(of: $0) }) {
        report.corrected += 1
      } else if let recording = try catalog.recording(id), recording.audioFile != nil,
        store.description(of: id) != RecordingDescription(recording)
      {
        catalog.describe(id)
      }
    }
    for path in [store.uploads, store.orphaned] {
      for name in try FileSystem.names(in: path) { FileSystem.makePrivate(path + "/" + name, unless: isLent) }
    }
    return report
  }

  /// Puts the description of a recording in the place of its row where the audio is what the description says, and not
  /// what the row says: then the row was damaged. `holds` compares a recording with its audio.
  func correctRow(of id: RecordingID, holds: (Recording) -> Bool) throws(StorageError) -> Bool {
    guard let recording = try catalog.recording(id), recording.audioFile != nil,
      let described = store.description(of: id)?.recording, !holds(recording) || !recording.isSameAudio(as: described),
      holds(described)
    else { return false }
    try catalog.replaceUnreadable(with: described)
    return true
  }

  /// Forgets the removals of which nothing is left, so that a folder that somebody puts back later is not taken for
  /// one: what was renamed away is durable before the last trace of it goes.
  package func forgetRemovals() throws(StorageError) {
    let gone = try catalog.removals().filter { id in
      FileSystem.identity(of: store.recordings + "/" + id) == nil
        && FileSystem.identity(of: store.uploads + "/" + id + ".part") == nil
    }
    guard !gone.isEmpty else { return }
    try FileSystem.syncFolder(store.recordings)
    try FileSystem.syncFolder(store.uploads)
    try catalog.forgetRemovals(gone)
  }
}

extension Recording {
  /// Whether what never changes once a recording is finished is the same in both. A description has a checksum, a row
  /// has none: where they differ here, the row was damaged.
  fileprivate func isSameAudio(as other: Recording) -> Bool {
    audioFile == other.audioFile && bytes == other.bytes && sha256 == other.sha256 && createdAt == other.createdAt
      && media == other.media && format.container == other.format.container && format.codec == other.format.codec
      && format.sampleRate == other.format.sampleRate && format.channels == other.format.channels
  }
}
