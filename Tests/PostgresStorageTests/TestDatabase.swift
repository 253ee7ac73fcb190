import Dispatch
import Foundation
import PostgresServer
import Storage
import Testing

@testable import PostgresStorage

/// Tests with a server are skipped without PostgreSQL.
extension Trait where Self == ConditionTrait {
  static var needsPostgres: Self {
    .enabled(if: TestServer.isInstalled, "PostgreSQL isn't installed: deploy/install postgres")
  }
}

/// An empty database of the tests' server.
struct TestDatabase: Sendable {
  let server: TestServer
  let name: String

  init() throws {
    server = try #require(TestServer.shared)
    name = try server.newDatabase()
  }

  private static let common = Result { try TestDatabase() }

  /// A database that tests share which leave nothing in it.
  static var shared: TestDatabase { get throws { try common.get() } }

  /// Settings with short waits. `folder` is a proxy's.
  func settings(folder: String? = nil) throws -> PostgresSettings {
    var settings = PostgresSettings(address: try PostgresAddress(server.url(database: name, folder: folder)))
    settings.connectionWaitSeconds = 20
    return settings
  }

  @discardableResult
  func run(_ sql: String) throws -> String { try server.run(sql, database: name) }

  /// Asks until a query's result is as `condition` says.
  func wait(for sql: String, until condition: (String) -> Bool) throws {
    let deadline = ContinuousClock.now + .seconds(120)
    while try !condition(run(sql)) {
      try #require(ContinuousClock.now < deadline, "what was waited for never came: \(sql)")
    }
  }
}

/// Runs `body` on threads of its own, at the same time, and returns when all have ended.
func concurrently(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) async {
  let group = DispatchGroup()
  for index in 0..<count {
    group.enter()
    Thread.detachNewThread {
      body(index)
      group.leave()
    }
  }
  await withCheckedContinuation { continuation in group.notify(queue: .global()) { continuation.resume() } }
}

/// Runs blocking work outside of the threads that Swift's tasks share.
func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
  try await withCheckedThrowingContinuation { continuation in
    Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
  }
}
