import HTTP
import Synchronization
import Testing

@testable import AudioService
@testable import Storage

/// Uploads whose row may yet be committed, although the service doesn't know: a standby may answer late.
@Suite struct UncertainCommitTests {
  /// While `waits`, says of each transaction that its outcome is unknown.
  private final class WaitingEngine: SQLEngine {
    private let engine: any SQLEngine
    let waits = Atomic(false)

    init(_ engine: any SQLEngine) { self.engine = engine }

    var dialect: SQLDialect { engine.dialect }

    func read<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value { try engine.read(body) }

    func readLatest<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value {
      try engine.readLatest(body)
    }

    func write<Value: Sendable>(
      _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
    ) throws(StorageError) -> Value {
      guard !waits.load(ordering: .relaxed) else { throw .outcomeUnknown }
      return try engine.write(isolation, body)
    }

    func checkUsable() throws(StorageError) { try engine.checkUsable() }
    func eraseTraces(pagesAtOnce: Int) throws(StorageError) { try engine.eraseTraces(pagesAtOnce: pagesAtOnce) }
    func checkpoint() throws(StorageError) { try engine.checkpoint() }
    func close() throws(StorageError) { try engine.close() }
  }

  @Test("if it is unknown whether a recording's row was committed, its sound is kept")
  func soundIsKept() async throws {
    let made = Mutex<WaitingEngine?>(nil)
    let bench = try TestBench(engine: { engine in
      let waiting = WaitingEngine(engine)
      made.withLock { $0 = waiting }
      return waiting
    })
    let engine = try #require(made.withLock { $0 })
    engine.waits.store(true, ordering: .relaxed)
    let response = try await bench.respond(.post, "/v1/recordings", body: "RIFF")
    #expect(response.status == .internalServerError)
    await bench.runner.stop()
    let kept = try bench.store.recordingFolders()
    #expect(kept.count == 1)
    for id in kept { #expect(try bench.store.fileNames(of: id).contains("audio.wav")) }
  }
}
