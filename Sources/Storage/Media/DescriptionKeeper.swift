import Dispatch
import Synchronization
import Terms

/// Writes the descriptions of recordings into their folders, one at a time for each recording.
package struct DescriptionKeeper: Sendable {
  /// Runs work on a thread that may wait for the store. Returns false, without running it, if too much waits already.
  package typealias Start = @Sendable (@escaping @Sendable () -> Void) -> Bool

  let store: Descriptions
  private let start: Start?
  private let onFailure: @Sendable (RecordingID, StorageError) -> Void
  private let waiting = Waiting()

  /// The recordings that are to be described later, as they were last.
  private final class Waiting: Sendable {
    let newest = Mutex<[RecordingID: Recording]>([:])
  }

  /// Several queues, so that the descriptions of different recordings rarely wait for each other's fsync.
  private let queues = (0..<16).map { DispatchQueue(label: "descriptions \($0)") }

  init(
    store: Descriptions, later start: Start? = nil,
    onFailure: @escaping @Sendable (RecordingID, StorageError) -> Void
  ) {
    (self.store, self.start, self.onFailure) = (store, start, onFailure)
  }

  /// Whether there are threads that may wait for the store.
  var canWait: Bool { start != nil }

  /// Calls `describe` on such a thread, once for all calls until it begins, with the newest recording of them. Doesn't
  /// block.
  func later(_ recording: Recording, _ describe: @escaping @Sendable (Recording) -> Void) {
    guard let start else { return }
    let id = recording.id
    let isWaiting = waiting.newest.withLock { newest in
      let former = newest[id]
      if recording.version > former?.version ?? -1 { newest[id] = recording }
      return former != nil
    }
    guard !isWaiting else { return }
    let isTaken = start { [waiting] in
      // First, so that a change that isn't described by this call is by another one.
      if let newest = waiting.newest.withLock({ $0.removeValue(forKey: id) }) { describe(newest) }
    }
    if !isTaken { _ = waiting.newest.withLock { $0.removeValue(forKey: id) } }
  }

  /// Describes a recording, then calls `note`. Returns false, after `onFailure`, if one of both failed. Blocks on the
  /// disk or the store.
  func describe(_ recording: Recording, note: () throws(StorageError) -> Void) -> Bool {
    queues[Int(recording.id.hashValue.magnitude % UInt(queues.count))].sync {
      do throws(StorageError) {
        try store.describe(recording)
        try note()
        return true
      } catch {
        fail(recording.id, error)
        return false
      }
    }
  }

  /// Takes in that a recording couldn't be described.
  func fail(_ id: RecordingID, _ error: StorageError) {
    // The row is durable nevertheless, so the folder must no longer be marked as unfinished.
    try? store.removeMark(of: id)
    onFailure(id, error)
  }
}
