import Dispatch

/// Writes the descriptions of recordings into their folders, one at a time for each recording. The last one written was
/// also the last to read the row, so the description ends up matching the row.
///
/// Other processes that share the folder write descriptions, too. So each reads the row again after writing, and writes
/// again if the row has changed: whoever writes last has read the newest row.
struct DescriptionKeeper: Sendable {
  let store: MediaStore
  let onFailure: @Sendable (RecordingID, StorageError) -> Void

  /// Several queues, so that the descriptions of different recordings rarely wait for each other's fsync.
  private let queues = (0..<16).map { DispatchQueue(label: "descriptions \($0)") }

  init(store: MediaStore, onFailure: @escaping @Sendable (RecordingID, StorageError) -> Void) {
    self.store = store
    self.onFailure = onFailure
  }

  /// Describes a recording as returned by `current`, unless that is nil. Blocks on the disk.
  func describe(_ id: RecordingID, as current: () throws -> Recording?) {
    queues[Int(id.hashValue.magnitude % UInt(queues.count))].sync {
      do {
        var described: Recording?
        while let recording = try current(), recording != described {
          try store.describe(recording)
          described = recording
          if store.node == nil { break }
        }
      } catch {
        // The row is durable nevertheless, so the folder must no longer be marked as unfinished.
        try? store.removeMark(of: id)
        onFailure(id, StorageError(error))
      }
    }
  }
}
