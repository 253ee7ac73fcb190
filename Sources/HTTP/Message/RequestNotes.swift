import Synchronization

/// What responders note about a request for its log line and for statistics. All copies of a request share it.
package final class RequestNotes: Sendable {
  /// The notes.
  package struct Content: Sendable {
    /// The pattern of the route that served the request; empty if none did.
    package var route = ""
    /// Whose request it was; empty if unknown.
    package var tenant = ""
    /// The name of the key that it came with; empty if none.
    package var key = ""
  }

  private let state = Mutex(Content())

  init() {}

  /// The notes so far.
  package var content: Content { state.withLock { $0 } }

  /// Changes the notes.
  package func note(_ change: (inout Content) -> Void) { state.withLock { change(&$0) } }
}
