import Synchronization
import Terms
import Testing

@testable import Storage

/// The descriptions of recordings in a store that other nodes write to.
@Suite(.onEveryEngine) struct DescriptionTests {
  private let folder: TemporaryFolder
  private let engine: CountedEngine
  private let catalog: Catalog
  private let store = Store()
  private let hand = ManualClock()

  /// Remembers what was described, and does something else first.
  private final class Store: DescriptionStore {
    let described = Mutex<[String]>([])
    let before = Mutex<[@Sendable () throws -> Void]>([])
    /// Whether the node is killed once it has described something.
    let kills = Mutex(false)

    func describe(_ recording: Recording) throws(StorageError) {
      let action = before.withLock { $0.popLast() }
      try? action?()
      described.withLock { $0.append(recording.name) }
      if kills.withLock({ $0 }) { throw .storeUnreachable(detail: "killed") }
    }

    func removeMark(of id: RecordingID) {}
    func checkClaim() {}
    var hasOtherWriters: Bool { true }
  }

  init() throws {
    folder = try TemporaryFolder()
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
    let keeper = DescriptionKeeper(store: store, later: later, clock: hand.clock) { [store] in
      if !store.kills.withLock({ $0 }) { Issue.record($1, "\($0)") }
    }
    catalog.keepDescriptions(keeper)
  }

  @Test("whoever changes a recording promises its description, which what was described before doesn't settle")
  func promises() throws {
    catalog.nameDeletedObjects()
    let recording = try insert()
    let description = ObjectKey.description(of: recording.id)
    let earlier = try #require(try catalog.undescribed(recording.id))
    try catalog.update(recording.id) { $0.name = "other" }
    let later = try #require(try catalog.settle(earlier))
    #expect(try later.recording.name == "other" && catalog.announcedObjects(of: recording.id) == [description])
    let last = try #require(try catalog.settle(later))
    #expect(last.recording == later.recording && last.promise == nil)
    #expect(try catalog.announcedObjects(of: recording.id) == [])
  }

  @Test("describing a change costs one read and one write besides the change")
  func costs() throws {
    catalog.nameDeletedObjects()
    let recording = try insert()
    keep()
    let (reads, writes) = (engine.reads, engine.calls)
    try catalog.update(recording.id) { $0.name = "other" }
    #expect(engine.reads - reads == 1 && engine.calls - writes == 2)
    #expect(store.described.withLock { $0 } == ["other"])
    #expect(try catalog.announcedObjects(of: recording.id) == [])
  }

  @Test("claiming a job asks no store, since the description stays the same, and ending it describes the recording")
  func claims() throws {
    catalog.nameDeletedObjects()
    let recording = try insert()
    let job = Job(kind: .waveform, recording: recording.id)
    try catalog.insert(job)
    try catalog.update(recording.id) { ($0.waveformState, $0.waveformJob) = (.queued, job.id) }
    _ = try catalog.settle(#require(try catalog.undescribed(recording.id)))
    keep()
    let claimed = try #require(try catalog.claim(job.id, building: { $0.recording }).written)
    #expect(try catalog.recording(recording.id)?.waveformState == .building)
    #expect(store.described.withLock { $0 } == [] && claimed.job.state == .running)
    #expect(try catalog.announcedObjects(of: recording.id) == [])
    try catalog.update(recording.id) { $0.waveformState = .failed }
    #expect(store.described.withLock { $0 } == [recording.name])
  }

  @Test("a change is told before a store that may be slow is asked to describe it")
  func order() throws {
    let recording = try insert()
    keep()
    let told = Mutex(false)
    catalog.whenChanged { _ in told.withLock { $0 = true } }
    store.before.withLock { $0 = [{ #expect(told.withLock { $0 }) }] }
    try catalog.update(recording.id) { $0.name = "other" }
    #expect(store.described.withLock { $0 } == ["other"])
  }

  @Test("in a folder of several nodes, the upkeep of any writes what a killed node has left undescribed")
  func overdue() throws {
    let recording = try insert()
    keep()
    store.kills.withLock { $0 = true }
    try catalog.update(recording.id) { $0.name = "other" }
    store.kills.withLock { $0 = false }
    try catalog.describeOverdue()
    #expect(store.described.withLock { $0 } == ["other"], "its node has a minute")
    try catalog.write { try $0.run("UPDATE garbage SET due = 0 WHERE object LIKE 'describe/%'") }
    try catalog.describeOverdue()
    #expect(store.described.withLock { $0 } == ["other", "other"])
    #expect(try !catalog.isDescriptionDoubtful(of: recording.id))
    try catalog.describeOverdue()
    #expect(store.described.withLock { $0.count } == 2)
  }

  @Test("what another node has described isn't described again")
  func describedByOthers() throws {
    catalog.nameDeletedObjects()
    let recording = try insert()
    #expect(try catalog.settle(#require(try catalog.undescribed(recording.id)))?.promise == nil)
    keep()
    #expect(catalog.describe(recording.id))
    #expect(store.described.withLock { $0 } == [])
  }

  @Test("a recording that changes while it is described is described as it is then, and its promise stays until that")
  func changes() throws {
    catalog.nameDeletedObjects()
    let recording = try insert()
    let other = Catalog(engine: engine, holder: LeaseHolder(name: "other", terms: LeaseHolder.Terms()))
    other.nameDeletedObjects()
    keep()
    store.before.withLock { $0 = [{ try other.update(recording.id) { $0.name = "newer" } }] }
    try catalog.update(recording.id) { $0.name = "new" }
    #expect(store.described.withLock { $0 } == ["new", "newer"])
    #expect(try catalog.announcedObjects(of: recording.id) == [])
    // The other one has described its change before, and its description may have been overwritten by this one.
    store.before.withLock {
      $0 = [
        {
          try other.update(recording.id) { $0.name = "newest" }
          _ = try other.undescribed(recording.id).map(other.settle)
        }
      ]
    }
    try catalog.update(recording.id) { $0.name = "old" }
    #expect(store.described.withLock { $0.suffix(2) } == ["old", "newest"])
  }

  @Test("what clients change is described later, once, and not at all if too much waits, since a row promises it")
  func later() throws {
    catalog.nameDeletedObjects()
    let steps = Mutex<[@Sendable () -> Void]>([])
    let isFull = Mutex(false)
    keep(later: { step in
      if isFull.withLock({ $0 }) { return false }
      steps.withLock { $0.append(step) }
      return true
    })
    var recording = sample()
    (recording.audioKey, recording.bytes) = (ObjectKey(recording.id, "audio.mp3"), 9)
    let job = Job(kind: .waveform, recording: recording.id)
    recording.waveformJob = job.id
    let description = ObjectKey.description(of: recording.id)
    try catalog.announce(recording.objects)
    try catalog.insert(recording, jobs: [job])
    #expect(store.described.withLock { $0 } == [recording.name], "the sound is acknowledged")
    let tenant = catalog.of(.none)
    try tenant.update(recording.id) { $0.name = "second" }
    _ = try tenant.update(recording.id, if: { _ in true }, inserting: nil) { $0.name = "third" }
    _ = try tenant.cancel(job.id)
    #expect(store.described.withLock { $0.count } == 1 && steps.withLock { $0.count } == 1)
    #expect(try catalog.announcedObjects(of: recording.id) == [description])
    steps.withLock { $0.popLast() }?()
    #expect(store.described.withLock { $0 } == [recording.name, "third"])
    #expect(try catalog.announcedObjects(of: recording.id) == [])
    isFull.withLock { $0 = true }
    try tenant.update(recording.id) { $0.name = "fourth" }
    #expect(try catalog.announcedObjects(of: recording.id) == [description])
    isFull.withLock { $0 = false }
    try tenant.update(recording.id) { $0.name = "fifth" }
    steps.withLock { $0.popLast() }?()
    #expect(store.described.withLock { $0 } == [recording.name, "third", "fifth"])
  }

  @Test("without promises, as in a folder, what clients change is described before the answer")
  func atOnce() throws {
    let recording = try insert()
    keep(later: { _ in
      Issue.record("nothing promises it")
      return true
    })
    try catalog.of(.none).update(recording.id) { $0.name = "other" }
    #expect(store.described.withLock { $0 } == ["other"])
  }

  @Test("a node that was stopped before it described what it had read has it described again, even if it is killed")
  func stopped() throws {
    catalog.nameDeletedObjects()
    let recording = try insert()
    let other = Catalog(engine: engine, holder: LeaseHolder(name: "other", terms: LeaseHolder.Terms()))
    other.nameDeletedObjects()
    keep()
    engine.afterRead.withLock {
      $0 = { [hand] in
        // It has read the row, and is stopped.
        hand.advance(by: 6)
        try other.update(recording.id) { $0.name = "newer" }
        _ = try other.undescribed(recording.id).map(other.settle)
      }
    }
    store.kills.withLock { $0 = true }
    try catalog.update(recording.id) { $0.name = "older" }
    #expect(store.described.withLock { $0 } == ["older"])
    #expect(try catalog.announcedObjects(of: recording.id) == [])
    #expect(try catalog.isDescriptionDoubtful(of: recording.id))
  }

  @Test("in a folder without promises, a recording that changes while it is described is described again")
  func sharedFolder() throws {
    let recording = try insert()
    keep()
    store.before.withLock {
      $0 = [{ [catalog] in _ = try catalog.engine.write { try $0.run("UPDATE recordings SET name = 'newer'") } }]
    }
    try catalog.update(recording.id) { $0.name = "new" }
    #expect(store.described.withLock { $0 } == ["new", "newer"])
  }
}
