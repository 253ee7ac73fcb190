import PresentRows
import Randomness
import Storage

// Nodes that take a resumable upload over from each other, in virtual time. The catalog applies the transitions of
// Upload+Writer. Requests to the catalog take a while, sometimes long, and answers may be lost. Nodes crash and stop,
// and go on with what they believe: with appending bytes, and with recording an offset.

/// One history of an upload and its client. The same seed gives the same history.
struct UploadSimulation {
  private static let length: Int64 = 64
  private static let nodeCount = 3

  /// A request to the catalog, which is one transaction.
  private enum Request {
    case look
    case takeOver(at: Int64)
    case advance(to: Int64, by: Int)
    case finish(by: Int)
    case refuse(by: Int)
  }

  private struct Row {
    var upload: Upload
    var segments: [UploadSegment]
  }

  private enum Event {
    /// The client sends bytes from its offset on, or asks for the offset.
    case send(node: Int)
    case arrive(Request, node: Int, run: Int, request: Int)
    case answer(Row?, to: Request, node: Int, run: Int, request: Int)
    case piece(node: Int, run: Int, request: Int)
    case crash(node: Int)
    case stop(node: Int)
    case start(node: Int)
  }

  /// The bytes that one node receives as a writer.
  private struct Writing {
    var writer: Int
    var base: Int64
    var offset: Int64
    /// The client's request whose bytes it receives, and how many are to come.
    var request: Int
    var left: Int64
  }

  private struct Node {
    var run = 0
    var isUp = true
    var stoppedUntil: Int64 = 0
    var writing: Writing?
    /// When its last request arrives at the catalog. A session makes one after another, and the catalog's locks keep
    /// their order even if one gets no answer.
    var lastArrival: Int64 = 0
  }

  private var random: TestRandom
  private var now: Int64 = 0
  private var events = EventHeap<Event>()
  private var nodes = [Node](repeating: Node(), count: nodeCount)
  // The catalog, and the files: each byte is the number of the request that sent it.
  private var row: Row?
  private var files: [Int: [Int]] = [:]
  private var recordings: [[Int]] = []
  // The client.
  private var request = 0
  private var told: Int64 = 0
  /// The bytes that were acknowledged.
  private var acknowledged: [Int] = []

  private(set) var violations: [String] = []
  /// How often each thing happened, to see that the histories are rich.
  private(set) var counts: [String: Int] = [:]

  init(seed: Int) {
    random = TestRandom(for: seed)
    let upload = Upload(length: Self.length, expiresAt: Timestamp(milliseconds: .max))
    row = Row(upload: upload, segments: [UploadSegment(upload: upload.id, start: 0, writer: 0)])
    files[0] = []
  }

  // MARK: Running

  /// Runs the history to its end and checks the invariants.
  mutating func run() {
    schedule(.send(node: anyNode()), in: 0)
    for _ in 0..<Int.random(in: 0..<4, using: &random) { schedule(.crash(node: anyNode()), in: milliseconds(20_000)) }
    for _ in 0..<Int.random(in: 0..<4, using: &random) { schedule(.stop(node: anyNode()), in: milliseconds(20_000)) }
    while let (time, event) = events.pop() {
      now = max(now, time)
      handle(event)
      if now > 5_000_000 { return violations.append("the history doesn't end") }
      if !violations.isEmpty { return }
    }
    check(recordings.count == 1, "\(recordings.count) recordings")
    check(recordings.first == acknowledged, "the recording has other bytes than were acknowledged")
  }

  private mutating func milliseconds(_ limit: Int64) -> Int64 { Int64.random(in: 0..<limit, using: &random) }

  private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  private mutating func anyNode() -> Int { Int.random(in: nodes.indices, using: &random) }

  private mutating func check(_ condition: Bool, _ message: String) {
    if !condition { violations.append(message) }
  }

  private mutating func count(_ what: String) { counts[what, default: 0] += 1 }

  private mutating func schedule(_ event: Event, in delay: Int64) { events.push(event, at: now + delay) }

  private mutating func delay() -> Int64 { chance(10) ? milliseconds(8000) : milliseconds(chance(20) ? 500 : 20) }

  private mutating func handle(_ event: Event) {
    switch event {
    case .arrive(let request, let node, let run, let number):
      let answer = apply(request)
      // An answer may be lost: the node doesn't know whether its transaction was committed.
      if !chance(3) { schedule(.answer(answer, to: request, node: node, run: run, request: number), in: delay()) }
    case .send(let node): send(to: node)
    case .stop(let node):
      nodes[node].stoppedUntil = max(nodes[node].stoppedUntil, now + milliseconds(15_000))
      count("stops")
    case .crash(let node):
      guard nodes[node].isUp else { return }
      (nodes[node].isUp, nodes[node].writing) = (false, nil)
      schedule(.start(node: node), in: milliseconds(5000))
      count("crashes")
    case .start(let node):
      (nodes[node].isUp, nodes[node].stoppedUntil) = (true, 0)
      nodes[node].run += 1
    case .piece(let node, let run, _), .answer(_, _, let node, let run, _):
      guard nodes[node].isUp, nodes[node].run == run else { return }
      // A stopped process goes on later, with what it believes.
      if nodes[node].stoppedUntil > now { return events.push(event, at: nodes[node].stoppedUntil + milliseconds(3)) }
      if case .answer(let row, let request, _, _, let number) = event {
        heard(row, request, node, number)
      } else {
        receive(event, node)
      }
    }
  }

  // MARK: The client

  /// Sends a request to a node, and another one somewhere else if it isn't answered in time.
  private mutating func send(to node: Int) {
    guard recordings.isEmpty else { return }
    request += 1
    if nodes[node].isUp { ask(.look, node, request) }
    schedule(.send(node: anyNode()), in: 200 + delay())
  }

  /// A node tells the client of an offset that the row has; `number` is the request that it answers.
  private mutating func tell(_ row: Row, _ node: Int) {
    let offset = row.upload.offset
    let bytes = content(of: row, to: offset)
    check(bytes.count == offset, "\(bytes.count) bytes are there of \(offset) that the row has")
    // An answer that is late shows less than later ones, but never other bytes.
    let common = min(bytes.count, acknowledged.count)
    check(bytes[..<common] == acknowledged[..<common], "acknowledged bytes have changed")
    guard offset > told else { return }
    (told, acknowledged) = (offset, bytes)
    count("acknowledged")
  }

  // MARK: The nodes

  private mutating func ask(_ request: Request, _ node: Int, _ number: Int) {
    nodes[node].lastArrival = max(nodes[node].lastArrival, now + delay())
    events.push(.arrive(request, node: node, run: nodes[node].run, request: number), at: nodes[node].lastArrival)
  }

  private mutating func heard(_ row: Row?, _ request: Request, _ node: Int, _ number: Int) {
    guard let row else {
      // Refused: another node is the writer, or the upload is finished.
      nodes[node].writing = nil
      return count("refused")
    }
    if row.upload.recording != nil { return nodes[node].writing = nil }
    let offset = row.upload.offset
    switch request {
    case .look:
      tell(row, node)
      if let writing = nodes[node].writing, writing.writer == row.upload.writer {
        // Its own upload: what it has received is recorded first, for every request.
        nodes[node].writing?.request = number
        nodes[node].writing?.left = Int64.random(in: 1...24, using: &random)
        ask(.advance(to: writing.offset, by: writing.writer), node, number)
      } else {
        nodes[node].writing = nil
        ask(.takeOver(at: offset), node, number)
      }
    case .takeOver:
      files[row.upload.writer] = []
      count("taken over")
      nodes[node].writing = Writing(
        writer: row.upload.writer, base: offset, offset: offset, request: number,
        left: Int64.random(in: 1...24, using: &random))
      if offset == Self.length { return end(node, number) }
      schedule(.piece(node: node, run: nodes[node].run, request: number), in: delay())
    case .advance(let end, let writer):
      guard let writing = nodes[node].writing, writing.writer == writer else { return }
      tell(row, node)
      if end == Self.length { return self.end(node, number) }
      if writing.request == number, writing.left > 0 {
        schedule(.piece(node: node, run: nodes[node].run, request: number), in: delay())
      }
    case .finish, .refuse: nodes[node].writing = nil
    }
  }

  /// The last byte is recorded. The probe reads the file; now and then it fails, because another node has finished and
  /// removed the files.
  private mutating func end(_ node: Int, _ number: Int) {
    guard let writer = nodes[node].writing?.writer else { return }
    ask(recordings.isEmpty ? .finish(by: writer) : .refuse(by: writer), node, number)
  }

  private mutating func receive(_ event: Event, _ node: Int) {
    guard case .piece(_, let run, let number) = event, var writing = nodes[node].writing, writing.request == number,
      writing.left > 0, writing.offset < Self.length
    else { return }
    let size = min(Int64.random(in: 1...8, using: &random), writing.left, Self.length - writing.offset)
    files[writing.writer]?.append(contentsOf: Array(repeating: number, count: Int(size)))
    writing.offset += size
    writing.left -= size
    nodes[node].writing = writing
    if chance(50) || writing.left == 0 || writing.offset == Self.length {
      ask(.advance(to: writing.offset, by: writing.writer), node, number)
    } else {
      schedule(.piece(node: node, run: run, request: number), in: delay())
    }
  }

  // MARK: The catalog

  /// The bytes that count.
  private func content(of row: Row, to offset: Int64) -> [Int] {
    row.segments.counting(to: offset).flatMap { (files[$0.segment.writer] ?? []).prefix(Int($0.count)) }
  }

  private mutating func apply(_ request: Request) -> Row? {
    guard var changed = row else { return nil }
    switch request {
    case .look: return changed
    case .takeOver(let offset):
      guard changed.upload.takeOver(at: offset) else { return nil }
      // A segment that begins here has no bytes that count.
      changed.segments.removeAll { $0.start >= offset }
      changed.segments.append(UploadSegment(upload: changed.upload.id, start: offset, writer: changed.upload.writer))
    case .advance(let offset, let writer):
      guard changed.upload.advance(to: offset, by: writer) else { return nil }
    case .finish:
      check(changed.upload.offset == Self.length, "finished with \(changed.upload.offset) bytes")
      guard changed.upload.finish(as: RecordingID()) else { return nil }
      recordings.append(content(of: changed, to: Self.length))
      acknowledged = acknowledged + content(of: changed, to: Self.length).dropFirst(acknowledged.count)
    case .refuse(let writer):
      guard changed.upload.mayBeRefused(by: writer) else { return nil }
      check(recordings.isEmpty, "an upload that has become a recording was refused")
      row = nil
      return nil
    }
    check(changed.upload.offset >= row?.upload.offset ?? 0, "the offset went back")
    row = changed
    return changed
  }
}
