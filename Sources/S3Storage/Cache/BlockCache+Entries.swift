// How an object gets its entry in the table: one thread asks the store for it, or opens what an earlier process has
// left, while others wait.

import Glibc
import Storage

extension BlockCache {
  private enum Access: Sendable {
    case found(CachedObject)
    case wait(SharedTask)
    /// An earlier process has left files of it.
    case open(SharedTask)
    case begin(SharedTask)
    /// It isn't here, or only the store can say what it is.
    case nothing
  }

  /// Returns an object and holds it for the caller; nil if there is none. Without `asking`, never waits for the store,
  /// and returns nil if only the store could say whether there is one.
  func acquire(_ key: ObjectKey, asking: Bool = true) throws(StorageError) -> Hold? {
    precondition(MediaStore.isFileName(key.name), "the name of a file in one folder")
    while true {
      switch table.withLock({ Self.access(to: key, asking: asking, &$0) }) {
      case .nothing: return nil
      case .found(let object):
        let hold = Hold(object, in: self)
        guard object.isThere else {
          // That may wait for another thread, which asks the store.
          guard asking else { return nil }
          forget(object)
          continue
        }
        touch(key)
        return hold
      case .wait(let task): if try !task.wait() { return nil }
      case .open(let task):
        // One that turns out to be unusable is begun in the next round.
        if let hold = try open(key, task, orElse: .done, { () throws(StorageError) in try left(key) }) { return hold }
      case .begin(let task):
        return try open(key, task, orElse: .absent) { () throws(StorageError) in
          try remaking { () throws(StorageError) in try begun(key) }
        }
      }
    }
  }

  private static func access(to key: ObjectKey, asking: Bool, _ table: inout CacheTable) -> Access {
    if let task = table.busy[key] { return asking || !task.asksStore ? .wait(task) : .nothing }
    let entry = table.entries[key]
    if let object = entry?.object {
      table.hold(key)
      return .found(object)
    }
    guard asking || entry != nil else { return .nothing }
    let task = SharedTask(asksStore: entry == nil)
    table.busy[key] = task
    return entry == nil ? .begin(task) : .open(task)
  }

  /// Makes an entry of what `body` returns, and holds it. `orElse` is how the task ends if that is nil.
  private func open(
    _ key: ObjectKey, _ task: SharedTask, orElse: SharedTask.Outcome, _ body: () throws(StorageError) -> CachedObject?
  ) throws(StorageError) -> Hold? {
    let outcome = Result(catching: body)
    let object = try? outcome.get()
    table.withLock { table in
      table.busy[key] = nil
      // Its files are still there.
      if case .failure = outcome { return }
      table.remove(key)
      guard let object else { return }
      table.insert(key, object, cost: object.cost)
      table.hold(key)
    }
    switch outcome {
    case .success(let object): task.finish(object == nil ? orElse : .done)
    case .failure(let error): task.finish(.failed(error))
    }
    guard let object = try outcome.get() else { return nil }
    touch(key)
    return Hold(object, in: self)
  }

  /// Returns an object that an earlier process left. It has no path until its bytes have been compared, because nothing
  /// was synced.
  private func left(_ key: ObjectKey) throws(StorageError) -> CachedObject? {
    let part = folder.partPath(of: key)
    do throws(StorageError) {
      if let index = try BlockIndex(opening: folder.indexPath(of: key)) {
        if (try? FileSystem.length(of: part)) == nil { try? FileSystem.rename(path(of: key), to: part) }
        if (try? FileSystem.length(of: part)) == index.version.bytes {
          return try CachedObject(key, path: path(of: key), partPath: part, index: index)
        }
      }
    } catch {
      guard error.meansLoss else { throw error }
    }
    for path in [path(of: key), part, folder.indexPath(of: key)] { try FileSystem.remove(path) }
    return nil
  }

  private func begun(_ key: ObjectKey) throws(StorageError) -> CachedObject? {
    let expected = try expecting(key)
    let info = try StorageError.translating { () throws(S3Error) in
      try client.head(key.description, expecting: expected)
    }
    guard let info else {
      // It may have been left to those who hold it. Without an object, no file has its path.
      try? FileSystem.remove(path(of: key))
      return nil
    }
    if let expected, !expected.permits(info.bytes, info.sha256) { throw .damagedObject(key: key.description) }
    if expected?.bytes == nil, info.bytes > S3ObjectInfo.lengthLimit {
      // Its index alone could fill the memory.
      let error = S3Error.tooLong(bytes: info.bytes, limit: S3ObjectInfo.lengthLimit)
      throw .objectStore(detail: "\(key): \(error)")
    }
    let version = CachedVersion(
      bytes: info.bytes, entityTag: info.entityTag, sha256: expected?.sha256 ?? info.sha256)
    let part = folder.partPath(of: key)
    return try makingRoom(for: .bytes(BlockIndex.length(for: version))) { () throws(StorageError) in
      try BlockFile(path: part, flags: O_RDWR | O_CREAT | O_TRUNC).resize(to: version.bytes)
      return try CachedObject(
        key, path: path(of: key), partPath: part, index: BlockIndex(creating: folder.indexPath(of: key), version))
    }
  }
}
