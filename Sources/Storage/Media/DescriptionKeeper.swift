import Dispatch

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
struct DescriptionKeeper: Sendable {
  let store: any DescriptionStore
  let onFailure: @Sendable (RecordingID, StorageError) -> Void

  /// Several queues, so that the descriptions of different recordings rarely wait for each other's fsync.
  private let queues = (0..<16).map { DispatchQueue(label: "descriptions \($0)") }

  init(store: any DescriptionStore, onFailure: @escaping @Sendable (RecordingID, StorageError) -> Void) {
    self.store = store
    self.onFailure = onFailure
  }

  /// Describes a recording as returned by `next`, and again until that returns nil. `next` gets what was described
  /// last. Returns false, after `onFailure`, if it couldn't. Blocks on the disk or the store.
  func describe(_ id: RecordingID, as next: (Catalog.Undescribed?) throws -> Catalog.Undescribed?) -> Bool {
    queues[Int(id.hashValue.magnitude % UInt(queues.count))].sync {
      do {
        var described: Catalog.Undescribed?
        while let row = try next(described) {
          try store.describe(row.recording)
          described = row
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
