import PresentRows
import Randomness

@testable import PostgresStorage
@testable import Storage

// Nodes that cache rows and hear of each other's changes, in virtual time. Real are `Catalog` with its feed and its
// counts of changes, and `ListenerState`; simulated are the server, the connections to it and the clock. Lines are cut
// and come back, connections end with or without a sign, the server is replaced by another one, nodes stop. An action
// of a listener may be followed by any number of reads before the next one.

/// One history of several nodes and recordings. The same seed gives the same history.
struct FeedSimulation {
  /// A node's changes and what its listener does with others'. Reused, because making one takes longer than a history.
  final class Node {
    let bus: Bus
    let catalog: Catalog

    init(_ name: String) {
      bus = Bus()
      catalog = Catalog(engine: NoEngine(), holder: LeaseHolder(name: name), bus: bus)
      catalog.listenToOthers({ _ in }, onInterruption: { _ in })
    }
  }

  /// The bus of one node. Unchecked, because a simulation has one thread.
  final class Bus: ChangeBus, @unchecked Sendable {
    var now = 0.0
    var provedAt: Double?
    var sent: [String] = []
    var deliver: @Sendable (BusEvent) -> Void = { _ in }

    var byteLimit: Int { 7999 }
    var secondsSinceHeard: Double? { provedAt.map { now - $0 } }
    func send(_ message: String, in session: any SQLSession) { sent.append(message) }
    func send(_ message: String) { sent.append(message) }
    func listen(_ handler: @escaping @Sendable (BusEvent) -> Void) { deliver = handler }
    func stopListening() {}
  }

  private enum Event {
    case write(node: Int)
    case read(node: Int, recording: Int)
    case load(node: Int, recording: Int, stamp: UInt64)
    // The listener.
    case connect(node: Int)
    case tick(node: Int, connection: Int)
    case readable(node: Int, connection: Int)
    case lost(node: Int, connection: Int)
    case act(node: Int)
    // The server.
    case listen(node: Int, connection: Int, sentAt: Int64)
    case ping(node: Int, connection: Int)
    // Faults.
    case cut(node: Int)
    case stop(node: Int)
    case end(node: Int)
    case failover
  }

  private enum Message {
    case listening(since: Int64)
    case payload(String)
    case response
  }

  private struct Listener {
    var state = ListenerState(silenceSeconds: 4)
    /// Counts its connections.
    var connection = 0
    var pending: [ListenerState.Action] = []
    /// What is on its way to it, in order.
    var pipe: [(arrival: Int64, message: Message)] = []
    var cutUntil: Int64 = 0
    var stoppedUntil: Int64 = 0
    var cache: [Int: (stamp: UInt64, version: Int)] = [:]
  }

  private static let lifetime: Int64 = 60_000
  private static let bound: Int64 = 5000

  private var random: TestRandom
  private let nodes: [Node]
  private var listeners: [Listener]
  private var now: Int64 = 0
  private var events = EventHeap<Event>()
  /// The connections that the server knows of, by node.
  private var sessions: [Int: Int] = [:]
  private let recordings = (0..<3).map { _ in RecordingID() }
  /// When each version of a row was committed, and by which node.
  private var versions: [[(time: Int64, node: Int)]]

  private(set) var violations: [String] = []
  /// How often each thing happened, to see that the histories are rich.
  private(set) var counts: [String: Int] = [:]

  init(seed: Int, nodes: [Node]) {
    random = TestRandom(for: seed)
    self.nodes = nodes
    listeners = nodes.map { _ in Listener() }
    versions = recordings.map { _ in [(time: .min, node: 0)] }
    for node in nodes { node.bus.provedAt = nil }
  }

  /// Runs the history to its end.
  mutating func run() {
    for node in nodes.indices {
      schedule(.connect(node: node), in: 0)
      for _ in 0..<20 { schedule(.read(node: node, recording: anyRecording()), in: milliseconds(Self.lifetime)) }
    }
    for _ in 0..<10 { schedule(.write(node: anyNode()), in: milliseconds(Self.lifetime)) }
    for _ in 0..<Int.random(in: 0..<3, using: &random) { schedule(.cut(node: anyNode()), in: milliseconds(50_000)) }
    for _ in 0..<Int.random(in: 0..<3, using: &random) { schedule(.stop(node: anyNode()), in: milliseconds(50_000)) }
    if chance(40) { schedule(.end(node: anyNode()), in: milliseconds(50_000)) }
    if chance(30) { schedule(.failover, in: milliseconds(50_000)) }
    while let (time, event) = events.pop(), time < Self.lifetime {
      now = max(now, time)
      for node in nodes { node.bus.now = Double(now) / 1000 }
      handle(event)
    }
  }

  private mutating func milliseconds(_ limit: Int64) -> Int64 { Int64.random(in: 0..<limit, using: &random) }

  private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  private mutating func anyNode() -> Int { Int.random(in: nodes.indices, using: &random) }

  private mutating func anyRecording() -> Int { Int.random(in: recordings.indices, using: &random) }

  private mutating func schedule(_ event: Event, in delay: Int64) { events.push(event, at: now + delay) }

  private mutating func count(_ what: String) { counts[what, default: 0] += 1 }

  /// Usually short; sometimes long, with the line still up.
  private mutating func delay() -> Int64 { chance(3) ? milliseconds(7000) : milliseconds(chance(20) ? 500 : 5) }

  private mutating func handle(_ event: Event) {
    switch event {
    case .listen(let node, let connection, let sentAt):
      guard isReached(node, event), listeners[node].connection == connection else { return }
      sessions[node] = connection
      send(.listening(since: sentAt), to: node, connection)
    case .ping(let node, let connection):
      guard isReached(node, event), sessions[node] == connection else { return }
      send(.response, to: node, connection)
    case .cut(let node):
      listeners[node].cutUntil = now + milliseconds(15_000)
      count("cuts")
    case .stop(let node):
      listeners[node].stoppedUntil = max(listeners[node].stoppedUntil, now + milliseconds(15_000))
      count("stops")
    case .end(let node):
      if let connection = sessions.removeValue(forKey: node), chance(70) {
        schedule(.lost(node: node, connection: connection), in: delay())
      }
      count("ends")
    case .failover: failOver()
    case .write(let node), .read(let node, _), .load(let node, _, _), .connect(let node), .tick(let node, _),
      .readable(let node, _), .lost(let node, _), .act(let node):
      // A stopped process goes on later, with what it believes.
      let until = listeners[node].stoppedUntil
      if until > now { return events.push(event, at: until + milliseconds(3)) }
      go(on: event, node)
    }
  }

  /// Whether a message to the server arrives now; during a cut, it arrives at its end.
  private mutating func isReached(_ node: Int, _ event: Event) -> Bool {
    guard listeners[node].cutUntil > now else { return true }
    events.push(event, at: listeners[node].cutUntil)
    return false
  }

  // MARK: The nodes

  private mutating func go(on event: Event, _ node: Int) {
    switch event {
    case .write: write(node)
    case .read(_, let recording): read(recording, node)
    case .load(_, let recording, let stamp):
      listeners[node].cache[recording] = (stamp, versions[recording].count - 1)
    case .connect:
      listeners[node].connection += 1
      listeners[node].pipe = []
      schedule(.listen(node: node, connection: listeners[node].connection, sentAt: now), in: delay())
    case .act: act(node)
    case .tick(_, let connection), .readable(_, let connection), .lost(_, let connection):
      guard listeners[node].connection == connection else { return }
      // The listener's queue is serial.
      guard listeners[node].pending.isEmpty else { return events.push(event, at: now + 1) }
      switch event {
      case .tick:
        take(.tick, node)
        schedule(.tick(node: node, connection: connection), in: 1000)
      case .lost: take(.lost, node)
      default: drain(node, connection)
      }
    default: break
    }
  }

  private mutating func write(_ node: Int) {
    // A node that doesn't reach the database writes nothing.
    guard listeners[node].cutUntil <= now else { return }
    let recording = anyRecording()
    let (id, isLast) = (recordings[recording], chance(20))
    nodes[node].bus.sent = []
    do {
      try nodes[node].catalog.write { db in
        if isLast { db.note(deleted: id, of: .none) } else { db.note(changed: id, of: .none) }
      }
    } catch { violations.append("\(error)") }
    versions[recording].append((now, node))
    // To every session, the writer's own too.
    for (listener, connection) in sessions.sorted(by: { $0.key < $1.key }) {
      for line in nodes[node].bus.sent { send(.payload(line), to: listener, connection) }
    }
  }

  private mutating func read(_ recording: Int, _ node: Int) {
    let stamp = nodes[node].catalog.changeCount(of: recordings[recording])
    guard let cached = listeners[node].cache[recording], cached.stamp == stamp else {
      return schedule(.load(node: node, recording: recording, stamp: stamp), in: milliseconds(10))
    }
    count("served")
    for later in versions[recording].dropFirst(cached.version + 1) {
      let isOld = later.time < now - Self.bound
      guard isOld || later.node == node else { continue }
      return violations.append(
        "node \(node) serves a row that was changed \(now - later.time) ms ago\(isOld ? "" : ", by itself")")
    }
  }

  private mutating func take(_ event: ListenerState.Event, _ node: Int) {
    listeners[node].pending = listeners[node].state.on(event, at: Double(now) / 1000)
    if !listeners[node].pending.isEmpty { schedule(.act(node: node), in: 0) }
  }

  /// Performs the listener's next action as `PostgresListener` does.
  private mutating func act(_ node: Int) {
    guard !listeners[node].pending.isEmpty else { return }
    let bus = nodes[node].bus
    let connection = listeners[node].connection
    switch listeners[node].pending.removeFirst() {
    case .announce:
      bus.deliver(.connected)
      schedule(.tick(node: node, connection: connection), in: 1000)
    case .deliver(let line):
      bus.deliver(.message(line))
      count("delivered")
    case .prove(let time): bus.provedAt = time
    case .ping: schedule(.ping(node: node, connection: connection), in: delay())
    case .reconnect:
      bus.provedAt = nil
      bus.deliver(.disconnected(reason: ""))
      schedule(.connect(node: node), in: milliseconds(3000))
      count("reconnected")
    }
    // Readers come between any two actions, most of all where something has just changed.
    if chance(50) { schedule(.read(node: node, recording: anyRecording()), in: 0) }
    if chance(2) { listeners[node].stoppedUntil = max(listeners[node].stoppedUntil, now + milliseconds(15_000)) }
    if !listeners[node].pending.isEmpty { schedule(.act(node: node), in: milliseconds(3)) }
  }

  // MARK: The server

  private mutating func send(_ message: Message, to node: Int, _ connection: Int) {
    guard listeners[node].connection == connection else { return }
    let earliest = max(listeners[node].pipe.last?.arrival ?? 0, listeners[node].cutUntil)
    let arrival = max(earliest, now + delay())
    listeners[node].pipe.append((arrival, message))
    events.push(.readable(node: node, connection: connection), at: arrival)
  }

  /// Reads everything that has arrived, as `PostgresConnection.drain` does.
  private mutating func drain(_ node: Int, _ connection: Int) {
    if listeners[node].cutUntil > now {
      return events.push(.readable(node: node, connection: connection), at: listeners[node].cutUntil)
    }
    let arrived = listeners[node].pipe.prefix { $0.arrival <= now }
    guard let first = arrived.first else { return }
    if case .listening(let time) = first.message {
      listeners[node].pipe.removeFirst()
      take(.listening(since: Double(time) / 1000), node)
      return schedule(.readable(node: node, connection: connection), in: 0)
    }
    listeners[node].pipe.removeFirst(arrived.count)
    var (payloads, hasResponse) = ([String](), false)
    for (_, message) in arrived {
      switch message {
      case .payload(let line): payloads.append(line)
      case .response: hasResponse = true
      case .listening: break
      }
    }
    take(.received(payloads, response: hasResponse), node)
  }

  /// All connections end; what was on its way may be lost.
  private mutating func failOver() {
    for (node, connection) in sessions.sorted(by: { $0.key < $1.key }) {
      if chance(70) { schedule(.lost(node: node, connection: connection), in: delay()) }
      listeners[node].pipe.removeLast(Int.random(in: 0...listeners[node].pipe.count, using: &random))
    }
    sessions = [:]
    count("failovers")
  }
}

/// An engine whose transactions have no tables.
private final class NoEngine: SQLEngine {
  private final class Session: SQLSession {
    var dialect: SQLDialect { .sqlite }
    func rows(_ sql: String, bound arguments: [SQLValue]) -> [SQLRow] { [] }
    func eachRow(_ sql: String, bound arguments: [SQLValue], _ body: (SQLRow) throws -> Bool) {}
    func run(_ sql: String, bound arguments: [SQLValue]) -> Int { 0 }
  }

  var dialect: SQLDialect { .sqlite }

  func read<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value { try call(body) }
  func write<Value: Sendable>(
    _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
  ) throws(StorageError) -> Value { try call(body) }

  private func call<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value {
    do { return try body(Session()) } catch { throw error as? StorageError ?? .changedMeanwhile }
  }

  func checkUsable() {}
  func eraseTraces(pagesAtOnce: Int) {}
  func checkpoint() {}
  func close() {}
}
