import Dispatch
import Storage
import Synchronization

extension BlockCache {
  /// Removes an object from the cache, even if it is held.
  package func remove(_ key: ObjectKey) { occupying(key) { drop(key) } }

  /// Removes an object from the cache, because it seems damaged. Those that hold it keep their file until another one
  /// with the whole object takes its place.
  package func discard(_ key: ObjectKey) { occupying(key) { drop(key, leavesHeld: true) } }

  /// Removes an object whose files are gone, unless another thread has begun it again.
  func forget(_ object: CachedObject) {
    occupying(object.key) {
      if table.withLock({ $0.has(object) }) { drop(object.key, leavesHeld: true) }
    }
  }

  /// The recordings that the cache has objects of.
  package var recordings: Set<RecordingID> { table.withLock { Set($0.entries.keys.map(\.recording)) } }

  /// Removes all objects of recordings, even if they are held.
  package func remove(_ recordings: Set<RecordingID>) { for key in keys(of: recordings) { remove(key) } }

  /// Removes all objects of recordings. Those that hold one keep its file.
  func discard(_ recordings: Set<RecordingID>) { for key in keys(of: recordings) { discard(key) } }

  private func keys(of recordings: Set<RecordingID>) -> [ObjectKey] {
    table.withLock { $0.entries.keys.filter { recordings.contains($0.recording) } }
  }

  /// Does the same soon, without blocking.
  package func removeSoon(_ recordings: Set<RecordingID>) { removals.async { [self] in remove(recordings) } }

  func occupying(_ key: ObjectKey, _ body: () -> Void) {
    let task = occupy(key)
    body()
    table.withLock { $0.busy[key] = nil }
    task.finish(.done)
  }

  /// Waits until no other thread creates or removes the object's files, and keeps others from doing so.
  func occupy(_ key: ObjectKey) -> SharedTask {
    let own = SharedTask()
    while true {
      let other = table.withLock { table in
        let other = table.busy[key]
        if other == nil { table.busy[key] = own }
        return other
      }
      guard let other else { return own }
      _ = try? other.wait()
    }
  }

  /// Removes an object that this thread occupies. `leavesHeld`: a file at its path stays for those that hold it.
  func drop(_ key: ObjectKey, leavesHeld: Bool = false) {
    let entry = table.withLock { $0.remove(key) }
    // Those that still hold it must not take the next object's files for its own.
    entry?.object?.retire()
    // Without its index, the file is no object, whatever a crash leaves.
    for path in [folder.indexPath(of: key), folder.partPath(of: key)] { try? FileSystem.remove(path) }
    if leavesHeld {
      // Then a file at the path belongs to an earlier object that is still held.
      guard let entry, entry.object?.isPublished ?? true else { return }
      if entry.holds > 0, let object = entry.object, object.isThere { return object.leave() }
    }
    try? FileSystem.remove(path(of: key))
  }
}
