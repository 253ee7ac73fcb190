import Dispatch
import Foundation
import Synchronization

@testable import Storage

/// Eight threads that share a catalog: on PostgreSQL each is a node, with an engine of its own. PostgreSQL runs their
/// transactions side by side, which shows what SQLite's single writer hides.
struct RacingNodes: Sendable {
  static let count = 8
  private let folder: TemporaryFolder
  private let engines: [CountedEngine]
  let catalogs: [Catalog]

  init() throws {
    let folder = try TemporaryFolder()
    self.folder = folder
    // A catalog in SQLite has one process, whose threads share one writing connection. Eight processes would only keep
    // each other waiting for the file's lock, which SQLite gives in no order.
    let first = try Self.engine(folder)
    let others = first.dialect == .sqlite ? [] : try (1..<Self.count).map { _ in try Self.engine(folder) }
    let engines = ([first] + others).map { CountedEngine($0) }
    self.engines = engines
    catalogs = (0..<Self.count).map { number in
      Catalog(
        engine: engines[number % engines.count], holder: LeaseHolder(name: "node", terms: LeaseHolder.Terms()))
    }
  }

  /// One of the nodes, for what comes before and after a race.
  var catalog: Catalog { catalogs[0] }

  /// Opens the catalog as a node whose leases have ended a minute ago, as if it were gone.
  func deadNode() throws -> Catalog {
    Catalog(engine: try Self.engine(folder), holder: LeaseHolder(name: "dead", terms: .init(seconds: -60)))
  }

  private static func engine(_ folder: TemporaryFolder) throws -> any SQLEngine {
    try CatalogEngine.current.open(folder("catalog.sqlite"))
  }

  /// Runs `body` on all threads at once, each on a node of its own, and returns its results.
  func race<Value: Sendable>(
    _ body: @escaping @Sendable (_ thread: Int, _ node: Catalog) throws -> Value
  ) async throws -> [Value] {
    let results = Mutex<[Result<Value, any Error>]>([])
    let group = DispatchGroup()
    for thread in 0..<Self.count {
      group.enter()
      Thread.detachNewThread { [catalogs] in
        let result = Result { try body(thread, catalogs[thread]) }
        results.withLock { $0.append(result) }
        group.leave()
      }
    }
    await withCheckedContinuation { continuation in group.notify(queue: .global()) { continuation.resume() } }
    return try results.withLock { $0 }.map { try $0.get() }
  }

  /// How often transactions were repeated, after a serialization failure or a deadlock.
  var retries: Int { engines.map(\.retries).reduce(0, +) }

  /// Prints how often transactions were repeated, for `docs`.
  func report(_ race: String) {
    let calls = engines.map(\.calls).reduce(0, +)
    print("race on \(CatalogEngine.current.name): \(race): \(calls) writes, \(retries) repeated")
  }
}

/// Lets threads go on once all have come, again and again. A thread that ends must leave, also if it throws.
final class Barrier: Sendable {
  private struct State {
    var count: Int
    var waiting = 0
    var round = 0

    /// Begins the next round if all are there.
    mutating func advance() -> Bool {
      guard waiting == count else { return false }
      (waiting, round) = (0, round + 1)
      return true
    }
  }

  private let state: Mutex<State>
  private let condition = NSCondition()

  init(_ count: Int) { state = Mutex(State(count: count)) }

  func wait() {
    condition.lock()
    defer { condition.unlock() }
    let (round, isLast) = state.withLock { state in
      state.waiting += 1
      return (state.round, state.advance())
    }
    guard !isLast else { return condition.broadcast() }
    while state.withLock({ $0.round }) == round { condition.wait() }
  }

  func leave() {
    condition.lock()
    defer { condition.unlock() }
    let isLast = state.withLock { state in
      state.count -= 1
      return state.advance()
    }
    if isLast { condition.broadcast() }
  }
}
