// Compares the files with the catalog at startup. The files may be a user's only copy, and the catalog may be an older
// one (a restored backup, a truncated log) that doesn't contain anything newer. So files are removed only if something
// written before them marks them as unfinished:
//
//   what is found                               what happens to it
//   in incoming/, removed/ or jobs/             removed: their location marks them as unfinished
//   a folder or part with a row                 stays
//   a row without audio, a folder with it       the row is updated from the folder: the job had ended
//   one whose ID is in the removals             removed: its deletion was in progress
//   a folder marked as unfinished               removed: its upload was never acknowledged
//   a folder with a description                 gets its row back
//   an empty folder; a part that is empty, or   removed: no bytes are lost
//   also has another name
//   any other folder or part                    kept, in orphaned/
//
// An unreadable row is restored from its folder's description. A recording that waits for a lost job gets a new one. If
// the disk doesn't respond, nothing is touched.

/// Repairs, at startup, what an earlier run left unfinished and what a catalog has lost.
package struct Reconciliation: Sendable {
  let catalog: Catalog
  let store: MediaStore

  /// Creates a reconciliation of the data directory of `store`, which this process must have claimed, and its catalog.
  package init(catalog: Catalog, store: MediaStore) {
    (self.catalog, self.store) = (catalog, store)
  }

  /// Number of recordings whose rows are read or restored in one transaction.
  private static let batch = 500

  /// Goes through the data directory once. If the catalog isn't `verified`, nothing is removed or moved because of its
  /// contents, but lost rows are still inserted. If the catalog or the disk fails, the files in question stay. Doesn't
  /// throw, because a service can run despite leftovers.
  package func run(verified: Bool) -> SweepReport {
    var report = SweepReport()
    report.isUnverified = !verified
    store.removeHalfFinished(&report)
    // Comes first, so that no later step encounters an unreadable row.
    if verified { attempt(&report) { report throws(StorageError) in try heal(&report) } }
    // Comes before the uploads: until a marked folder is removed, its audio is a second name of the upload's part.
    var lost: [(recording: Recording, jobs: [Job])] = []
    let folders = store.recordingFolders(&report).sorted()
    for start in stride(from: 0, to: folders.count, by: Self.batch) {
      let ids = folders[start..<min(start + Self.batch, folders.count)]
      // A folder that was copied here may be inaccessible even to its owner.
      for id in ids { FileSystem.makePrivate(store.folder(of: id)) }
      var named: [RecordingID: Set<String>] = [:]
      attempt(&report) { _ throws(StorageError) in named = try catalog.filesNamed(of: ids) }
      for id in ids where named[id] == nil || store.hasFile(MediaStore.marker, of: id) {
        attempt(&report) { report throws(StorageError) in
          if let row = try settle(id, verified, &report) { lost.append(row) }
          if lost.count == Self.batch { try insert(&lost, &report) }
        }
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

  /// Handles one folder. Returns the row to insert if the folder has lost its row.
  private func settle(
    _ id: RecordingID, _ verified: Bool, _ report: inout SweepReport
  ) throws(StorageError) -> (recording: Recording, jobs: [Job])? {
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

  /// Handles a row from an older catalog that waits for its job although the folder already contains the job's result:
  /// updates the row from the folder. A row that can't be read is reported elsewhere.
  private func finish(_ id: RecordingID) throws(StorageError) -> Bool {
    guard let row = try catalog.readableRecording(id), row.audioFile == nil,
      let described = store.described(id), store.hasAudio(of: described)
    else { return false }
    try catalog.finish(with: described)
    return true
  }

  /// Returns the row described by a recording's folder, with the job that it needs, or nil if there is no description
  /// or no audio.
  private func lostRow(of id: RecordingID) -> (recording: Recording, jobs: [Job])? {
    guard var recording = store.described(id), let audio = recording.audioFile,
      store.hasFile(audio, of: id)
    else { return nil }
    let files = [recording.waveformFile, recording.media == nil ? nil : recording.workingFile].compactMap { $0 }
    if recording.waveformState == .ready, files.allSatisfy({ store.hasFile($0, of: id) }) { return (recording, []) }
    // The job that was to build it was lost with its row.
    let job = Job(kind: .waveform, recording: id, createdAt: catalog.time)
    (recording.waveformState, recording.waveformJob, recording.waveformKey) = (.queued, job.id, nil)
    recording.version = max(recording.version + 1, catalog.time.milliseconds)
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
      guard let recording = store.described(id) else {
        report.unreadable += 1
        continue
      }
      try catalog.replaceUnreadable(with: recording)
      report.healed += 1
    }
  }

  /// Restarts the lost jobs of recordings. Deletes a row without audio whose job is lost, unless its folder contains
  /// something unexplained.
  private func resumeStranded() throws(StorageError) {
    var place: String?
    repeat {
      let (stranded, next) = try catalog.strandedRecordings(limit: Self.batch, after: place)
      for recording in stranded {
        let folder = store.folder(of: recording.id)
        if recording.audioFile == nil, FileSystem.isFolder(folder), try !store.isUnfinished(recording.id) { continue }
        try catalog.resume(stranded: recording.id)
      }
      place = next
    } while place != nil
  }

  /// Describes every recording without a description; trusts the description if the row is damaged; and makes folders
  /// and files private. Runs while the service is running, because it reads every folder.
  ///
  /// If the catalog isn't `verified`, no file is removed because of its contents. `isLent` is called for each file that
  /// isn't private; if it returns true, the file is left alone, because a running program may be about to open it.
  package func tendFolders(
    verified: Bool, isLent: (String) -> Bool = { _ in false }
  ) throws(StorageError) -> TendingReport {
    var report = TendingReport()
    let checked = CheckedStore(store, isLive: true)
    for name in try FileSystem.names(in: store.recordings) {
      guard let id = RecordingID(name) else { continue }
      let folder = store.folder(of: id)
      FileSystem.makePrivate(folder)
      // The recording was deleted meanwhile.
      guard let files = try? FileSystem.names(in: folder) else { continue }
      for file in files { FileSystem.makePrivate(folder + "/" + file, unless: isLent) }
      if verified { report.removed += try removeLostConversions(among: files, of: id) }
      // A crash may have left earlier descriptions.
      let descriptions = files.filter { ObjectKey(id, $0).descriptionVersion != nil }
      guard let recording = try catalog.readableRecording(id), recording.audioFile != nil,
        try !checked.isDescribed(recording) || descriptions.count > 1
      else { continue }
      if try correctRow(of: id, holds: { store.hasAudio(of: $0) }) {
        report.corrected += 1
      } else {
        catalog.describe(id)
      }
    }
    for path in [store.uploads, store.orphaned] {
      for name in try FileSystem.names(in: path) { FileSystem.makePrivate(path + "/" + name, unless: isLent) }
    }
    return report
  }

  /// Replaces a recording's row by its description if the audio matches the description but not the row, which means
  /// that the row was damaged. `holds` compares a recording with its audio.
  func correctRow(of id: RecordingID, holds: (Recording) -> Bool) throws(StorageError) -> Bool {
    guard let recording = try catalog.readableRecording(id), recording.audioFile != nil,
      let described = store.described(id), !holds(recording) || !recording.isSameAudio(as: described),
      holds(described)
    else { return false }
    try catalog.replaceUnreadable(with: described)
    return true
  }

  /// Deletes the records of removals that are complete, so that a folder that someone puts back later isn't removed.
  /// The removed names are made durable before their records are deleted.
  package func forgetRemovals() throws(StorageError) {
    let removals = try catalog.removals()
    let uploads = Set(try store.uploadsWithFiles().map(\.text))
    let gone = removals.filter { id in
      !uploads.contains(id) && FileSystem.identity(of: store.recordings + "/" + id) == nil
    }
    guard !gone.isEmpty else { return }
    try FileSystem.syncFolder(store.recordings)
    try FileSystem.syncFolder(store.uploads)
    try catalog.forgetRemovals(gone)
  }
}

extension Recording {
  /// Whether the constant properties of a finished recording are the same in both. A description has a checksum and a
  /// row has none, so if they differ, the row was damaged.
  fileprivate func isSameAudio(as other: Recording) -> Bool {
    audioKey == other.audioKey && bytes == other.bytes && sha256 == other.sha256 && createdAt == other.createdAt
      && media == other.media && format.container == other.format.container && format.codec == other.format.codec
      && format.sampleRate == other.format.sampleRate && format.channels == other.format.channels
  }
}
