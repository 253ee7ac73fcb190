import Synchronization

/// Holds the first error from several threads.
package final class FirstFailure: Sendable {
  private let first = Mutex<StorageError?>(nil)

  /// Creates a place without an error.
  package init() {}

  /// The first error, or nil.
  package var error: StorageError? { first.withLock { $0 } }

  /// Keeps an error if it is the first.
  package func note(_ error: StorageError) { first.withLock { if $0 == nil { $0 = error } } }
}
