@testable import Storage

/// An engine that says when a writing call begins, those too that change nothing that readers see.
final class WriteCounter: SQLEngine {
  private let engine: any SQLEngine
  private let count: @Sendable () -> Void

  init(_ engine: any SQLEngine, count: @escaping @Sendable () -> Void) { (self.engine, self.count) = (engine, count) }

  var dialect: SQLDialect { engine.dialect }

  func write<Value: Sendable>(
    _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
  ) throws(StorageError) -> Value {
    count()
    return try engine.write(isolation, body)
  }

  func read<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value { try engine.read(body) }

  func readLatest<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value {
    try engine.readLatest(body)
  }

  func checkUsable() throws(StorageError) { try engine.checkUsable() }
  func eraseTraces(pagesAtOnce: Int) throws(StorageError) { try engine.eraseTraces(pagesAtOnce: pagesAtOnce) }
  func checkpoint() throws(StorageError) { try engine.checkpoint() }
  func close() throws(StorageError) { try engine.close() }
}
