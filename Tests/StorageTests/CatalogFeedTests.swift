import PresentRows
import Synchronization
import Terms
import Testing

@testable import Storage

/// Two catalogs of one database tell each other what they change.
struct CatalogFeedTests {
  /// A bus in memory, which delivers at once.
  private final class Bus: ChangeBus {
    let byteLimit = 600
    let age = Mutex<Double?>(0)
    let sent = Mutex<[String]>([])
    private let handlers = Mutex<[@Sendable (BusEvent) -> Void]>([])

    var secondsSinceHeard: Double? { age.withLock { $0 } }

    func send(_ message: String, in session: any SQLSession) throws(StorageError) { deliver(.message(message)) }
    func send(_ message: String) throws(StorageError) { deliver(.message(message)) }
    func listen(_ handler: @escaping @Sendable (BusEvent) -> Void) { handlers.withLock { $0.append(handler) } }
    func stopListening() { handlers.withLock { $0 = [] } }

    func deliver(_ event: BusEvent) {
      if case .message(let message) = event { sent.withLock { $0.append(message) } }
      for handler in handlers.withLock({ $0 }) { handler(event) }
    }
  }

  private let folder: TemporaryFolder
  private let bus = Bus()
  private let here, there: Catalog

  init() throws {
    folder = try TemporaryFolder()
    let path = folder("catalog.sqlite")
    let terms = LeaseHolder.Terms()
    here = Catalog(
      engine: try SQLiteEngine(path: path), holder: LeaseHolder(name: "here", terms: terms), bus: bus)
    there = Catalog(
      engine: try SQLiteEngine(path: path), holder: LeaseHolder(name: "there", terms: terms), bus: bus)
  }

  private static func recording() -> Recording {
    Recording(
      name: "clip.wav", format: SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 1000, channels: 1, frames: 9)
    )
  }

  private func listen() {
    here.listenToOthers({ _ in }, onInterruption: { _ in })
  }

  @Test func aChangeElsewhereCountsHere() throws {
    listen()
    let recording = Self.recording()
    let (all, own) = (here.changeCount, here.changeCount(of: recording.id))
    try there.insert(recording)
    #expect(here.changeCount > all)
    #expect(here.changeCount(of: recording.id) > own)
    #expect(try here.recording(recording.id) != nil)
  }

  @Test func oneIsNotToldOfItsOwnChanges() throws {
    let counted = Counted()
    here.listenToOthers({ _ in counted.add() }, onInterruption: { _ in })
    try here.insert(Self.recording())
    #expect(counted.count == 0)
    try there.insert(Self.recording())
    #expect(counted.count == 1)
  }

  @Test func oneIsToldOfItsOwnChangesOnceItDoesNotKnowWhichWereMade() throws {
    let counted = Counted()
    here.listenToOthers({ _ in counted.add() }, onInterruption: { _ in })
    let recording = Self.recording()
    let before = here.changeCount(of: recording.id)
    #expect(throws: StorageError.outcomeUnknown) {
      try here.write { (_: CatalogTransaction) throws -> Int in throw StorageError.outcomeUnknown }
    }
    #expect(here.changeCount(of: recording.id) > before)
    try here.insert(recording)
    #expect(counted.count == 1)
  }

  @Test func aJobIsToldWithItsStateItsAttemptAndItsNode() throws {
    let jobs = Jobs()
    here.listenToOthers(
      { if case .changes(let changes) = $0 { jobs.add(changes.jobs) } }, onInterruption: { _ in })
    let recording = Self.recording()
    let job = Job(kind: .waveform, recording: recording.id)
    try there.insert(recording, jobs: [job])
    let claimed = try #require(try there.claim(job.id).written)
    let last = try #require(jobs.all.last?.job)
    #expect(jobs.all.first?.job?.state == .queued)
    #expect(last.state == .running && last.token == claimed.token && last.node == there.holder.node)
    #expect(last.recording == recording.id && last.kind == .waveform)
  }

  @Test func whileTheFeedIsSilentNothingCountsAsCurrent() throws {
    let id = RecordingID()
    #expect(here.changeCount == here.changeCount)
    for age in [nil, 5.1] {
      bus.age.withLock { $0 = age }
      #expect(here.changeCount != here.changeCount)
      #expect(here.changeCount(of: id) != here.changeCount(of: id))
    }
    bus.age.withLock { $0 = 4.9 }
    #expect(here.changeCount == here.changeCount)
  }

  @Test(
    "what can't be read, or was missed, counts as a change of everything",
    arguments: [
      BusEvent.message("{"), .message(#"{"node":"x","jobs":[{"id":"none"}]}"#), .message(#"{"node":"x","new":1}"#),
      .connected,
    ])
  func anything(event: BusEvent) {
    listen()
    let (all, one) = (here.changeCount, here.changeCount(of: RecordingID()))
    bus.deliver(event)
    #expect(here.changeCount > all)
    #expect(here.changeCount(of: RecordingID()) > one || one == 0)
  }

  @Test func manyChangesAreToldInSeveralMessagesOrAsMuch() throws {
    let tenant = try #require(Tenant(String(repeating: "t", count: 100)))
    func changes(_ count: Int) -> CatalogChanges {
      CatalogChanges(recordings: (0..<count).map { _ in Owned(RecordingID(), of: tenant) })
    }
    let some = changes(12)
    let lines = CatalogMessage.lines(some, from: "n1", byteLimit: bus.byteLimit)
    #expect(lines.count > 1 && lines.allSatisfy { $0.utf8.count <= bus.byteLimit })
    var told: [Owned<Recording>] = []
    for line in lines {
      guard case (let node, .changes(let part))? = CatalogMessage.parse(line) else {
        Issue.record("\(line)")
        continue
      }
      #expect(node == "n1")
      told += part.recordings
    }
    #expect(told == some.recordings, "each once, in order")
    let much = CatalogMessage.lines(changes(1000), from: "n1", byteLimit: bus.byteLimit)
    #expect(much.count == 1)
    #expect(CatalogMessage.parse(much[0])?.message == .much)
    #expect(CatalogMessage.lines(CatalogChanges(), from: "n1", byteLimit: bus.byteLimit) == [])
  }

  @Test func progressArrivesAsItWasTold() throws {
    let token = AttemptToken(job: JobID(), attempt: 3, nonce: AttemptToken.newNonce())
    let progress = AttemptProgress(token, report: #"{"progress":{"fraction":0.5}}"#)
    let line = CatalogMessage.progress(progress).line(from: "n1")
    #expect(CatalogMessage.parse(line)?.message == .progress(progress))
    let addressed = AttemptProgress(token, report: progress.report, address: "10.0.0.1:8090", proof: "0a")
    let told = CatalogMessage.progress(addressed).line(from: "n1")
    #expect(CatalogMessage.parse(told)?.message == .progress(addressed))
    // A node without --cluster-listen has no address. Members that a later version adds are ignored.
    let before =
      #"{"node":"n1","progress":{"attempt":3,"job":"\#(token.job)","nonce":"\#(token.nonce)","report":"{}"}}"#
    let later = before.replacing(#""report""#, with: #""a member of the next version":[1],"report""#)
    for line in [before, later] {
      #expect(CatalogMessage.parse(line)?.message == .progress(AttemptProgress(token, report: "{}")))
    }
  }

  private final class Counted: Sendable {
    private let value = Atomic(0)
    var count: Int { value.load(ordering: .relaxed) }
    func add() { value.wrappingAdd(1, ordering: .relaxed) }
  }

  private final class Jobs: Sendable {
    private let value = Mutex<[JobChange]>([])
    var all: [JobChange] { value.withLock { $0 } }
    func add(_ jobs: [JobChange]) { value.withLock { $0 += jobs } }
  }
}
