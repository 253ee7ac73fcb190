import PresentRows
import Testing

@testable import AudioService
@testable import Jobs
@testable import Storage

/// Resumable uploads to a store on another machine, which other nodes use too.
@Suite struct RemoteUploadTests {
  private let bench: TestBench
  private let blobs: FailingStore
  private let spool: RemoteSpool
  private let uploads: UploadSessionTable
  private let clock = TestClock()

  /// Of three threads, transfers have two, and one client's have one. One more of the client may wait.
  init() throws {
    let holder = LeaseHolder(name: "node", terms: LeaseHolder.Terms(), now: clock.now)
    // So that none is triggered by the clock, however slow the machine is.
    (bench, blobs) = try TestBench.failingStore(holder: holder) { $0.uploadCheckpointSeconds = 3600 }
    let spool = RemoteSpool(bench.store)
    self.spool = spool
    blobs.adopting.withLock { $0 = { () throws(StorageError) in spool.pass(.adoption) } }
    uploads = Self.uploads(of: bench, spool, storeWork: StoreQueue(threads: 3, waitingLimit: 2))
  }

  private static func uploads(
    of bench: TestBench, _ spool: RemoteSpool, storeWork: StoreQueue
  ) -> UploadSessionTable {
    let context = bench.context
    return UploadSessionTable(
      .init(
        configuration: bench.configuration, catalog: bench.catalog, blobs: context.blobs, spool: spool,
        admission: context.admission, metrics: context.metrics, accounts: context.accounts, storeWork: storeWork,
        heldKeys: context.heldKeys),
      clock: context.deletionClock, work: context.work, log: context.log)
  }

  /// A session, and the request that has sent all four bytes of its upload.
  private struct Sent {
    let session: UploadSession
    let writer: UploadWriter
  }

  private func send(
    by client: String, _ checksum: UploadChecksum? = nil, to uploads: UploadSessionTable? = nil
  ) async throws -> Sent {
    let session = try await create(by: client, in: uploads)
    let writer = try await session.begin(at: 0, checksum: checksum)
    try await session.append(Array("RIFF".utf8), from: writer)
    return Sent(session: session, writer: writer)
  }

  private func create(by client: String, in other: UploadSessionTable? = nil) async throws -> UploadSession {
    let uploads = other ?? self.uploads
    let id = try await uploads.create(length: 4, metadata: nil, of: .none, for: Client(key: client))
    return try await uploads.using(id, of: .none) { $0 }
  }

  /// The catalog as another node has it.
  private func other() throws(StorageError) -> Catalog {
    try Catalog(
      path: bench.store.catalogPath, holder: LeaseHolder(name: "other", terms: LeaseHolder.Terms(), now: clock.now))
  }

  /// Marks the upload as another node does that has made a recording of it.
  private func finishElsewhere(_ id: UploadID, as recording: RecordingID) throws(StorageError) {
    try other().write { db in
      try db.run("UPDATE uploads SET recording = ? WHERE id = ?", [recording.text, id.text])
    }
  }

  @Test(
    "uploads that wait for a silent store hold no more threads than transfers may have; one too many gets 503",
    arguments: [RemoteSpool.Call.checkpoint, .join, .adoption])
  func silentStore(call: RemoteSpool.Call) async throws {
    var sent: [Sent] = []
    for client in ["a", "b", "a", "a"] { sent.append(try await send(by: client)) }
    if call != .checkpoint { for sent in sent { _ = try await sent.session.end(sent.writer, isWhole: true) } }
    let end = { @Sendable (sent: Sent) async throws -> UploadStatus in
      call == .checkpoint ? try await sent.session.end(sent.writer, isWhole: true) : try await sent.session.finish()
    }
    let idle = try await create(by: "a")
    spool.hold(call)
    let refused = try await withThrowingTaskGroup(of: (Sent, Result<UploadStatus, any Error>).self) { group in
      func start(_ sent: Sent) {
        group.addTask {
          do { return (sent, .success(try await end(sent))) } catch { return (sent, .failure(error)) }
        }
      }
      for sent in sent[..<2] { start(sent) }
      try await bench.eventually { spool.hanging == RemoteSpool.limit }
      defer { spool.release() }
      for sent in sent[2...] { start(sent) }
      // One of them waits; the other can't.
      let (refused, result) = try #require(try await group.next())
      let answer = problem(for: try #require(throws: (any Error).self) { try result.get() })
      #expect(answer.code == "media_unavailable" && answer.fields["Retry-After"] != nil)
      #expect(try await idle.status().offset == 0, "no bytes of it wait for the store")
      #expect(spool.hanging == RemoteSpool.limit)
      spool.release()
      for try await (_, result) in group {
        let status = try result.get()
        #expect(status.isComplete && (status.recording != nil) == (call != .checkpoint))
      }
      return refused
    }
    #expect(spool.heldCount == RemoteSpool.limit)
    // Nothing is lost, and the next request goes on.
    #expect(try await refused.session.status().offset == 4)
    #expect(try await refused.session.finish().recording != nil)
    await bench.runner.stop()
  }

  @Test func whatIsAskedOfAnUploadDuringItsCheckpointIsAnsweredAfterIt() async throws {
    let sent = try await send(by: "a")
    spool.hold(.checkpoint)
    async let ended = sent.session.end(sent.writer, isWhole: true)
    try await bench.eventually { spool.hanging == 1 }
    async let offset = sent.session.status().offset
    async let writer = sent.session.begin(at: 4, checksum: nil)
    spool.release()
    #expect(try await ended.offset == 4)
    #expect(try await offset == 4)
    _ = try await writer
    #expect(spool.heldCount == 1)
  }

  @Test(
    "an upload whose bytes are gone because another node has made a recording of it is answered with that",
    arguments: [RemoteSpool.Call.join, .adoption])
  func finishedMeanwhile(call: RemoteSpool.Call) async throws {
    let sent = try await send(by: "a")
    let (id, recording) = (sent.session.id, RecordingID())
    _ = try await sent.session.end(sent.writer, isWhole: true)
    let fail = { @Sendable [self] () throws(StorageError) in
      try finishElsewhere(id, as: recording)
      throw .objectStore(detail: "no such key")
    }
    if call == .join { spool.joining.withLock { $0 = fail } } else { blobs.adopting.withLock { $0 = fail } }
    #expect(try await sent.session.finish().recording == recording)
    #expect(try bench.catalog.recordings(limit: 1).isEmpty)
  }

  @Test func anUploadThatAnotherNodeFinishesDuringTheProbeIsNotPutOnceMore() async throws {
    let sent = try await send(by: "a")
    let (id, recording, puts) = (sent.session.id, RecordingID(), Counter())
    _ = try await sent.session.end(sent.writer, isWhole: true)
    spool.joining.withLock { $0 = { [self] () throws(StorageError) in try finishElsewhere(id, as: recording) } }
    blobs.adopting.withLock { $0 = { () throws(StorageError) in puts.add(1) } }
    #expect(try await sent.session.finish().recording == recording)
    #expect(puts.value == 0)
  }

  @Test(
    "an upload that the store fails, and no other node has finished, is answered with the failure and can go on anywhere",
    arguments: [RemoteSpool.Call.join, .adoption])
  func failed(call: RemoteSpool.Call) async throws {
    let sent = try await send(by: "a")
    _ = try await sent.session.end(sent.writer, isWhole: true)
    let failure = StorageError.storeUnreachable(detail: "no answer in time")
    let fail = { @Sendable () throws(StorageError) in throw failure }
    if call == .join { spool.joining.withLock { $0 = fail } } else { blobs.adopting.withLock { $0 = fail } }
    await #expect(throws: failure) { try await sent.session.finish() }
    let (other, scope, key) = (try other().of(.none), "finishing an upload", sent.session.id.text)
    #expect(try other.holdKey(scope: scope, key: key) == .held(nil), "another node may try at once")
    try other.releaseKey(scope: scope, key: key)
    spool.joining.withLock { $0 = nil }
    blobs.adopting.withLock { $0 = nil }
    #expect(try await sent.session.finish().recording != nil)
    await bench.runner.stop()
  }

  @Test(
    "while another node makes the recording of an upload, this one says so at once; it takes over when that is lost")
  func claimedElsewhere() async throws {
    let sent = try await send(by: "a")
    let (id, joins) = (sent.session.id, Counter())
    _ = try await sent.session.end(sent.writer, isWhole: true)
    spool.joining.withLock { $0 = { () throws(StorageError) in joins.add(1) } }
    let (other, scope) = (try other().of(.none), "finishing an upload")
    #expect(try other.holdKey(scope: scope, key: id.text) == .held(nil))
    for _ in 0..<2 {
      let error = await #expect(throws: ServiceError.self) { try await sent.session.finish() }
      let answer = problem(for: try #require(error))
      #expect(answer.status == .locked && answer.code == "upload_locked" && answer.fields["Retry-After"] != nil)
      // Just before the end of the lease.
      clock.advance(14.9)
    }
    #expect(joins.value == 0)
    #expect(try bench.catalog.upload(id)?.writer == sent.session.upload?.writer, "nothing was taken over")
    clock.advance(1)
    #expect(try await sent.session.finish().recording != nil)
    #expect(joins.value == 1)
    #expect(try other.holdKey(scope: scope, key: id.text) == .held(nil), "it was given back")
    await bench.runner.stop()
  }

  @Test("a request whose end can't wait for the store has ended: what it sent counts, and it sends no more")
  func refusedEnd() async throws {
    let uploads = Self.uploads(of: bench, spool, storeWork: StoreQueue(threads: 3, waitingLimit: 0))
    var digest = MessageDigest(.sha1)
    digest.update(Array("RIFF".utf8).span)
    let checksum = UploadChecksum(algorithm: .sha1, bytes: digest.bytes())
    let (first, second) = (try await send(by: "a", to: uploads), try await send(by: "a", checksum, to: uploads))
    spool.hold(.checkpoint)
    async let ended = first.session.end(first.writer, isWhole: true)
    try await bench.eventually { spool.hanging == 1 }
    let error = await #expect(throws: StorageError.self) { try await second.session.end(second.writer, isWhole: true) }
    #expect(error?.isAboutStore == true)
    #expect(second.session.writer == nil)
    await #expect(throws: ServiceError.self) { try await second.session.append([1], from: second.writer) }
    spool.release()
    #expect(try await ended.offset == 4)
    // The thread of the first may still be about to take on other work.
    try await bench.eventually { (try? await second.session.status().offset) == 4 }
  }
}
