import PresentRows
import Synchronization
import Terms
import Testing

@testable import Storage

/// The descriptions of recordings in a store that other nodes write to.
@Suite(.onEveryEngine) struct DescriptionTests {
  private let folder: TemporaryFolder
  private let engine: CountedEngine
  private let catalog: Catalog
  private let store: Store

  /// Remembers what was described, and does something else first.
  private final class Store: PassingStore {
    let store: any ObjectStore
    let described = Mutex<[Recording]>([])
    let before = Mutex<[@Sendable () throws -> Void]>([])
    let fails = Mutex(false)

    init(_ store: any ObjectStore) { self.store = store }

    func put(_ objects: [NewObject], begins: Bool) throws(StorageError) -> [FoundObject?] {
      let action = before.withLock { $0.popLast() }
      try? action?()
      if fails.withLock({ $0 }) { throw .storeUnreachable(detail: "fails") }
      for new in objects {
        guard case .bytes(let json) = new.content, let recording = Recording(describedBy: json) else { continue }
        described.withLock { $0.append(recording) }
      }
      return objects.map { _ in nil }
    }

    var names: [String] { described.withLock { $0.map(\.name) } }
  }

  init() throws {
    folder = try TemporaryFolder()
    store = Store(try MediaStore(directory: folder("media")).objects)
    engine = CountedEngine(try CatalogEngine.current.open(folder("catalog.sqlite")))
    catalog = Catalog(engine: engine, holder: LeaseHolder(name: "node", terms: LeaseHolder.Terms()))
  }

  private func insert() throws -> Recording {
    var recording = sample()
    (recording.audioKey, recording.bytes) = (ObjectKey(recording.id, "audio.mp3"), 9)
    try catalog.announce(recording.objects)
    try catalog.insert(recording)
    return recording
  }

  private func keep(later: DescriptionKeeper.Start? = nil) {
    catalog.keepDescriptions(in: Descriptions(store, in: nil), later: later) { [store] in
      if !store.fails.withLock({ $0 }) { Issue.record($1, "\($0)") }
    }
  }

  private func announced(_ recording: Recording) throws -> Set<ObjectKey> {
    Set(try catalog.announcedObjects(of: recording.id))
  }

  @Test("each change names another description and records that it is to be written, and that the one before may go")
  func names() throws {
    catalog.nameDeletedObjects()
    let first = try insert()
    #expect(try announced(first) == [first.descriptionKey])
    keep()
    let second = try #require(try catalog.update(first.id) { $0.name = "second" })
    #expect(try catalog.recording(first.id) == second && second.version > first.version)
    #expect(store.described.withLock { $0 } == [second])
    #expect(try announced(first) == [first.descriptionKey], "the new one was written")
    #expect(try catalog.namedObjects(of: first.id).contains(second.descriptionKey))
    #expect(try !catalog.namedObjects(of: first.id).contains(first.descriptionKey))
  }

  @Test("describing a change costs one write besides the change")
  func costs() throws {
    catalog.nameDeletedObjects()
    let recording = try insert()
    keep()
    let (reads, writes) = (engine.reads, engine.calls)
    try catalog.update(recording.id) { $0.name = "other" }
    #expect(engine.reads == reads && engine.calls - writes == 2)
  }

  @Test("claiming a job asks no store, since the description stays the same, and ending it describes the recording")
  func claims() throws {
    catalog.nameDeletedObjects()
    let recording = try insert()
    let job = Job(kind: .waveform, recording: recording.id)
    try catalog.insert(job)
    let queued = try #require(
      try catalog.update(recording.id) { ($0.waveformState, $0.waveformJob) = (.queued, job.id) })
    keep()
    let claimed = try #require(try catalog.claim(job.id, building: { $0.recording }).written)
    let building = try #require(try catalog.recording(recording.id))
    #expect(building.waveformState == .building && building.version == queued.version && claimed.job.state == .running)
    #expect(store.names == [])
    try catalog.update(recording.id) { $0.waveformState = .failed }
    #expect(store.names == [recording.name])
  }

  @Test("a change is told before a store that may be slow is asked to describe it")
  func order() throws {
    let recording = try insert()
    keep()
    let told = Mutex(false)
    catalog.whenChanged { _ in told.withLock { $0 = true } }
    store.before.withLock { $0 = [{ #expect(told.withLock { $0 }) }] }
    try catalog.update(recording.id) { $0.name = "other" }
    #expect(store.names == ["other"])
  }

  @Test("what a node couldn't describe, or was killed before, stays recorded, and so does a deletion meanwhile")
  func failures() throws {
    catalog.nameDeletedObjects()
    let first = try insert()
    keep()
    store.fails.withLock { $0 = true }
    let second = try #require(try catalog.update(first.id) { $0.name = "second" })
    #expect(try announced(first) == [first.descriptionKey, second.descriptionKey])
    #expect(try catalog.isDescriptionPromised(of: second) && !catalog.describe(first.id))
    store.fails.withLock { $0 = false }
    store.before.withLock { $0 = [{ [catalog] in _ = try catalog.deleteRecording(first.id) }] }
    #expect(catalog.describe(second))
    #expect(try announced(first).contains(second.descriptionKey), "its removal is recorded")
  }

  @Test("a recording that another node changes meanwhile has both descriptions, and the older one may go")
  func changes() throws {
    catalog.nameDeletedObjects()
    let first = try insert()
    keep()
    let other = Catalog(engine: engine, holder: LeaseHolder(name: "other", terms: LeaseHolder.Terms()))
    other.keepDescriptions(in: Descriptions(store, in: nil)) { Issue.record($1, "\($0)") }
    store.before.withLock { $0 = [{ try other.update(first.id) { $0.name = "newer" } }] }
    let older = try #require(try catalog.update(first.id) { $0.name = "older" })
    #expect(store.names == ["newer", "older"])
    #expect(try announced(first) == [first.descriptionKey, older.descriptionKey])
    let newest = store.described.withLock { $0.max { $0.version < $1.version } }
    #expect(try newest == catalog.recording(first.id))
  }

  @Test("what clients change is described later, once, as it is then, and not at all if too much waits")
  func later() throws {
    catalog.nameDeletedObjects()
    let steps = Mutex<[@Sendable () -> Void]>([])
    let isFull = Mutex(false)
    keep(later: { step in
      if isFull.withLock({ $0 }) { return false }
      steps.withLock { $0.append(step) }
      return true
    })
    let recording = try insert()
    #expect(store.names == [recording.name], "the sound is acknowledged")
    let tenant = catalog.of(.none)
    try tenant.update(recording.id) { $0.name = "second" }
    _ = try tenant.update(recording.id, if: { _ in true }, inserting: nil) { $0.name = "third" }
    #expect(store.names.count == 1 && steps.withLock { $0.count } == 1)
    steps.withLock { $0.popLast() }?()
    #expect(store.names == [recording.name, "third"])
    let third = try #require(try catalog.recording(recording.id))
    #expect(try !catalog.isDescriptionPromised(of: third))
    isFull.withLock { $0 = true }
    try tenant.update(recording.id) { $0.name = "fourth" }
    #expect(try catalog.isDescriptionPromised(of: #require(try catalog.recording(recording.id))))
    isFull.withLock { $0 = false }
    try tenant.update(recording.id) { $0.name = "fifth" }
    steps.withLock { $0.popLast() }?()
    #expect(store.names == [recording.name, "third", "fifth"])
  }

  @Test("without threads for it, what clients change is described before the answer")
  func atOnce() throws {
    let recording = try insert()
    keep()
    try catalog.of(.none).update(recording.id) { $0.name = "other" }
    #expect(store.names == ["other"])
  }
}
