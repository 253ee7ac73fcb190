import PresentRows
import Synchronization

@testable import Storage

/// An engine that counts reading calls, writing calls and how often the bodies of the latter run.
final class CountedEngine: PassingEngine {
  let engine: any SQLEngine
  private let callCount = Atomic(0)
  private let runCount = Atomic(0)
  private let readCount = Atomic(0)

  init(_ engine: any SQLEngine) { self.engine = engine }

  var reads: Int { readCount.load(ordering: .relaxed) }
  var calls: Int { callCount.load(ordering: .relaxed) }
  /// Runs beyond the first of each call.
  var retries: Int { runCount.load(ordering: .relaxed) - calls }

  func read<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value {
    readCount.wrappingAdd(1, ordering: .relaxed)
    return try engine.read(body)
  }

  func write<Value: Sendable>(
    _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
  ) throws(StorageError) -> Value {
    callCount.wrappingAdd(1, ordering: .relaxed)
    return try engine.write(isolation) { session in
      runCount.wrappingAdd(1, ordering: .relaxed)
      return try body(session)
    }
  }
}
