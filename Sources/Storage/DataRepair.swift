import GRDB

// What `stillwave check --repair` does, on a data directory that no service uses:
//
//   a catalog that is lost or damaged is moved aside, never removed, and a new one is filled: with what each folder says
//   of itself, then, for folders that say nothing, with the rows that can still be read of the old one
//   everything a start puts right (Reconciliation) is put right
//   descriptions that are not what the catalog says are written again
//   a waveform that is missing or damaged is built again by the next start
//
// Audio that is lost or changed can't be put right: the check that follows reports it again.

/// Puts right what can be put right in a data directory.
public struct DataRepair: Sendable {
  private let store: MediaStore
  private let pyramidFault: @Sendable (String) -> String?

  /// For a directory that this process has claimed. `pyramidFault`: as for `DataCheck`.
  public init(_ store: MediaStore, pyramidFault: @escaping @Sendable (String) -> String?) {
    (self.store, self.pyramidFault) = (store, pyramidFault)
  }

  /// Repairs; what was done, one sentence for each kind. Throws where the disk refuses. Blocks.
  public func run() throws(StorageError) -> [String] {
    var done: [String] = []
    let older = try replaceCatalogIfNeeded(&done)
    let catalog = try Catalog(path: store.catalogPath)
    let failure = FirstFailure()
    catalog.keepDescriptions(in: store) { failure.note($1) }
    if let older { try salvage(from: older, into: catalog, &done) }
    let report = Reconciliation(catalog: catalog, store: store).run(verified: true)
    if report.adopted > 0 { done.append("\(report.adopted) recordings have their row in the catalog again.") }
    if report.healed > 0 { done.append("\(report.healed) rows that could not be read were written again.") }
    if report.orphans > 0 { done.append("\(report.orphans) folders or uploads were moved to “orphaned”.") }
    let leftovers = report.incoming + report.uploads + report.recordings + report.jobs
    if leftovers > 0 { done.append("\(leftovers) half-finished uploads, deletions or jobs were removed.") }
    if let first = report.failures.first { throw first }
    try repairFiles(of: catalog, &done)
    if let error = failure.error { throw error }
    try catalog.close()
    return done
  }

  /// Where the old catalog is now, if it was no good.
  private func replaceCatalogIfNeeded(_ done: inout [String]) throws(StorageError) -> String? {
    do {
      if try Catalog.inspect(path: store.catalogPath, withinSeconds: 3600) != .new {
        // Opening finds what the check of the file can't: a schema that is damaged.
        try Catalog(path: store.catalogPath).close()
      }
      return nil
    } catch .damagedCatalog(_, let detail) {
      let aside = store.catalogPath + ".damaged-" + UUIDv7().text
      for suffix in ["", "-wal", "-shm"] where FileSystem.identity(of: store.catalogPath + suffix) != nil {
        try FileSystem.rename(store.catalogPath + suffix, to: aside + suffix)
      }
      done.append("The damaged catalog (\(detail)) was moved to \(aside); a new one takes its place.")
      return aside
    }
  }

  /// Takes over the rows of a damaged catalog whose folders say nothing of themselves.
  private func salvage(from path: String, into catalog: Catalog, _ done: inout [String]) throws(StorageError) {
    var count = 0
    for recording in Self.readableRecordings(path) {
      guard let audio = recording.audioFile, store.hasFile(audio, of: recording.id),
        store.description(of: recording.id) == nil, try catalog.recording(recording.id) == nil
      else { continue }
      try catalog.insert(recording)
      count += 1
    }
    if count > 0 { done.append("\(count) rows of the damaged catalog were taken over.") }
  }

  /// What can be read of a damaged catalog: from either end of the table to the damage.
  private static func readableRecordings(_ path: String) -> [Recording] {
    guard let file = try? DatabaseQueue(path: path) else { return [] }
    defer { try? file.close() }
    var found: [RecordingID: Recording] = [:]
    for order in ["ASC", "DESC"] {
      try? file.read { db in
        let rows = try Row.fetchCursor(db, sql: "SELECT * FROM recordings ORDER BY rowid \(order)")
        while let row = try rows.next() {
          if let recording = try? RecordingRow(row: row).recording { found[recording.id] = recording }
        }
      }
    }
    return Array(found.values)
  }

  private func repairFiles(of catalog: Catalog, _ done: inout [String]) throws(StorageError) {
    var (corrected, described, rebuilt) = (0, 0, 0)
    for recording in try catalog.recordings(limit: .max) {
      let reconciliation = Reconciliation(catalog: catalog, store: store)
      if try reconciliation.correctRow(of: recording.id, holds: store.hasIntactAudio) { corrected += 1 }
    }
    if corrected > 0 { done.append("\(corrected) damaged rows were written again.") }
    for recording in try catalog.recordings(limit: .max) where recording.audioFile != nil {
      if lacksWaveform(recording), let audio = recording.audioFile, store.hasFile(audio, of: recording.id) {
        try catalog.update(recording.id) { ($0.waveformState, $0.waveformJob) = (.queued, nil) }
        try catalog.resume(stranded: recording.id)
        rebuilt += 1
      }
      let current = try catalog.recording(recording.id) ?? recording
      if store.description(of: recording.id) != RecordingDescription(current) {
        catalog.describe(recording.id)
        described += 1
      }
    }
    if rebuilt > 0 { done.append("\(rebuilt) waveforms will be built again when the service starts.") }
    if described > 0 { done.append("\(described) descriptions were written again.") }
  }

  private func lacksWaveform(_ recording: Recording) -> Bool {
    if let working = recording.workingFile, !store.hasFile(working, of: recording.id) { return true }
    guard recording.waveformState == .ready, let name = recording.waveformFile else { return false }
    return !store.hasFile(name, of: recording.id) || pyramidFault(store.folder(of: recording.id) + "/" + name) != nil
  }
}
