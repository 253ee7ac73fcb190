import Synchronization

/// How an operation ended, set and awaited once. Only the first result set counts.
final class UploadOutcome: Sendable {
  private enum State {
    case open
    case awaited(CheckedContinuation<Void, any Error>)
    case told(Result<Void, any Error>)
  }

  private let state = Mutex(State.open)

  func tell(_ result: Result<Void, any Error>) {
    let waiter = state.withLock { state -> CheckedContinuation<Void, any Error>? in
      switch state {
      case .told: return nil
      case .open:
        state = .told(result)
        return nil
      case .awaited(let waiter):
        state = .told(result)
        return waiter
      }
    }
    waiter?.resume(with: result)
  }

  func value() async throws {
    try await withCheckedThrowingContinuation { continuation in
      let told = state.withLock { state -> Result<Void, any Error>? in
        if case .told(let result) = state { return result }
        state = .awaited(continuation)
        return nil
      }
      if let told { continuation.resume(with: told) }
    }
  }
}
