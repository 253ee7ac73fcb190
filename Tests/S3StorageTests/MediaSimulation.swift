import ObjectStore
import PresentRows
import Randomness
import Synchronization
import Terms

@testable import S3Storage
@testable import Storage

// Nodes that share a catalog and a bucket, in virtual time, with all the code that a node has for them. The store
// refuses requests, breaks connections, and carries requests out up to half an hour late; the catalog's answers get
// lost; a node dies at any call. At any call of the catalog another node may act first, and whatever has been begun may
// go on much later.
//
// What isn't in the histories, because it would break the rules of the layout (Blobs): a node that is stopped for a
// day between a row of `garbage` and the PUT that it is about.

/// One history. The same seed makes the same choices, although a collection may take its objects in another order.
final class MediaSimulation: @unchecked Sendable {
  // @unchecked: one thread runs it; the store's asks it about requests while that waits for their answers.
  let world: SimulatedWorld
  var random: TestRandom
  private let isBig: Bool
  private let name: String
  private var nodes: [SimulatedNode] = []
  private var startCount = 0
  /// The nodes that are in the middle of an act, the innermost last.
  private var acting: [SimulatedNode] = []
  private var isCalm = false
  /// Held while the store asks about a request.
  private let asking = Mutex(())
  /// When the store will carry the requests out that it has postponed.
  private var postponed: [Timestamp] = []

  // What clients were told.
  /// The audio of recordings that were acknowledged; not of those whose deletion was requested.
  var audio: [RecordingID: [UInt8]] = [:]
  /// The last name and waveform that were acknowledged, if nothing has been in doubt since.
  var names: [RecordingID: String] = [:]
  var waveforms: [RecordingID: ObjectKey] = [:]
  var uploads: [UploadID: (content: [UInt8], reported: Int64, writer: Int)] = [:]
  /// What each object must have as its content, if it is known.
  var contents: [String: [UInt8]] = [:]

  var violations: [String] = []
  /// How often each thing happened, to see that the histories are rich.
  private(set) var counts: [String: Int] = [:]

  static let big = TestStore.bytes(11 << 20)

  /// Begins a history in a world where no recordings are. `isBig` adds recordings that are put in parts.
  init(seed: Int, isBig: Bool, in world: SimulatedWorld) throws {
    (self.world, self.isBig, name) = (world, isBig, "history-\(seed)")
    random = TestRandom(for: seed)
    for _ in 0..<3 { nodes.append(try start()) }
  }

  // MARK: Running

  /// Runs the history to its end.
  func run() throws {
    world.store.fail(as: { [unowned self] request in asking.withLock { _ in fault(for: request) } })
    defer { world.store.fail(as: nil) }
    for _ in 0..<18 { try step { self.act($0) } }
    // A day goes by, with work still in flight.
    for _ in 0..<8 {
      pass(3 * 3600)
      try step { self.collect($0) }
      try step { self.proceed($0) }
    }
    isCalm = true
    pass(1800)
    nodes = [try start()]
    // What was lost is found after a day, and gone after another one.
    for _ in 0..<3 { try settle() }
    checkQuiet("when all is quiet")
    try deleteAll()
    for _ in 0..<2 { try settle() }
    checkEmpty()
  }

  private func settle() throws {
    guard violations.isEmpty else { return }
    pass(90_000)
    try nodes[0].catalog.endLostLeases()
    try nodes[0].collect()
    check("after a quiet day")
  }

  private func deleteAll() throws {
    let (recordings, begun) = try world.database.read { db in
      (
        try db.rows("SELECT id FROM recordings").map { try value($0, "id") as String },
        try db.rows("SELECT id FROM uploads").map { try value($0, "id") as String }
      )
    }
    audio = [:]
    uploads = [:]
    for id in recordings.compactMap({ RecordingID($0) }) { _ = try nodes[0].catalog.deleteRecording(id) }
    for id in begun.compactMap({ UploadID($0) }) { try nodes[0].catalog.deleteUpload(id) }
  }

  /// Has a node do something, which may kill it.
  private func step(_ body: (SimulatedNode) -> Void) throws {
    guard violations.isEmpty else { return }
    let index = Int.random(in: nodes.indices, using: &random)
    if chance(12) { nodes[index].callsLeft = Int.random(in: 0..<12, using: &random) }
    body(nodes[index])
    nodes[index].callsLeft = nil
    for (index, node) in nodes.enumerated() where node.engine.isDead {
      count("deaths")
      nodes[index] = try start()
    }
    if chance(40) { pass([1, 45, 70, 400, 3700, 20_000, 80_000, 90_000].randomElement(using: &random) ?? 1) }
    check("after a step")
  }

  private func start() throws -> SimulatedNode {
    startCount += 1
    let node = try SimulatedNode("\(name)-\(startCount)", in: world)
    // While a node is freed, its parts may call the engine once more.
    node.engine.fate = { [weak self, weak node] writes in
      guard let self, let node else { return .diesBefore }
      return fate(of: node, writes: writes)
    }
    return node
  }

  /// Lets time pass. What the store has postponed is carried out as late as it may be.
  private func pass(_ seconds: Double) {
    world.advance(seconds)
    let due = postponed.prefix { $0 <= world.now }.count
    postponed.removeFirst(due)
    world.store.carryOutPostponed(due)
  }

  func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  func count(_ what: String) { counts[what, default: 0] += 1 }

  func bytes() -> [UInt8] {
    if isBig, chance(30) { return Self.big }
    return (0..<Int.random(in: 1...60, using: &random)).map { _ in UInt8.random(in: .min ... .max, using: &random) }
  }

  // MARK: Faults

  /// Whether a call is the last that a node makes.
  private func isLast(_ node: SimulatedNode) -> Bool {
    guard let left = node.callsLeft else { return false }
    node.callsLeft = left - 1
    return left <= 0
  }

  private func fate(of node: SimulatedNode, writes: Bool) -> CallFate {
    guard !isCalm else { return .well }
    if acting.count == 1, chance(writes ? 4 : 2) { interrupt() }
    if isLast(node) { return writes && chance(50) ? .diesAfter : .diesBefore }
    return writes && chance(1) ? .losesAnswer : .well
  }

  /// Has another node act in the middle of what one does.
  private func interrupt() {
    let others = nodes.filter { node in !node.engine.isDead && !acting.contains { $0 === node } }
    guard let other = others.randomElement(using: &random) else { return }
    count("interruptions")
    if chance(50) { pass(chance(50) ? 61 : 300) }
    check("in the middle of an act")
    if chance(60) { collect(other) } else { act(other) }
  }

  private func fault(for request: S3Server.Received) -> S3Server.Fault {
    guard !isCalm, let node = acting.last else { return .none }
    // A dead node may still try to tidy up.
    guard !node.engine.isDead else { return .refuses(500, code: "InternalError") }
    let isDying = isLast(node)
    if isDying { node.engine.die() }
    // Few histories have multipart uploads, which take long to make.
    guard isDying || chance(request.query.contains("uploadId") ? 35 : 8) else { return .none }
    count("faults")
    let begins = request.method == "POST" && request.query.contains("uploads")
    // A multipart upload whose beginning nobody hears of stays, and is empty.
    if begins, chance(50) { return .cuts(afterBytes: 0) }
    let refusal = S3Server.Fault.refuses(500, code: "InternalError")
    if begins || request.method == "GET" || request.method == "HEAD" { return refusal }
    switch Int.random(in: 0..<4, using: &random) {
    case 0:
      postponed.append(max(postponed.last ?? world.now, world.now + Double.random(in: 0..<1800, using: &random)))
      count("postponed")
      return .postpones
    case 1: return .cuts(afterBytes: 0)
    case 2 where !isDying: return .refuses(403, code: "AccessDenied")
    default: return refusal
    }
  }

  // MARK: Acts

  /// Runs a part of a node's work; an error ends it where it is.
  private func attempt(_ node: SimulatedNode, _ body: () throws -> Void) {
    acting.append(node)
    defer { acting.removeLast() }
    do { try body() } catch let error as StorageError {
      guard !node.engine.isDead else { return }
      switch error {
      case .storeUnreachable, .objectStore, .outcomeUnknown, .noSuchRecording, .noSuchUpload, .uploadTakenOver,
        .changedMeanwhile:
        count("failures")
      case .objectMayBeGone: count("too late")
      default: violations.append("a node has met \(error)")
      }
    } catch { violations.append("a node has met \(error)") }
  }

  private func collect(_ node: SimulatedNode) {
    attempt(node) {
      try node.catalog.endLostLeases()
      try node.collect()
      count("collections")
    }
  }

  private func act(_ node: SimulatedNode) {
    if chance(35), !node.work.isEmpty { return proceed(node) }
    switch Int.random(in: 0..<12, using: &random) {
    case 0, 1: attempt(node) { try self.upload(node) }
    case 2, 3, 4, 5: attempt(node) { try self.work(node) }
    case 6, 7: attempt(node) { try self.receive(node) }
    case 8: attempt(node) { try self.delete(node) }
    case 9: attempt(node) { try self.rename(node) }
    case 10: attempt(node) { try self.read(node) }
    default: collect(node)
    }
  }

  /// Goes on with something that a node has begun.
  private func proceed(_ node: SimulatedNode) {
    guard let index = node.work.indices.randomElement(using: &random) else { return }
    let work = node.work.remove(at: index)
    attempt(node) {
      switch work {
      case .recording(let recording): try self.insert(recording, node)
      case .claimed(let token, let key): try self.put(token, key, node)
      case .put(let token, let stored, let since): try self.finish(token, stored, since, node)
      case .upload(let bytes, let upload): try self.receiveMore(bytes, upload, node)
      case .joined(let upload, let recording, let since): try self.insert(recording, finishing: upload, since, node)
      }
    }
  }

  private func anyRecording() -> RecordingID? { audio.keys.sorted { $0.text < $1.text }.randomElement(using: &random) }

  /// Runs what names an object. It may be refused only if the day is nearly over.
  func naming<Value>(since start: Timestamp, _ body: () throws -> Value) throws -> Value {
    do { return try body() } catch StorageError.objectMayBeGone(let key) {
      if world.now < start + 86_000 { violations.append("\(key) may be gone before its day is over") }
      throw StorageError.objectMayBeGone(key: key)
    }
  }

  func describe(_ stored: StoredFile, as recording: inout Recording) {
    (recording.audioKey, recording.bytes, recording.sha256) = (stored.key, stored.bytes, stored.sha256)
  }

  func newRecording() -> Recording {
    let shape = SoundShape(container: "mp3", codec: "mp3", sampleRate: 44_100, channels: 2, estimatedFrames: 9)
    return Recording(id: RecordingID(), name: "talk.mp3", createdAt: world.now, format: shape, waveformJob: JobID())
  }

  private func upload(_ node: SimulatedNode) throws {
    var recording = newRecording()
    let content = bytes()
    let key = ObjectKey(recording.id, "audio.mp3")
    (contents["\(key)"], contents["\(key.map)"]) = (content, [1, 2, 3])
    let map = MadeFile(path: try node.file([1, 2, 3]), name: key.map.name, isNeeded: false)
    let stored = try node.blobs.adopt(try node.receive(content), as: recording.id, name: key.name, with: [map])
    recording.createdAt = world.now
    describe(stored, as: &recording)
    if chance(70) { try insert(recording, node) } else { node.work.append(.recording(recording)) }
  }

  private func insert(_ recording: Recording, _ node: SimulatedNode) throws {
    let job = Job(id: recording.waveformJob ?? JobID(), kind: .waveform, recording: recording.id)
    try naming(since: recording.createdAt) { try node.catalog.insert(recording, jobs: [job]) }
    acknowledge(recording)
  }

  func acknowledge(_ recording: Recording) {
    guard let key = recording.audioKey else { return }
    audio[recording.id] = contents["\(key)"]
    names[recording.id] = recording.name
    count("acknowledged")
  }

  /// Begins a job that makes a waveform or a conversion.
  private func work(_ node: SimulatedNode) throws {
    guard let id = anyRecording() else { return }
    let job = Job(kind: chance(50) ? .waveform : .convert, recording: id)
    try node.catalog.insert(job)
    guard let token = try node.catalog.claim(job.id).written?.token else { return }
    let name = job.kind == .waveform ? "waveform-\(token.name).pyramid" : "converted-\(token.name).mp3"
    if chance(70) {
      try put(token, ObjectKey(id, name), node)
    } else {
      node.work.append(.claimed(token, ObjectKey(id, name)))
    }
  }

  private func put(_ token: AttemptToken, _ key: ObjectKey, _ node: SimulatedNode) throws {
    let content = Array(key.name.utf8)
    contents["\(key)"] = content
    let stored: StoredFile
    do { stored = try node.blobs.put(try node.file(content), as: key, makesFolder: false) } catch {
      if chance(50) { node.blobs.removeResults(of: token, in: key.recording) }
      _ = try node.catalog.giveBack(token, interrupted: true, hasWritten: true)
      throw error
    }
    if chance(70) {
      try finish(token, stored, world.now, node)
    } else {
      node.work.append(.put(token, stored, since: world.now))
    }
  }

  private func finish(
    _ token: AttemptToken, _ stored: StoredFile, _ since: Timestamp, _ node: SimulatedNode
  ) throws {
    let key = stored.key
    let isWaveform = key.name.hasPrefix("waveform")
    if isWaveform { waveforms[key.recording] = nil }
    // As in `rename`.
    var known: ObjectKey?
    defer { if isWaveform { waveforms[key.recording] = known } }
    let before = counts["interruptions"]
    let ended = try naming(since: since) {
      if isWaveform {
        return try node.catalog.finish(token, with: "{}") { ($0.waveformState, $0.waveformKey) = (.ready, key) }
      }
      let conversion = Conversion(
        recording: key.recording, format: "mp3", key: key, bytes: stored.bytes, sha256: stored.sha256,
        usedAt: world.now)
      // There is room for two, so most are discarded.
      return try node.catalog.keep(conversion, limit: 160, finishing: token, with: "{}").job
    }
    guard ended.written != nil else { return node.blobs.removeResults(of: token, in: key.recording) }
    if counts["interruptions"] == before { known = key }
    count(isWaveform ? "waveforms" : "conversions")
  }

  private func delete(_ node: SimulatedNode) throws {
    guard let id = anyRecording() else { return }
    audio[id] = nil
    guard try node.catalog.deleteRecording(id) != nil else { return }
    count("deletions")
    if chance(70) { try node.blobs.remove(id) }
  }

  private func rename(_ node: SimulatedNode) throws {
    guard let id = anyRecording() else { return }
    let name = "\(Int.random(in: 0..<1_000_000, using: &random))"
    names[id] = nil
    // Known only if the answer comes and no other node has acted.
    var known: String?
    defer { names[id] = known }
    let before = counts["interruptions"]
    guard try node.catalog.update(id, { $0.name = name }) != nil else { return }
    if counts["interruptions"] == before { known = name }
  }

  private func read(_ node: SimulatedNode) throws {
    guard let id = anyRecording(), let key = try node.catalog.recording(id)?.audioKey else { return }
    let expected = audio[id]
    let found = try node.store.localFile(key).withPath(CacheTest.contents)
    // It may have been deleted meanwhile.
    guard let expected, audio[id] != nil else { return }
    if found.map({ isSame($0, expected) }) != true { violations.append("\(key) was read with other bytes") }
    count("reads")
  }
}
