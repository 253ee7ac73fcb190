import Synchronization

/// What responders remember from one request of a connection to its next: one object of their own. A proxy may send the
/// requests of many clients over one connection, so nothing in it may be taken for the next request's unasked.
package final class ConnectionMemory: Sendable {
  private let kept = Mutex<(any AnyObject & Sendable)?>(nil)

  init() {}

  /// The object; nil if none of this type is kept.
  package func recall<Value: AnyObject & Sendable>(_ type: Value.Type) -> Value? { kept.withLock { $0 } as? Value }

  /// Keeps an object instead of the earlier one.
  package func keep(_ value: some AnyObject & Sendable) { kept.withLock { $0 = value } }
}
