import Dispatch

/// Writes descriptions of recordings into their folders, for each recording one at a time: the last to write has read
/// the row last, so the description ends up as the row is.
struct DescriptionKeeper: Sendable {
  let store: MediaStore
  let onFailure: @Sendable (RecordingID, StorageError) -> Void

  /// Several, so that the descriptions of different recordings seldom wait for each other's fsync.
  private let queues = (0..<16).map { DispatchQueue(label: "descriptions \($0)") }

  init(store: MediaStore, onFailure: @escaping @Sendable (RecordingID, StorageError) -> Void) {
    self.store = store
    self.onFailure = onFailure
  }

  /// Describes a recording as `current` reads it, unless it is gone. Blocks on the disk.
  func describe(_ id: RecordingID, as current: () throws -> Recording?) {
    queues[Int(id.hashValue.magnitude % UInt(queues.count))].sync {
      do {
        if let recording = try current() { try store.describe(recording) }
      } catch {
        // The row is durable all the same, so the folder must not bear the mark of the unfinished any longer.
        try? store.removeMark(of: id)
        onFailure(id, StorageError(error))
      }
    }
  }
}
