import PresentRows
import Synchronization
import Terms
import Testing

@testable import Storage

/// An engine whose commits take two seconds.
private final class SlowCommits: PassingEngine {
  let engine: any SQLEngine
  private let hand: ManualClock

  init(_ engine: any SQLEngine, _ hand: ManualClock) { (self.engine, self.hand) = (engine, hand) }

  func write<Value: Sendable>(
    _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
  ) throws(StorageError) -> Value {
    try engine.write(isolation) {
      let value = try body($0)
      hand.advance(by: 2)
      return value
    }
  }
}

@Suite(.onEveryEngine) struct WriteWatchTests {
  private let folder: TemporaryFolder
  private let hand = ManualClock()
  private let watch: WriteWatch
  private let catalog: Catalog
  private let reports = Reports()

  private final class Reports: Sendable {
    let all = Mutex<[HeldWrite]>([])
    var list: [HeldWrite] { all.withLock(\.self) }
  }

  init() throws {
    folder = try TemporaryFolder()
    catalog = Catalog(engine: try Catalog(at: folder("catalog.sqlite")).engine, clock: hand.clock)
    watch = catalog.writeWatch
    watch.whenHeld { [reports] held in reports.all.withLock { $0.append(held) } }
  }

  private func write(_ moves: [Double]) throws {
    try catalog.write(kind: "change") { [hand] db in
      try Catalog.beat(db)
      for seconds in moves { hand.advance(by: seconds) }
    }
  }

  @Test("a write that holds the catalog for more than a second is reported while it does, and again at its end")
  func longWrite() throws {
    try write([0.7, 0.7, 5])
    #expect(reports.list.map(\.seconds).map { ($0 * 10).rounded() / 10 } == [2, 6.4])
    #expect(reports.list.map(\.isUnderWay) == [true, false])
    #expect(reports.list.allSatisfy { $0.kind == "change" && $0.statement.hasPrefix("INSERT INTO heartbeat") })
    #expect(watch.count == 1 && watch.current == nil)
  }

  @Test("the statement that took longest is named, also if it is in progress, and so is the commit")
  func longestStatement() throws {
    for (moves, name) in [([0.1, 1.5, 0.2], "SELECT 1"), ([0.1, 0.2, 1.5], "SELECT 2")] {
      try catalog.write { [hand] db in
        for (number, seconds) in moves.enumerated() {
          _ = try db.rows("SELECT \(number)")
          hand.advance(by: seconds)
        }
      }
      #expect(reports.list.last?.statement == name)
    }
    // As a commit that takes long.
    let late = Catalog(engine: SlowCommits(catalog.engine, hand), clock: hand.clock)
    late.writeWatch.whenHeld { [reports] held in reports.all.withLock { $0.append(held) } }
    try late.write { [hand] db in
      try Catalog.beat(db)
      hand.advance(by: 0.5)
    }
    #expect(reports.list.last?.statement == "COMMIT")
  }

  @Test("it is known while it lasts")
  func current() throws {
    try catalog.write(kind: "change") { [hand, watch] _ in
      hand.advance(by: 1)
      #expect(watch.current == nil)
      hand.advance(by: 0.5)
      #expect(watch.current?.seconds == 1.5)
    }
    #expect(watch.current == nil)
  }

  @Test("many short writes are not reported, need one timer, and none when they are over")
  func shortWrites() throws {
    for _ in 0..<20 { try write([0.3]) }
    #expect(reports.list.isEmpty && watch.count == 0)
    #expect(hand.waitingCount <= 1)
    hand.advance(by: 1)
    #expect(hand.waitingCount == 0)
  }

  @Test("a write that fails ends its hold, and a method names itself")
  func failure() throws {
    #expect(throws: StorageError.self) {
      try catalog.write { [hand] db in
        hand.advance(by: 2)
        try db.run("nonsense")
      }
    }
    #expect(reports.list.map(\.kind) == ["failure()", "failure()"] && watch.current == nil)
    #expect(reports.list.last?.statement == "nonsense")
  }
}
