import Foundation
import PostgresServer
import Randomness
import Storage
import Synchronization
import Testing

@testable import PostgresStorage

@Suite(.needsPostgres) struct TransactionTests {
  private let database: TestDatabase
  private let pool: PostgresPool

  init() throws {
    database = try TestDatabase()
    pool = PostgresPool(try database.settings())
    try database.run(
      "CREATE TABLE counters (id bigint PRIMARY KEY, value bigint NOT NULL); INSERT INTO counters VALUES (1, 0)")
  }

  private func add(_ session: PostgresSession) throws {
    guard
      case .integer(let value) = try session.rows("SELECT value FROM counters WHERE id = 1", bound: []).first?["value"]
    else { return }
    _ = try session.run("UPDATE counters SET value = ? WHERE id = 1", bound: [.integer(value + 1)])
  }

  private var value: String { get throws { try database.run("SELECT value FROM counters") } }

  @Test("the number of runs is bounded")
  func bounded() throws {
    var settings = try database.settings()
    settings.attempts = 3
    let few = PostgresPool(settings)
    var runs = 0
    let error = #expect(throws: PostgresError.self) {
      try few.write(.serializable) { session in
        runs += 1
        try add(session)
        // Another transaction, of which this one can't be before or after.
        _ = try session.rows("SELECT 1 AS one", bound: [])
        try pool.write(.statementLocks) { other in
          _ = try other.run("INSERT INTO counters VALUES (?, 0)", bound: [.integer(Int64(100 + runs))])
        }
        throw PostgresError.statement(PostgresFailure(sqlState: "40001", message: ""))
      }
    }
    #expect(error?.sqlState == "40001")
    #expect(runs == 3)
  }

  @Test("deadlocks are resolved by running again")
  func deadlocks() async throws {
    try database.run("INSERT INTO counters VALUES (2, 0)")
    let failures = Atomic(0)
    let (first, second) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    await concurrently(2) { index in
      let met = Atomic(false)
      do {
        try pool.write(.statementLocks) { session in
          let update = "UPDATE counters SET value = value + 1 WHERE id = ?"
          _ = try session.run(update, bound: [.integer(index == 0 ? 1 : 2)])
          if !met.exchange(true, ordering: .relaxed) {
            (index == 0 ? first : second).signal()
            (index == 0 ? second : first).wait()
          }
          _ = try session.run(update, bound: [.integer(index == 0 ? 2 : 1)])
        }
      } catch { failures.add(1, ordering: .relaxed) }
    }
    #expect(failures.load(ordering: .relaxed) == 0)
    #expect(try database.run("SELECT sum(value) FROM counters") == "4")
  }

  @Test("an error that a body catches fails its transaction nevertheless")
  func caught() throws {
    let error = #expect(throws: PostgresError.self) {
      try pool.write(.serializable) { session in
        try add(session)
        _ = try? session.run("INSERT INTO counters VALUES (1, 1)", bound: [])
      }
    }
    #expect(error?.sqlState == "23505")
    #expect(try value == "0")
    #expect(pool.load.idle == pool.load.connections)
  }

  @Test("a large result is read in parts, and as far as wanted")
  func eachRow() throws {
    for (limit, expected) in [(1000, 1000), (200, 200), (3, 3), (0, 0)] {
      var seen: [Int] = []
      try pool.read { session in
        try session.eachRow("SELECT x FROM generate_series(1, ?) AS s (x)", [limit]) { row in
          if case .integer(let x)? = row["x"] { seen.append(Int(x)) }
          return true
        }
        try session.eachRow("SELECT x FROM generate_series(1, 1000000) AS s (x)") { _ in false }
      }
      #expect(seen == Array(0..<expected).map { $0 + 1 })
    }
  }

  @Test("a session that ends before COMMIT costs another run")
  func killedBefore() throws {
    var runs = 0
    try pool.write(.serializable) { session in
      runs += 1
      try add(session)
      if runs == 1 {
        guard case .integer(let pid)? = try session.rows("SELECT pg_backend_pid() AS pid", bound: []).first?["pid"]
        else { return }
        try database.run("SELECT pg_terminate_backend(\(pid), 5000)")
        try add(session)
      }
    }
    #expect(runs == 2)
    #expect(try value == "1")
  }

  /// Returns the number of a session's process.
  private func backend(_ session: PostgresSession) throws -> Int64 {
    guard case .integer(let pid)? = try session.rows("SELECT pg_backend_pid() AS pid", bound: []).first?["pid"] else {
      throw PostgresError.closed
    }
    return pid
  }

  /// Does nothing until the server has ended a session.
  private func idle(_ backend: Int64) throws {
    try database.wait(for: "SELECT count(*) FROM pg_stat_activity WHERE pid = \(backend)") { $0 == "0" }
  }

  @Test(
    "a transaction that is left idle is ended by the server, and runs again on another connection",
    arguments: ["before a statement", "before COMMIT"])
  func leftIdle(place: String) throws {
    var settings = try database.settings()
    settings.idleInTransactionTimeoutSeconds = 0.3
    settings.connectionCount = 1
    try migrateNothing()
    let hasty = PostgresPool(settings)
    var backends: [Int64] = []
    try hasty.write(.statementLocks) { session in
      try add(session)
      backends.append(try backend(session))
      guard backends.count == 1 else { return }
      try idle(backends[0])
      // Its locks are free.
      try database.run("UPDATE counters SET value = value + 10 WHERE id = 1")
      if place == "before a statement" { try add(session) }
    }
    #expect(backends.count > 1 && Set(backends).count == backends.count)
    #expect(try value == "11")
    #expect(hasty.load == PostgresPool.Load(connections: 1, idle: 1, waiting: 0))
  }

  @Test("a reading transaction that is left idle fails, and the pool goes on with another connection")
  func readingLeftIdle() throws {
    var settings = try database.settings()
    settings.idleInTransactionTimeoutSeconds = 0.3
    settings.connectionCount = 1
    let hasty = PostgresPool(settings)
    var first: Int64 = 0
    let error = #expect(throws: PostgresError.self) {
      try hasty.read { session in
        first = try backend(session)
        try idle(first)
        _ = try backend(session)
      }
    }
    guard case .connectionLost(let state, let reason) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(state == "25P03" && reason.contains("idle-in-transaction timeout"))
    #expect(try hasty.read(backend) != first)
    #expect(hasty.load == PostgresPool.Load(connections: 1, idle: 1, waiting: 0))
  }

  @Test(
    "a statement that takes too long fails its transaction, which changes nothing, and the connection is used again")
  func slowStatement() throws {
    var settings = try database.settings()
    settings.statementTimeoutSeconds = 1
    settings.connectionCount = 1
    let hasty = PostgresPool(settings)
    var backends: [Int64] = []
    #expect(throws: StorageError.busy) {
      try hasty.write(.serializable) { session in
        backends.append(try backend(session))
        try add(session)
        _ = try session.run("SELECT pg_sleep(60)", bound: [])
      }
    }
    #expect(try value == "0")
    #expect(try hasty.read(backend) == backends[0])
    #expect(backends.count == 1, "it would take as long again")
  }

  @Test("COMMIT without a response: the outcome is looked up", arguments: 0..<4)
  func lostResponse(number: Int) throws {
    let proxy = try CuttingProxy(to: database.server.folder)
    defer { proxy.stop() }
    try migrateNothing()
    let cut = PostgresPool(try database.settings(folder: proxy.folder))
    let backend = Atomic<Int64>(0)
    let (name, how, expectedRuns): (String, CuttingProxy.Cut, Int) =
      [
        ("before the request", .beforeRequest, 2),
        ("before the request, unnoticed by the server", .beforeRequestUnnoticed, 2),
        ("before the response", .beforeResponse, 1),
        (
          "after the session was ended",
          .after { _ = try? database.run("SELECT pg_terminate_backend(\(backend.load(ordering: .relaxed)), 5000)") }, 2
        ),
      ][number]
    var runs = 0
    proxy.cutNext(how)
    let result = try cut.write(.serializable) { session in
      runs += 1
      let pid = try session.rows("SELECT pg_backend_pid() AS pid", bound: []).first?["pid"]
      if case .integer(let pid)? = pid { backend.store(pid, ordering: .relaxed) }
      try add(session)
      return runs
    }
    #expect(runs == expectedRuns, "\(name)")
    #expect(result == runs)
    #expect(try value == "1", "\(name)")
    // The pool has replaced the connection.
    try cut.write(.serializable, add)
    #expect(try value == "2", "\(name)")
  }

  @Test("with sessions ended and connections cut at random, each acknowledged write is there once, and no other is")
  func random() async throws {
    let proxy = try CuttingProxy(to: database.server.folder)
    defer { proxy.stop() }
    try migrateNothing()
    try database.run("CREATE TABLE kept (id bigint NOT NULL)")
    var settings = try database.settings(folder: proxy.folder)
    settings.connectionCount = 4
    let shaken = PostgresPool(settings)
    let ended = DispatchSemaphore(value: 0)
    let acknowledged = Mutex<[Int]>([])
    let unknown = Mutex<[Int]>([])
    let runs = Atomic(0)
    let random = Mutex(TestRandom(for: 77))
    proxy.cutOften {
      let cuts: [CuttingProxy.Cut?] =
        [.beforeRequest, .beforeRequestUnnoticed, .beforeResponse] + Array(repeating: nil, count: 7)
      return random.withLock { cuts[Int.random(in: 0..<cuts.count, using: &$0)] }
    }
    let killer = try PostgresConnection(database.settings())
    let killing = Task {
      try await blocking {
        for number in 1...200 {
          ended.wait()
          guard number % 8 == 0 else { continue }
          _ = try killer.run(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1
            """, [])
        }
      }
    }
    await concurrently(8) { thread in
      for number in 0..<25 {
        let id = thread * 100 + number
        do {
          try shaken.write(number % 2 == 0 ? .serializable : .statementLocks) { session in
            runs.add(1, ordering: .relaxed)
            _ = try session.run("INSERT INTO kept VALUES (?)", bound: [.integer(Int64(id))])
          }
          acknowledged.withLock { $0.append(id) }
        } catch {
          if case PostgresError.outcomeUnknown = error { unknown.withLock { $0.append(id) } }
        }
        ended.signal()
      }
    }
    try await killing.value
    let found = try database.run("SELECT id FROM kept ORDER BY id").split(separator: "\n").compactMap { Int($0) }
    #expect(Set(found).count == found.count, "written twice")
    #expect(Set(acknowledged.withLock { $0 }).subtracting(found) == [], "lost")
    #expect(
      Set(found).subtracting(acknowledged.withLock { $0 } + unknown.withLock { $0 }) == [], "refused, but written")
    #expect(runs.load(ordering: .relaxed) > acknowledged.withLock { $0.count })
    print(
      "random cuts: \(acknowledged.withLock { $0.count }) of 200 acknowledged, \(runs.load(ordering: .relaxed)) runs")
  }

  @Test("an unflushed commit waits for neither the disk nor a standby, and the next one does again")
  func unflushed() throws {
    func setting(_ mode: TransactionMode) throws -> String? {
      try pool.write(mode) { try $0.first("SELECT current_setting('synchronous_commit')", as: String.self) }
    }
    #expect(try [TransactionMode.statementLocks, .unflushed, .statementLocks].map(setting) == ["on", "off", "on"])
  }

  @Test("an outcome that can't be looked up is an error of its own")
  func unknown() throws {
    let proxy = try CuttingProxy(to: database.server.folder)
    try migrateNothing()
    var settings = try database.settings(folder: proxy.folder)
    settings.outcomeWaitSeconds = 0.3
    let cut = PostgresPool(settings)
    proxy.cutNext(.after { [weak proxy] in proxy?.stop() })
    let error = #expect(throws: PostgresError.self) { try cut.write(.serializable, add) }
    guard case .outcomeUnknown(_, .deadline) = error else { Issue.record("\(String(describing: error))"); return }
  }

  @Test("after a crash of the server, a transaction's ID may be another one's, so the outcome is unknown")
  func crash() throws {
    let server = try #require(try TestServer.separate())
    let proxy = try CuttingProxy(to: server.folder)
    defer { proxy.stop() }
    try server.run(
      "CREATE TABLE counters (id bigint PRIMARY KEY, value bigint NOT NULL); INSERT INTO counters VALUES (1, 0)")
    let settings = PostgresSettings(
      address: try PostgresAddress(server.url(database: "postgres", folder: proxy.folder)))
    try PostgresMigrator([PostgresMigration(1, "nothing", script: "")]).migrate(settings)
    let cut = PostgresPool(settings)
    let backend = Atomic<Int32>(0)
    proxy.cutNext(
      .after {
        // Other transactions, so that the server doesn't give out the lost one's ID again.
        for id in 2..<6 { _ = try? server.run("INSERT INTO counters VALUES (\(id), 0)") }
        kill(backend.load(ordering: .relaxed), SIGKILL)
      })
    let error = #expect(throws: PostgresError.self) {
      try cut.write(.serializable) { session in
        let pid = try session.rows("SELECT pg_backend_pid() AS pid", bound: []).first?["pid"]
        if case .integer(let pid)? = pid { backend.store(Int32(pid), ordering: .relaxed) }
        try add(session)
      }
    }
    guard case .outcomeUnknown(_, .serverRecovered) = error else {
      Issue.record("\(String(describing: error))"); return
    }
    // The pool goes on.
    try cut.write(.serializable, add)
    #expect(try server.run("SELECT value FROM counters WHERE id = 1") == "1")
  }

  private func migrateNothing() throws {
    try PostgresMigrator([PostgresMigration(1, "nothing", script: "")]).migrate(database.settings())
  }
}
