import Dispatch
import Jobs
import Storage

/// Runs what is done with one upload, one piece of work at a time, in the order in which it was asked for.
///
/// Work that may wait for a store on another machine holds a place of the store's queue meanwhile, as a transfer of the
/// upload's client. What comes after it waits without a thread, so a silent store takes no threads from anything else.
final class UploadTurns: Sendable {
  private enum Turn<R: Sendable>: Sendable {
    case ended(R)
    /// The queue is suspended until the work has ended.
    case transfers(for: Client)
  }

  private let queue = DispatchQueue(label: "upload")
  private let storeWork: StoreQueue

  init(_ storeWork: StoreQueue) { self.storeWork = storeWork }

  /// Runs work that doesn't wait for the store.
  func run<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    try await withCheckedThrowingContinuation { continuation in
      queue.async(execute: AuditTrail.carrying { continuation.resume(with: Result { try body() }) })
    }
  }

  /// Runs work that transfers bytes from or to the store if `client`, which is called when it is its turn,
  /// returns for whom. Throws `.storeUnreachable` without running it if too much waits for the store.
  func run<R: Sendable>(
    transferringFor client: @escaping @Sendable () throws -> Client?, _ body: @escaping @Sendable () throws -> R
  ) async throws -> R {
    let turn = try await run { [self] () -> Turn<R> in
      // The disk answers soon, and another thread would only cost time.
      guard storeWork.isForOtherMachine, let client = try client() else { return .ended(try body()) }
      queue.suspend()
      return .transfers(for: client)
    }
    switch turn {
    case .ended(let result): return result
    case .transfers(let client):
      defer { queue.resume() }
      return try await storeWork.run(as: .transfer(client), body)
    }
  }
}
