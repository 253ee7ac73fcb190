import Dispatch
import Synchronization

/// Makes the names in one folder durable for many callers: one fsync serves all who asked before it began.
final class GroupedSync: Sendable {
  private let path: String
  private let queue = DispatchQueue(label: "folder sync")
  private let asked = Atomic<UInt64>(0)
  private let served = Mutex<(last: UInt64, failed: UInt64, error: StorageError?)>((0, 0, nil))
  private let onCall: @Sendable () -> Void
  private let sync: @Sendable (String) throws(StorageError) -> Void

  /// Tests replace `sync`, and count calls in `onCall`.
  init(
    path: String, onCall: @escaping @Sendable () -> Void = {},
    sync: @escaping @Sendable (String) throws(StorageError) -> Void = { path throws(StorageError) in
      try FileSystem.syncFolder(path)
    }
  ) {
    (self.path, self.onCall, self.sync) = (path, onCall, sync)
  }

  /// Returns once a sync that began after this call has succeeded. Blocks. Throws if the sync that was to serve this
  /// call failed, because a second one would succeed without having written anything.
  func run() throws(StorageError) {
    let ticket = asked.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
    onCall()
    let outcome: Result<Void, StorageError> = queue.sync {
      let served = served.withLock { $0 }
      if ticket <= served.failed, let error = served.error { return .failure(error) }
      if ticket <= served.last { return .success(()) }
      let last = asked.load(ordering: .sequentiallyConsistent)
      do throws(StorageError) { try sync(path) } catch {
        self.served.withLock { $0 = (last, last, error) }
        return .failure(error)
      }
      self.served.withLock { $0.last = last }
      return .success(())
    }
    try outcome.get()
  }
}
