import Synchronization

/// Holds the first error from several threads.
final class FirstFailure: Sendable {
  private let first = Mutex<StorageError?>(nil)

  /// The first error, or nil.
  var error: StorageError? { first.withLock { $0 } }

  func note(_ error: StorageError) { first.withLock { if $0 == nil { $0 = error } } }
}
