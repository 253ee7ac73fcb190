import Synchronization

/// Keeps the first of the errors that were met on several threads.
final class FirstFailure: Sendable {
  private let first = Mutex<StorageError?>(nil)

  /// The first error, nil while there is none.
  var error: StorageError? { first.withLock { $0 } }

  func note(_ error: StorageError) { first.withLock { if $0 == nil { $0 = error } } }
}
