import Foundation
import PostgresServer
import Storage
import Synchronization
import Terms
import Testing

@testable import PostgresStorage

@Suite(.needsPostgres) struct PostgresListenerTests {
  /// Events that a listener has reported.
  private final class Log: Sendable {
    private let continuation: AsyncStream<PostgresListenerEvent>.Continuation
    private let stream: AsyncStream<PostgresListenerEvent>

    init() { (stream, continuation) = AsyncStream.makeStream() }

    func append(_ event: PostgresListenerEvent) { continuation.yield(event) }

    /// Returns the events after the first one, which says that the listener listens.
    func listening() async -> AsyncStream<PostgresListenerEvent>.Iterator {
      var events = stream.makeAsyncIterator()
      #expect(await events.next() == .listening)
      return events
    }
  }

  @Test("payloads arrive in order; after a lost connection, the listener says that some may have been missed")
  func reconnects() async throws {
    let database = try TestDatabase()
    let log = Log()
    let listener = PostgresListener(try database.settings(), channel: "stillwave", handler: log.append)
    var events = await log.listening()
    for payload in ["one", "two", "déjà"] { try database.run("NOTIFY stillwave, '\(payload)'") }
    for payload in ["one", "two", "déjà"] { #expect(await events.next() == .notification(payload)) }
    // Only after the announcement has been handled, which the first payload follows.
    #expect(listener.secondsSinceHeard != nil)
    for round in 0..<2 {
      try database.run(
        """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
        """)
      guard case .interrupted = await events.next() else { Issue.record("no interruption"); return }
      #expect(await events.next() == .listening)
      try database.run("NOTIFY stillwave, 'again \(round)'")
      #expect(await events.next() == .notification("again \(round)"))
    }
    listener.stop()
    #expect(listener.secondsSinceHeard == nil)
  }

  @Test("a rolled back transaction notifies nobody")
  func rolledBack() async throws {
    let database = try TestDatabase()
    let log = Log()
    let listener = PostgresListener(try database.settings(), channel: "stillwave", handler: log.append)
    defer { listener.stop() }
    var events = await log.listening()
    try database.run("BEGIN; NOTIFY stillwave, 'never'; ROLLBACK; NOTIFY stillwave, 'yes'")
    #expect(await events.next() == .notification("yes"))
  }

  @Test("a server that has stopped without a sign is noticed")
  func silence() async throws {
    let database = try TestDatabase()
    let log = Log()
    let hand = ManualClock()
    var settings = try database.settings()
    settings.clock = hand.clock
    let listener = PostgresListener(settings, channel: "stillwave", handler: log.append)
    defer { listener.stop() }
    var events = await log.listening()
    let pid = try database.run(
      "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
    kill(try #require(Int32(pid)), SIGSTOP)
    hand.advance(by: 4.5)
    #expect(listener.secondsSinceHeard ?? 0 >= 4.5)
    hand.advance(by: 1)
    guard case .interrupted(let reason) = await events.next() else { Issue.record("no interruption"); return }
    kill(try #require(Int32(pid)), SIGCONT)
    #expect(reason.contains("has not responded for "))
    await hand.run(for: 1)
    #expect(await events.next() == .listening)
  }
}
