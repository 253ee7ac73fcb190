import PresentRows
import Testing

@testable import Storage

@Suite(.onEveryEngine) struct BatchCatalogTests {
  let folder: TemporaryFolder
  let catalog: Catalog

  init() throws {
    folder = try TemporaryFolder()
    catalog = try Catalog(at: folder("catalog.sqlite"))
  }

  private func batch(
    of recordings: [RecordingID], for tenant: Tenant = .none, client: String = "c"
  ) throws -> Batch {
    let batch = Batch(
      of: tenant, client: client, kind: .loudness, parameters: "{}", total: recordings.count, at: catalog.time)
    try catalog.insert(batch, of: recordings)
    return batch
  }

  private func now(_ batch: Batch) throws -> Batch { try #require(try catalog.batch(batch.id)) }

  @Test("each recording has one turn, in order, also of two nodes that read the same turn")
  func turns() throws {
    let sources = [sample(), sample()]
    for source in sources { try catalog.insert(source) }
    let first = try batch(of: sources.map(\.id))
    #expect(try catalog.nextRecording(of: first) == sources[0].id)
    let jobs = sources.map { Job(kind: .loudness, recording: $0.id, createdAt: .now, batch: first.id) }
    try catalog.insert(jobs[0], next: first)
    #expect(throws: StorageError.changedMeanwhile) { try catalog.insert(jobs[1], next: first) }
    let second = try now(first)
    #expect(second.begun == 1 && second.state == .running && first.state == .queued)
    #expect(try catalog.nextRecording(of: second) == sources[1].id)
    try catalog.insert(jobs[1], next: second)
    #expect(try catalog.nextRecording(of: now(first)) == nil)
    #expect(try catalog.of(.none).jobs(of: first.id, limit: 9).map(\.id) == [jobs[1].id, jobs[0].id])
  }

  @Test("whatever ends a job counts it, and the last one ends the batch")
  func counting() throws {
    let sources = (0..<3).map { _ in sample() }
    for source in sources { try catalog.insert(source) }
    let batch = try batch(of: sources.map(\.id) + [RecordingID()])
    for source in sources {
      try catalog.insert(Job(kind: .loudness, recording: source.id, createdAt: .now, batch: batch.id), next: now(batch))
    }
    let jobs = try catalog.of(.none).jobs(of: batch.id, limit: 9)
    try catalog.pass(.failed, next: now(batch))
    _ = try catalog.cancel(jobs[0].id)
    _ = try catalog.deleteRecording(jobs[1].recording)
    #expect(try now(batch).cancelled == 2 && now(batch).finishedAt == nil)
    try catalog.update(jobs[2].id) { ($0.state, $0.finishedAt) = (.succeeded, .now) }
    // A later change of an ended job counts nothing.
    try catalog.update(jobs[2].id) { $0.progress = 1 }
    let ended = try now(batch)
    #expect(ended.succeeded == 1 && ended.failed == 1 && ended.cancelled == 2 && ended.state == .failed)
    #expect(ended.finishedAt != nil)
    #expect(try catalog.openBatches(limit: 9).isEmpty)
  }

  @Test("a canceled batch takes no more turns, and ends when its jobs have")
  func cancelling() throws {
    let source = sample()
    try catalog.insert(source)
    let batch = try batch(of: [source.id] + (0..<9).map { _ in RecordingID() })
    let job = Job(kind: .loudness, recording: source.id, createdAt: .now, batch: batch.id)
    try catalog.insert(job, next: batch)
    #expect(throws: StorageError.changedMeanwhile) { try catalog.of(.none).cancel(batch.id) { _ in false } }
    let cancelled = try #require(try catalog.of(.none).cancel(batch.id) { _ in true })
    #expect(cancelled.cancelled == 9 && cancelled.finishedAt == nil && cancelled.state == .running)
    #expect(throws: StorageError.changedMeanwhile) { try catalog.pass(.failed, next: cancelled) }
    _ = try catalog.cancel(job.id)
    #expect(try now(batch).state == .cancelled && now(batch).cancelled == 10)
  }

  @Test("a client has a limited number of open batches, and a tenant's don't exist for another")
  func limits() throws {
    let (ours, theirs) = (try #require(Tenant("ours")), try #require(Tenant("theirs")))
    let first = try batch(of: [RecordingID()], for: ours)
    for _ in 1..<Catalog.openBatchLimit { _ = try batch(of: [RecordingID()], for: ours) }
    #expect(throws: StorageError.limitReached("open_batches", limit: 100)) { try batch(of: [RecordingID()], for: ours) }
    _ = try batch(of: [RecordingID()], for: theirs)
    try catalog.pass(.failed, next: first)
    let last = try batch(of: [RecordingID()], for: ours)
    #expect(
      try catalog.of(theirs).batch(first.id) == nil && catalog.of(theirs).batches(limit: 9, before: nil).count == 1)
    #expect(try catalog.of(theirs).cancel(first.id) { _ in true } == nil)
    #expect(try catalog.of(ours).batches(limit: 1, before: nil).map(\.id) == [last.id])
    #expect(try catalog.of(ours).batches(limit: 999, before: last.id).count == 100)
  }
}
