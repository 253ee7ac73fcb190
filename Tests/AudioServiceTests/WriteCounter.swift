import PresentRows

@testable import Storage

/// An engine that says when a writing call begins, those too that change nothing that readers see.
final class WriteCounter: PassingEngine {
  let engine: any SQLEngine
  private let count: @Sendable () -> Void

  init(_ engine: any SQLEngine, count: @escaping @Sendable () -> Void) { (self.engine, self.count) = (engine, count) }

  func write<Value: Sendable>(
    _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
  ) throws(StorageError) -> Value {
    count()
    return try engine.write(isolation, body)
  }
}
