import Glibc

// What `stillwave check --repair` does with a data directory that no service uses:
//
//   A lost or damaged catalog is replaced by a new one, which is built under another name: from the rows of the old
//   catalog that can still be read (Salvage), then from the descriptions of folders without a row. When it is complete,
//   the old catalog is moved aside, never removed, and the new one takes its place.
//   Everything that a start repairs (Reconciliation) is repaired.
//   Descriptions that differ from the catalog are rewritten.
//   A missing or damaged waveform is rebuilt by the next start.
//
// Lost or changed audio can't be repaired, so the check that follows reports it again.

/// Repairs a data directory as far as possible.
package struct DataRepair: Sendable {
  private let store: MediaStore
  private let pyramidFault: @Sendable (String) -> String?
  private let batch: Int

  /// Creates a repair of a directory that this process has claimed. `batch` and `pyramidFault`: as for `DataCheck`.
  package init(_ store: MediaStore, batch: Int = 500, pyramidFault: @escaping @Sendable (String) -> String?) {
    (self.store, self.batch, self.pyramidFault) = (store, batch, pyramidFault)
  }

  /// What a repair has changed, and what it couldn't.
  package struct Outcome: Sendable, Equatable {
    /// One sentence for each kind of change.
    package var done: [String] = []
    /// One sentence for each row of a damaged catalog that is lost; for a table, at most 1,000.
    package var lost: [String] = []

    /// Creates the outcome of a repair that found nothing to do.
    package init() {}
  }

  /// Performs the repair. Throws if the disk fails. Blocks.
  package func run() throws(StorageError) -> Outcome {
    var outcome = Outcome()
    try finishMoves()
    switch try source(of: &outcome.done) {
    case .good: outcome.lost = try repair(store.catalogPath, &outcome.done)
    case .rebuilt(let damaged):
      let rebuilt = store.catalogPath + Self.rebuilt + UUIDv7().text
      var losses: [Salvage.Loss] = []
      if let damaged {
        try Catalog(path: rebuilt).close()
        let salvage = try Salvage(from: damaged, to: rebuilt)
        losses = salvage.losses
        outcome.done.append("\(salvage.rows) rows of the damaged catalog were copied to the new one.")
      }
      outcome.lost = try repair(rebuilt, losing: losses, &outcome.done)
      try replaceCatalog(with: rebuilt, &outcome.done)
    }
    return outcome
  }

  /// Returns a sentence for each loss that remains.
  private func repair(
    _ path: String, losing losses: [Salvage.Loss] = [], _ done: inout [String]
  ) throws(StorageError) -> [String] {
    let catalog = try Catalog(path: path)
    let failure = FirstFailure()
    catalog.keepDescriptions(in: store.descriptions) { failure.note($1) }
    let report = Reconciliation(catalog: catalog, store: store).run(verified: true)
    if report.adopted > 0 { done.append("\(report.adopted) recordings have their row in the catalog again.") }
    if report.healed > 0 { done.append("\(report.healed) rows that could not be read were written again.") }
    if report.orphans > 0 { done.append("\(report.orphans) folders or uploads were moved to “orphaned”.") }
    let leftovers = report.incoming + report.uploads + report.recordings + report.jobs
    if leftovers > 0 { done.append("\(leftovers) half-finished uploads, deletions or jobs were removed.") }
    if let first = report.failures.first { throw first }
    try repairFiles(of: catalog, &done)
    if let error = failure.error { throw error }
    var lost: [String] = []
    for loss in losses { lost += try sentences(about: loss, in: catalog) }
    if report.forgotten > 0 { lost.append("\(report.forgotten) rows of jobs, uploads or webhooks were damaged.") }
    try catalog.close()
    return lost
  }

  private static let lossLimit = 1000

  /// The rows of recordings may be there again, from the descriptions.
  private func sentences(about loss: Salvage.Loss, in catalog: Catalog) throws(StorageError) -> [String] {
    var keys = loss.keys.sorted()
    if loss.table == "recordings" {
      var gone: [String] = []
      for key in keys {
        if let id = RecordingID(key), try catalog.readableRecording(id) != nil { continue }
        gone.append(key)
      }
      keys = gone
    }
    var sentences = keys.prefix(Self.lossLimit).map { "The row \($0) of the table “\(loss.table)” is lost." }
    if keys.count > Self.lossLimit {
      sentences.append("\(keys.count - Self.lossLimit) other rows of the table “\(loss.table)” are lost.")
    }
    if loss.isIncomplete { sentences.append("Rows of the table “\(loss.table)” may be lost that nothing names.") }
    return sentences
  }

  // MARK: The catalog's place

  private static let damaged = ".damaged-"
  private static let rebuilt = ".rebuilt-"
  private static let suffixes = ["", "-wal", "-shm"]

  /// Completes a repair that was killed: removes the catalog that it was building and moves the rest of a damaged
  /// catalog aside. Otherwise a remaining log would be applied to the next catalog in its place.
  private func finishMoves() throws(StorageError) {
    for name in try catalogFiles() where name.hasPrefix("catalog.sqlite" + Self.rebuilt) {
      try FileSystem.remove(store.directory + "/" + name)
    }
    guard FileSystem.identity(of: store.catalogPath) == nil, let newest = try newestDamagedCatalog() else { return }
    for suffix in Self.suffixes.dropFirst() where FileSystem.identity(of: newest + suffix) == nil {
      guard FileSystem.identity(of: store.catalogPath + suffix) != nil else { continue }
      try FileSystem.rename(store.catalogPath + suffix, to: newest + suffix)
    }
  }

  /// What becomes of the catalog.
  private enum Source {
    case good
    /// A new one takes its place, with what can be read of `damaged`, if that is there.
    case rebuilt(damaged: String?)
  }

  private func source(of done: inout [String]) throws(StorageError) -> Source {
    do {
      if try Catalog.inspect(path: store.catalogPath, withinSeconds: 3600) == .new {
        return .rebuilt(damaged: try newestDamagedCatalog())
      }
      // Opening it detects a damaged schema, which the check of the file doesn't.
      try Catalog(path: store.catalogPath).close()
      return .good
    } catch .damagedCatalog(_, let detail) {
      done.append("The catalog is damaged (\(detail)).")
      return .rebuilt(damaged: store.catalogPath)
    }
  }

  /// Replaces the damaged catalog with a complete new one, and keeps the damaged file.
  private func replaceCatalog(with rebuilt: String, _ done: inout [String]) throws(StorageError) {
    let aside = store.catalogPath + Self.damaged + UUIDv7().text
    var isMoved = false
    // The file is moved before its log, because finishMoves() uses it to find the rest.
    for suffix in Self.suffixes where FileSystem.identity(of: store.catalogPath + suffix) != nil {
      try FileSystem.rename(store.catalogPath + suffix, to: aside + suffix)
      isMoved = true
    }
    for suffix in Self.suffixes.dropFirst() { _ = try FileSystem.removeFile(rebuilt + suffix) }
    try FileSystem.syncFolder(store.directory)
    try FileSystem.rename(rebuilt, to: store.catalogPath)
    try FileSystem.syncFolder(store.directory)
    if isMoved { done.append("The old catalog was moved to \(aside); a new one is in its place.") }
  }

  private func catalogFiles() throws(StorageError) -> [String] {
    try FileSystem.names(in: store.directory).filter { $0.hasPrefix("catalog.sqlite") }
  }

  /// Returns the catalog that was moved aside last.
  private func newestDamagedCatalog() throws(StorageError) -> String? {
    let start = "catalog.sqlite" + Self.damaged
    return try catalogFiles().filter { $0.hasPrefix(start) && UUIDv7(String($0.dropFirst(start.count))) != nil }.max()
      .map { store.directory + "/" + $0 }
  }

  // MARK: Rows

  /// Gives a row that has lost the length and the hash of its audio those that the audio has. Returns whether it had.
  private func measureAudio(of recording: Recording, _ catalog: Catalog) throws(StorageError) -> Bool {
    guard recording.bytes == nil || recording.sha256 == nil, let audio = recording.audioKey,
      store.look(at: audio) != .absent
    else { return false }
    let found = try FileDescriptor(path: store.path(of: audio), flags: O_RDONLY).digest()
    try catalog.update(recording.id) { ($0.bytes, $0.sha256) = (found.bytes, found.sha256) }
    return true
  }

  private func repairFiles(of catalog: Catalog, _ done: inout [String]) throws(StorageError) {
    var (corrected, described, rebuilt) = (0, 0, 0)
    let reconciliation = Reconciliation(catalog: catalog, store: store)
    let (inventory, media) = (Inventory(of: catalog, batch: batch), CheckedStore(store, isLive: false))
    try inventory.each { (entry) throws(StorageError) in
      var (entry, recording) = (entry, entry.recording)
      var isDescribed = try media.isDescribed(recording)
      func reread() throws(StorageError) {
        entry = try inventory.entry(recording.id) ?? entry
        recording = entry.recording
        isDescribed = try media.isDescribed(recording)
      }
      if !isDescribed, try reconciliation.correctRow(of: recording.id, holds: store.hasIntactAudio) {
        corrected += 1
        try reread()
      } else if try measureAudio(of: recording, catalog) {
        try reread()
      }
      guard let audio = recording.audioKey else { return }
      if store.look(at: audio) != .absent, try rebuildWaveform(of: entry, media, catalog) {
        rebuilt += 1
        try reread()
      }
      if !isDescribed {
        catalog.describe(recording.id)
        described += 1
      }
    }
    if corrected > 0 { done.append("\(corrected) damaged rows were written again.") }
    if rebuilt > 0 { done.append("\(rebuilt) waveforms will be built again when the service starts.") }
    if described > 0 { done.append("\(described) descriptions were written again.") }
  }

  /// Has a job build the waveform and the working copy if one of them is missing or damaged, unless one will already.
  /// Returns whether that was necessary. What is damaged is removed, as by a service that finds out.
  private func rebuildWaveform(
    of entry: InventoryEntry, _ media: CheckedStore, _ catalog: Catalog
  ) throws(StorageError) -> Bool {
    guard [.ready, .failed].contains(entry.recording.waveformState) else { return false }
    var lost: [InventoryItem] = []
    for item in entry.items where [.workingCopy, .waveform].contains(item.kind) {
      let (_, fault) = try media.look(at: item, readsAll: true, pyramidFault: pyramidFault)
      // The disk may be able to read it later.
      if case .unreadable = fault { continue }
      if fault != nil { lost.append(item) }
    }
    guard !lost.isEmpty else { return false }
    let losesWorkingCopy = lost.contains { $0.kind == .workingCopy }
    try catalog.update(entry.recording.id) {
      ($0.waveformState, $0.waveformJob) = (.queued, nil)
      if losesWorkingCopy { $0.workingKey = nil }
    }
    try catalog.resume(stranded: entry.recording.id)
    let blobs = Blobs(store, of: catalog)
    for item in lost { blobs.delete(item.key) }
    return true
  }
}
