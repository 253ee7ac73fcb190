import Storage
import Synchronization

/// Jobs and recordings as they were last answered: an object that is polled costs no query and no encoding until
/// something has changed.
///
/// Whether something has is told by two counters, of the catalogue's writes and of the live jobs' steps, whatever they
/// were about: coarse, but with nothing to forget. A miss costs a read transaction of SQLite and an encoding, some
/// 60 µs on a worker queue; a hit a lock and a look-up.
final class DocumentTable: Sendable {
  /// Both counters, read before the rows are: a document never claims to be newer than it is.
  private struct Stamp: Equatable {
    var catalog: UInt64
    var live: UInt64
  }

  private struct Entry {
    var stamp: Stamp
    var document: JSONDocument
  }

  private let catalog: Catalog
  private let live: LiveJobs
  private let work: WorkQueue
  private let jobs = Mutex<[JobID: Entry]>([:])
  private let recordings = Mutex<[RecordingID: Entry]>([:])

  /// Documents have 1 to 3 KB: some MB at the most.
  private static let limit = 1024

  init(catalog: Catalog, live: LiveJobs, work: WorkQueue) {
    self.catalog = catalog
    self.live = live
    self.work = work
  }

  /// The Job as it is now, where that needs no look at the catalogue.
  func known(_ id: JobID) -> JSONDocument? { known(id, in: jobs, stamp) }

  /// The Recording as it is now, where that needs no look at the catalogue.
  func known(_ id: RecordingID) -> JSONDocument? { known(id, in: recordings, stamp) }

  /// The Job as it is now; nil where there is none.
  func job(_ id: JobID) async throws -> JSONDocument? {
    try await document(id, in: jobs) { [catalog, live] in
      try catalog.job(id).map { try JSONDocument(JobDocument($0, live: live[id])) }
    }
  }

  /// The Recording as it is now; nil where there is none.
  func recording(_ id: RecordingID) async throws -> JSONDocument? {
    try await document(id, in: recordings) { [catalog, live] in
      try catalog.recording(id).map { try JSONDocument(RecordingDocument($0, live: live.job(writing: id))) }
    }
  }

  private var stamp: Stamp { Stamp(catalog: catalog.changeCount, live: live.changeCount) }

  private func known<Key: Hashable & Sendable>(
    _ key: Key, in entries: borrowing Mutex<[Key: Entry]>, _ stamp: Stamp
  ) -> JSONDocument? {
    entries.withLock { entries in
      guard let entry = entries[key], entry.stamp == stamp else { return nil }
      return entry.document
    }
  }

  private func document<Key: Hashable & Sendable>(
    _ key: Key, in entries: borrowing Mutex<[Key: Entry]>, _ make: @escaping @Sendable () throws -> JSONDocument?
  ) async throws -> JSONDocument? {
    let stamp = stamp
    if let known = known(key, in: entries, stamp) { return known }
    let document = try await work.run { try make() }
    entries.withLock { entries in
      if entries.count >= Self.limit { entries.removeAll(keepingCapacity: true) }
      entries[key] = document.map { Entry(stamp: stamp, document: $0) }
    }
    return document
  }
}
