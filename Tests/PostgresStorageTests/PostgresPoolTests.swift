import Foundation
import PostgresServer
import Storage
import Synchronization
import Terms
import Testing

@testable import PostgresStorage

@Suite(.needsPostgres) struct PostgresPoolTests {
  @Test("waiting callers get a connection in the order in which they came")
  func order() async throws {
    var settings = try TestDatabase.shared.settings()
    settings.connectionCount = 1
    let hand = ManualClock()
    settings.clock = hand.clock
    let pool = PostgresPool(settings)
    let connection = try pool.take()
    let served = Mutex<[Int]>([])
    let group = DispatchGroup()
    for index in 0..<6 {
      group.enter()
      Thread.detachNewThread {
        if let mine = try? pool.take() {
          served.withLock { $0.append(index) }
          pool.give(mine)
        }
        group.leave()
      }
      await hand.waiting(index + 1)
    }
    // Somebody who comes later doesn't overtake them.
    #expect(pool.load == PostgresPool.Load(connections: 1, idle: 0, waiting: 6))
    pool.give(connection)
    await withCheckedContinuation { continuation in group.notify(queue: .global()) { continuation.resume() } }
    #expect(served.withLock { $0 } == Array(0..<6))
    #expect(pool.load == PostgresPool.Load(connections: 1, idle: 1, waiting: 0))
  }

  @Test("a pool makes no more connections than it may, and a caller waits only so long")
  func bounded() async throws {
    var settings = try TestDatabase.shared.settings()
    settings.connectionCount = 2
    settings.connectionWaitSeconds = 0.05
    settings.waitingCallers = 1
    let pool = PostgresPool(settings)
    let taken = try [pool.take(), pool.take()]
    #expect(throws: PostgresError.noFreeConnection(waitedSeconds: 0.05)) { try pool.take() }
    #expect(pool.load.waiting == 0)
    taken.forEach(pool.give)
    #expect(pool.load == PostgresPool.Load(connections: 2, idle: 2, waiting: 0))
    let held = try [pool.take(), pool.take()]
    #expect(pool.load.connections == 2)
    held.forEach(pool.give)
  }

  @Test("more callers wait than may")
  func full() throws {
    var settings = try TestDatabase.shared.settings()
    settings.connectionCount = 1
    settings.waitingCallers = 0
    let pool = PostgresPool(settings)
    let taken = try pool.take()
    #expect(throws: PostgresError.noFreeConnection(waitedSeconds: 0)) { try pool.take() }
    pool.give(taken)
  }

  @Test("an idle connection that has died is replaced")
  func replaced() throws {
    let database = try TestDatabase.shared
    let pool = PostgresPool(try database.settings())
    let backends = try (0..<3).map { _ in try pool.take() }
    let first = backends.map(\.backend)
    backends.forEach(pool.give)
    for backend in first { try database.run("SELECT pg_terminate_backend(\(backend), 5000)") }
    let now = try pool.read { try $0.rows("SELECT pg_backend_pid() AS pid", bound: []).first?["pid"] }
    #expect(now != nil && !first.contains { now == .integer(Int64($0)) })
  }

  @Test("callers who wait get the place of a connection that breaks")
  func placePassesOn() async throws {
    let database = try TestDatabase.shared
    var settings = try database.settings()
    settings.connectionCount = 1
    let pool = PostgresPool(settings)
    let connection = try pool.take()
    let waiting = Task { try await blocking { try pool.read { try $0.rows("SELECT 1 AS one", bound: []).count } } }
    while pool.load.waiting == 0 { await Task.yield() }
    connection.giveUp()
    pool.give(connection)
    #expect(try await waiting.value == 1)
  }

  @Test("a server that can't be reached is reported with its reason, and found when it's there")
  func unreachable() throws {
    let database = try TestDatabase.shared
    let folder = "/tmp/stillwave-late-\(UInt32.random(in: 0...UInt32.max))"
    var settings = try database.settings(folder: folder)
    settings.connectionWaitSeconds = 0.2
    let pool = PostgresPool(settings)
    let error = #expect(throws: PostgresError.self) { try pool.take() }
    guard case .cannotConnect(let reason) = error else { Issue.record("\(String(describing: error))"); return }
    #expect(reason.contains(folder))
    #expect(pool.load.connections == 0)
    try FileManager.default.createSymbolicLink(atPath: folder, withDestinationPath: database.server.folder)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    var connection: PostgresConnection?
    for _ in 0..<100 where connection == nil { connection = try? pool.take() }
    pool.give(try #require(connection))
  }

  @Test("a closed pool refuses callers, also those in line")
  func closed() async throws {
    var settings = try TestDatabase.shared.settings()
    settings.connectionCount = 1
    let pool = PostgresPool(settings)
    let connection = try pool.take()
    let waiting = Task { try await blocking { _ = try pool.take() } }
    while pool.load.waiting == 0 { await Task.yield() }
    pool.close()
    await #expect(throws: PostgresError.closed) { try await waiting.value }
    pool.give(connection)
    #expect(pool.load == PostgresPool.Load(connections: 0, idle: 0, waiting: 0))
    #expect(throws: PostgresError.closed) { try pool.take() }
  }
}
