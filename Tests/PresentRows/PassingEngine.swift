import Storage

/// An engine around another one, which gets every call that this one doesn't implement itself.
package protocol PassingEngine: SQLEngine {
  /// The other one.
  var engine: any SQLEngine { get }
}

extension PassingEngine {
  package var dialect: SQLDialect { engine.dialect }

  package func read<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value {
    try engine.read(body)
  }

  package func checkUsable() throws(StorageError) { try engine.checkUsable() }
  package func eraseTraces(pagesAtOnce: Int) throws(StorageError) { try engine.eraseTraces(pagesAtOnce: pagesAtOnce) }
  package func checkpoint() throws(StorageError) { try engine.checkpoint() }
  package func close() throws(StorageError) { try engine.close() }
}
