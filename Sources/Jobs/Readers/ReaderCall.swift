import Synchronization

/// A request for a reader that its client may give up.
package final class ReaderCall: Sendable {
  private struct State {
    var reader: SampleReader?
    var isUnwanted = false
  }

  private let state = Mutex(State())

  /// Creates a request that is wanted.
  package init() {}

  /// Ends the reader that works for the request, now or when it begins.
  package func cancel() {
    let reader = state.withLock { state in
      state.isUnwanted = true
      return state.reader
    }
    reader?.end()
  }

  /// Returns what `body` makes of a reader, which `cancel` ends meanwhile.
  func run<R>(
    _ reader: SampleReader, _ body: (SampleReader) throws(ReaderFailure) -> R
  ) throws(ReaderFailure) -> R {
    let isUnwanted = state.withLock { state in
      state.reader = reader
      return state.isUnwanted
    }
    defer { state.withLock { $0.reader = nil } }
    guard !isUnwanted else { throw .died("nobody waits for it any more") }
    return try body(reader)
  }
}
