import PostgresServer
import Storage
import Testing

@testable import PostgresStorage

@Suite(.needsPostgres) struct PostgresBusTests {
  @Test("what a transaction sends arrives when it commits, and never if it doesn't")
  func commits() async throws {
    let database = try TestDatabase()
    let engine = PostgresEngine(try database.settings())
    let bus = PostgresBus(engine, try database.settings())
    #expect(bus.secondsSinceHeard == nil)
    let (events, continuation) = AsyncStream<BusEvent>.makeStream()
    bus.listen { continuation.yield($0) }
    defer { bus.stopListening() }
    var next = events.makeAsyncIterator()
    #expect(await next.next() == .connected)
    #expect(throws: StorageError.changedMeanwhile) {
      try engine.write { session in
        try bus.send("never", in: session)
        throw StorageError.changedMeanwhile
      }
    }
    try engine.write { session in
      try bus.send("one", in: session)
      try bus.send("two", in: session)
    }
    try bus.send("now")
    for message in ["one", "two", "now"] { #expect(await next.next() == .message(message)) }
    #expect(bus.secondsSinceHeard.map { $0 < 5 } == true)
    let longest = String(repeating: "é", count: bus.byteLimit / 2)
    try bus.send(longest)
    #expect(await next.next() == .message(longest))
  }
}
