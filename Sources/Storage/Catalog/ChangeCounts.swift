import Synchronization

/// Counts the changes of each recording, for caches. Thread-safe, without locks.
final class ChangeCounts: Sendable {
  /// Recordings share counts: a count that grows needlessly only causes another read.
  private let counts = (0..<1024).map { _ in ChangeCount() }

  /// Counts the recordings that a committed transaction has changed or deleted.
  func add(_ changes: CatalogChanges) {
    for id in (changes.recordings + changes.deleted).map(\.id) {
      count(of: id).value.wrappingAdd(1, ordering: .sequentiallyConsistent)
    }
  }

  /// Counts a change of every recording, because it isn't known which have changed.
  func addToAll() {
    for count in counts { count.value.wrappingAdd(1, ordering: .sequentiallyConsistent) }
  }

  /// The number of changes to a recording, together with those that share its count.
  subscript(id: RecordingID) -> UInt64 { count(of: id).value.load(ordering: .sequentiallyConsistent) }

  /// Counts a change to a recording, and returns the new number.
  func grown(_ id: RecordingID) -> UInt64 {
    count(of: id).value.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
  }

  private func count(of id: RecordingID) -> ChangeCount { counts[id.share(of: counts.count)] }
}

private final class ChangeCount: Sendable {
  let value = Atomic<UInt64>(0)
}
