import Dispatch
import Synchronization
import Terms

/// Where the descriptions of recordings are kept. Thread-safe; every call blocks.
package protocol DescriptionStore: Sendable {
  /// Writes a recording's description beside its audio, in place of an earlier one. Does nothing for a recording
  /// without audio.
  func describe(_ recording: Recording) throws(StorageError)

  /// Removes the mark of the unfinished from a recording whose row is durable but that couldn't be described. Does
  /// nothing if the store has no marks.
  func removeMark(of id: RecordingID) throws(StorageError)

  /// Throws if another process could write to the catalog that is in the same folder. Does nothing if there is none.
  func checkClaim() throws(StorageError)

  /// Whether other processes write descriptions, too.
  var hasOtherWriters: Bool { get }
}

extension MediaStore: DescriptionStore {
  /// Whether other processes share the folder.
  package var hasOtherWriters: Bool { node != nil }
}

/// Writes the descriptions of recordings into their folders, one at a time for each recording. The last one written was
/// also the last to read the row, so the description ends up matching the row.
///
/// Other processes that share the store write descriptions, too. So each reads the row again after writing, and writes
/// again if the row has changed: whoever writes last has read the newest row.
package struct DescriptionKeeper: Sendable {
  /// Runs work on a thread that may wait for the store. Returns false, without running it, if too much waits already.
  package typealias Start = @Sendable (@escaping @Sendable () -> Void) -> Bool

  let store: any DescriptionStore
  private let start: Start?
  private let onFailure: @Sendable (RecordingID, StorageError) -> Void
  private let clock: Clock
  private let waiting = Waiting()

  /// The recordings that are to be described later.
  private final class Waiting: Sendable {
    let ids = Mutex<Set<RecordingID>>([])
  }

  /// A row that was read so many seconds ago may have been replaced and described by another process.
  static let freshSeconds = 5.0

  /// Several queues, so that the descriptions of different recordings rarely wait for each other's fsync.
  private let queues = (0..<16).map { DispatchQueue(label: "descriptions \($0)") }

  init(
    store: any DescriptionStore, later start: Start? = nil, clock: Clock,
    onFailure: @escaping @Sendable (RecordingID, StorageError) -> Void
  ) {
    (self.store, self.start, self.clock, self.onFailure) = (store, start, clock, onFailure)
  }

  /// Whether there are threads that may wait for the store.
  var canWait: Bool { start != nil }

  /// Calls `describe` on such a thread, once for all calls until it begins. Doesn't block.
  func later(_ id: RecordingID, _ describe: @escaping @Sendable () -> Void) {
    guard let start, waiting.ids.withLock({ $0.insert(id).inserted }) else { return }
    let isTaken = start { [waiting] in
      // First, so that a change that isn't described by this call is by another one.
      _ = waiting.ids.withLock { $0.remove(id) }
      describe()
    }
    if !isTaken { _ = waiting.ids.withLock { $0.remove(id) } }
  }

  /// Describes a recording as returned by `next`, and again until that returns nil. `next` gets what was described
  /// last. Calls `doubt` before it describes what was read a while ago. Returns false, after `onFailure`, if it
  /// couldn't. Blocks on the disk or the store.
  func describe(
    _ id: RecordingID, doubt: () throws -> Void,
    as next: (Catalog.Undescribed?) throws -> Catalog.Undescribed?
  ) -> Bool {
    queues[Int(id.hashValue.magnitude % UInt(queues.count))].sync {
      do {
        var (described, askedAt) = (nil as Catalog.Undescribed?, clock.now)
        while let row = try next(described) {
          if clock.seconds(since: askedAt) > Self.freshSeconds { try doubt() }
          try store.describe(row.recording)
          (described, askedAt) = (row, clock.now)
        }
        return true
      } catch {
        // The row is durable nevertheless, so the folder must no longer be marked as unfinished.
        try? store.removeMark(of: id)
        onFailure(id, StorageError(error))
        return false
      }
    }
  }
}
