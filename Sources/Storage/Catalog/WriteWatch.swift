import Dispatch
import Synchronization
import Terms

/// A write that holds the catalog for too long: others wait, all of them in SQLite, and in PostgreSQL those that need
/// the same rows.
package struct HeldWrite: Sendable, Equatable {
  /// The catalog's method, such as “insert(_:_:limit:within:)”.
  package let kind: String
  /// The SQL of the statement that took longest, with what followed it before the next one. Without values.
  package let statement: String
  /// How long it has held the catalog, from its first statement on.
  package let seconds: Double
  /// Whether it still does.
  package let isUnderWay: Bool
}

/// Watches how long each write holds the catalog. Thread-safe.
package final class WriteWatch: Sendable {
  /// A write that holds the catalog for longer is counted and reported.
  package static let limitSeconds = 1.0

  private struct Hold {
    let kind: StaticString
    let since: Double
    /// The statement in progress or, between statements, the last one, and when it began; empty before the first.
    private var statement = ""
    private var began = 0.0
    /// The statement before it that took longest.
    private var longest = (statement: "", seconds: 0.0)
    var isReported = false

    init(kind: StaticString, since: Double) { (self.kind, self.since) = (kind, since) }

    mutating func begin(_ next: String, at now: Double) {
      if !statement.isEmpty, now - began > longest.seconds { longest = (statement, now - began) }
      (statement, began) = (next, now)
    }

    func held(at now: Double, isUnderWay: Bool = true) -> HeldWrite {
      let statement = now - began >= longest.seconds ? statement : longest.statement
      return HeldWrite(
        kind: "\(kind)", statement: statement.split(whereSeparator: \.isWhitespace).joined(separator: " "),
        seconds: now - since, isUnderWay: isUnderWay)
    }
  }

  private struct State {
    var holds: [UInt64: Hold] = [:]
    var nextKey: UInt64 = 0
    var isWaking = false
    var count = 0
    var report: (@Sendable (HeldWrite) -> Void)?
  }

  private let clock: Clock
  private let start: Clock.Instant
  /// Serial, so that it gets a thread even when others' work has taken all threads that concurrent queues share.
  private let queue = DispatchQueue(label: "write watch")
  private let state = Mutex(State())

  /// Creates a watch.
  init(_ clock: Clock) { (self.clock, start) = (clock, clock.now) }

  private var now: Double { clock.seconds(since: start) }

  /// From now on, calls `report` with each write that holds the catalog for too long: once while it does, and again
  /// when it has ended.
  package func whenHeld(_ report: @escaping @Sendable (HeldWrite) -> Void) { state.withLock { $0.report = report } }

  /// Number of writes so far that held the catalog for too long.
  package var count: Int { state.withLock(\.count) }

  /// The write that has held the catalog for the longest time, if that is too long.
  package var current: HeldWrite? {
    let now = now
    return state.withLock { state in
      let oldest = state.holds.values.min { $0.since < $1.since }
      return oldest.flatMap { now - $0.since > Self.limitSeconds ? $0.held(at: now) : nil }
    }
  }

  // MARK: Writes

  /// Notes that a write has begun to hold the catalog. Returns its key.
  func begin(_ kind: StaticString) -> UInt64 {
    let now = now
    let (key, mustWake) = state.withLock { state in
      state.nextKey += 1
      state.holds[state.nextKey] = Hold(kind: kind, since: now)
      defer { state.isWaking = true }
      return (state.nextKey, !state.isWaking)
    }
    if mustWake { wakeLater() }
    return key
  }

  /// Notes the statement that a write is about to run.
  func note(_ statement: String, of key: UInt64) {
    let now = now
    state.withLock { $0.holds[key]?.begin(statement, at: now) }
  }

  /// Notes that a write doesn't hold the catalog any more.
  func end(_ key: UInt64) {
    let now = now
    let (held, report) = state.withLock { state -> (HeldWrite?, (@Sendable (HeldWrite) -> Void)?) in
      guard let hold = state.holds.removeValue(forKey: key), now - hold.since > Self.limitSeconds else {
        return (nil, nil)
      }
      if !hold.isReported { state.count += 1 }
      return (hold.held(at: now, isUnderWay: false), state.report)
    }
    if let held { report?(held) }
  }

  /// Looks at the writes once a second while there are any.
  private func wakeLater() { clock.after(Self.limitSeconds, on: queue) { [weak self] in self?.look() } }

  private func look() {
    let now = now
    let (held, report, goesOn) = state.withLock { state in
      var held: [HeldWrite] = []
      for (key, hold) in state.holds where !hold.isReported && now - hold.since > Self.limitSeconds {
        state.holds[key]?.isReported = true
        state.count += 1
        held.append(hold.held(at: now))
      }
      state.isWaking = !state.holds.isEmpty
      return (held, state.report, state.isWaking)
    }
    if goesOn { wakeLater() }
    for held in held { report?(held) }
  }
}

/// One write of the catalog, whose transaction may run several times, one after the other.
final class WriteHold: Sendable {
  private let watch: WriteWatch
  private let kind: StaticString
  private let key = Mutex(UInt64?.none)

  init(_ watch: WriteWatch, _ kind: StaticString) { (self.watch, self.kind) = (watch, kind) }

  /// Notes that a transaction has begun; an earlier one is over.
  func begin() {
    end()
    let new = watch.begin(kind)
    key.withLock { $0 = new }
  }

  func note(_ statement: String) {
    if let key = key.withLock(\.self) { watch.note(statement, of: key) }
  }

  /// Notes that the transaction has been committed or abandoned.
  func end() {
    if let key = key.withLock({ $0.take() }) { watch.end(key) }
  }
}
