import GRDB
import Glibc

// What `stillwave check --repair` does with a data directory that no service uses:
//
//   A lost or damaged catalog is replaced by a new one, which is built under another name: for folders without a
//   description, from the rows of the old catalog that can still be read; then from each folder's description. When it
//   is complete, the old catalog is moved aside, never removed, and the new one takes its place.
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

  /// Performs the repair and returns one sentence for each kind of change. Throws if the disk fails. Blocks.
  package func run() throws(StorageError) -> [String] {
    var done: [String] = []
    try finishMoves()
    guard let older = try sourcesOfNewCatalog(&done) else {
      try repair(store.catalogPath, &done)
      return done
    }
    let rebuilt = store.catalogPath + Self.rebuilt + UUIDv7().text
    try repair(rebuilt, salvaging: older, &done)
    try replaceCatalog(with: rebuilt, &done)
    return done
  }

  private func repair(
    _ path: String, salvaging older: [String] = [], _ done: inout [String]
  ) throws(StorageError) {
    let catalog = try Catalog(path: path)
    let failure = FirstFailure()
    catalog.keepDescriptions(in: store) { failure.note($1) }
    for older in older { try salvage(from: older, into: catalog, &done) }
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
    guard FileSystem.identity(of: store.catalogPath) == nil, let newest = try damagedCatalogs().first else { return }
    for suffix in Self.suffixes.dropFirst() where FileSystem.identity(of: newest + suffix) == nil {
      guard FileSystem.identity(of: store.catalogPath + suffix) != nil else { continue }
      try FileSystem.rename(store.catalogPath + suffix, to: newest + suffix)
    }
  }

  /// Returns the catalogs to salvage rows from if a new one is needed, or nil if the catalog is good.
  private func sourcesOfNewCatalog(_ done: inout [String]) throws(StorageError) -> [String]? {
    do {
      if try Catalog.inspect(path: store.catalogPath, withinSeconds: 3600) == .new { return try damagedCatalogs() }
      // Opening it detects a damaged schema, which the check of the file doesn't.
      try Catalog(path: store.catalogPath).close()
      return nil
    } catch .damagedCatalog(_, let detail) {
      done.append("The catalog is damaged (\(detail)).")
      return [store.catalogPath]
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

  /// Returns the catalogs that were moved aside, newest first.
  private func damagedCatalogs() throws(StorageError) -> [String] {
    let start = "catalog.sqlite" + Self.damaged
    return try catalogFiles().filter { $0.hasPrefix(start) && UUIDv7(String($0.dropFirst(start.count))) != nil }
      .sorted(by: >).map { store.directory + "/" + $0 }
  }

  // MARK: Rows

  /// Inserts the rows of a damaged catalog whose folders have no description.
  private func salvage(from path: String, into catalog: Catalog, _ done: inout [String]) throws(StorageError) {
    var count = 0
    try Self.eachReadableRecording(path) { (recording) throws(StorageError) in
      var recording = recording
      guard let audio = recording.audioKey, store.look(at: audio) != .absent,
        store.description(of: recording.id) == nil, try catalog.recording(recording.id) == nil
      else { return }
      if recording.bytes == nil || recording.sha256 == nil {
        // The table lacks the column.
        let file = try FileDescriptor(path: store.path(of: audio), flags: O_RDONLY)
        let found = try MediaStore.measure(file)
        (recording.bytes, recording.sha256) = (found.bytes, found.sha256)
      }
      try catalog.insert(recording)
      count += 1
    }
    if count > 0 { done.append("\(count) rows of the damaged catalog were taken over.") }
  }

  /// Calls `body` with the readable recordings of a damaged catalog: from the beginning of the table up to the damage,
  /// and from the end back to it. Columns that the table lacks are NULL.
  private static func eachReadableRecording(
    _ path: String, _ body: (Recording) throws(StorageError) -> Void
  ) throws(StorageError) {
    var configuration = Configuration()
    configuration.readonly = true
    guard let file = try? DatabaseQueue(path: path, configuration: configuration) else { return }
    defer { try? file.close() }
    var failure: StorageError?
    for order in ["ASC", "DESC"] {
      do {
        try file.read { db in
          let list = try columnList(db)
          let rows = try Row.fetchCursor(db, sql: "SELECT \(list) FROM recordings ORDER BY rowid \(order)")
          while failure == nil, let row = try rows.next() {
            guard let recording = try? RecordingRow(row: SQLRow(row)).recording else { continue }
            do throws(StorageError) { try body(recording) } catch { failure = error }
          }
        }
        // All of it could be read.
        break
      } catch {
        // The damage.
      }
    }
    if let failure { throw failure }
  }

  private static func columnList(_ db: Database) throws -> String {
    let model = try DatabaseQueue()
    try Schema.migrator.migrate(model)
    let known = try model.read { try $0.columns(in: "recordings").map(\.name) }
    let present = Set(try db.columns(in: "recordings").map(\.name))
    return known.map { present.contains($0) ? $0 : "NULL AS \($0)" }.joined(separator: ", ")
  }

  private func repairFiles(of catalog: Catalog, _ done: inout [String]) throws(StorageError) {
    var (corrected, described, rebuilt) = (0, 0, 0)
    let reconciliation = Reconciliation(catalog: catalog, store: store)
    try eachRecording(of: catalog) { (recording) throws(StorageError) in
      if try reconciliation.correctRow(of: recording.id, holds: store.hasIntactAudio) { corrected += 1 }
    }
    if corrected > 0 { done.append("\(corrected) damaged rows were written again.") }
    try eachRecording(of: catalog) { (recording) throws(StorageError) in
      guard let audio = recording.audioKey else { return }
      if store.look(at: audio) != .absent, try rebuildWaveform(of: recording, catalog) { rebuilt += 1 }
      let current = try catalog.recording(recording.id) ?? recording
      if store.description(of: recording.id) != RecordingDescription(current) {
        catalog.describe(recording.id)
        described += 1
      }
    }
    if rebuilt > 0 { done.append("\(rebuilt) waveforms will be built again when the service starts.") }
    if described > 0 { done.append("\(described) descriptions were written again.") }
  }

  private func eachRecording(
    of catalog: Catalog, _ body: (Recording) throws(StorageError) -> Void
  ) throws(StorageError) {
    var place: String?
    repeat {
      let (recordings, next) = try catalog.recordings(limit: batch, after: place)
      for recording in recordings { try body(recording) }
      place = next
    } while place != nil
  }

  /// Has a job build the waveform and the working copy if one of them is missing or damaged, unless one will already.
  /// Returns whether that was necessary. What is damaged is removed, as by a service that finds out.
  private func rebuildWaveform(of recording: Recording, _ catalog: Catalog) throws(StorageError) -> Bool {
    guard [.ready, .failed].contains(recording.waveformState) else { return false }
    let (working, waveform) = (lostWorkingCopy(of: recording), lostWaveform(of: recording))
    guard working != nil || waveform != nil else { return false }
    try catalog.update(recording.id) {
      ($0.waveformState, $0.waveformJob) = (.queued, nil)
      if working != nil { $0.workingKey = nil }
    }
    try catalog.resume(stranded: recording.id)
    for key in [working, waveform].compactMap({ $0 }) { store.delete(key) }
    return true
  }

  private func lostWorkingCopy(of recording: Recording) -> ObjectKey? {
    guard let key = recording.workingKey else { return nil }
    switch store.look(at: key) {
    case .absent: return key
    case .present(let bytes): return recording.workingBytes.map { $0 != bytes } == true ? key : nil
    case .unknown: return nil
    }
  }

  private func lostWaveform(of recording: Recording) -> ObjectKey? {
    guard recording.waveformState == .ready, let key = recording.waveformKey else { return nil }
    return store.look(at: key) == .absent || pyramidFault(store.path(of: key)) != nil ? key : nil
  }
}
