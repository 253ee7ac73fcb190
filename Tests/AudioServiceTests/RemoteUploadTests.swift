import PresentRows
import Testing

@testable import AudioService
@testable import Jobs
@testable import Storage

/// Resumable uploads to a store on another machine, which other nodes use too.
@Suite struct RemoteUploadTests {
  private let bench: TestBench
  private let blobs: FailingBlobs
  private let spool: RemoteSpool
  private let uploads: UploadSessionTable

  /// Of three threads, transfers have two, and one client's have one. One more of the client may wait.
  init() throws {
    var made: FailingBlobs?
    bench = try TestBench(holder: LeaseHolder(name: "node", terms: LeaseHolder.Terms())) {
      // So that none is triggered by the clock, however slow the machine is.
      $0.uploadCheckpointSeconds = 3600
    } blobs: {
      let blobs = FailingBlobs($0)
      made = blobs
      return blobs
    }
    blobs = try #require(made)
    let spool = RemoteSpool(bench.store)
    self.spool = spool
    blobs.adopting.withLock { $0 = { () throws(StorageError) in spool.pass(.adoption) } }
    let context = bench.context
    uploads = UploadSessionTable(
      .init(
        configuration: bench.configuration, catalog: bench.catalog, blobs: blobs, spool: spool,
        admission: context.admission, metrics: context.metrics, accounts: context.accounts,
        storeWork: StoreQueue(threads: 3, waitingLimit: 2)),
      work: context.work, log: context.log)
  }

  /// A session, and the request that has sent all four bytes of its upload.
  private struct Sent {
    let session: UploadSession
    let writer: UploadWriter
  }

  private func send(by client: String) async throws -> Sent {
    let session = try await create(by: client)
    let writer = try await session.begin(at: 0, checksum: nil)
    try await session.append(Array("RIFF".utf8), from: writer)
    return Sent(session: session, writer: writer)
  }

  private func create(by client: String) async throws -> UploadSession {
    let id = try await uploads.create(length: 4, metadata: nil, of: .none, for: Client(key: client))
    return try await uploads.using(id, of: .none) { $0 }
  }

  /// Marks the upload as another node does that has made a recording of it.
  private func finishElsewhere(_ id: UploadID, as recording: RecordingID) throws(StorageError) {
    let other = try Catalog(path: bench.store.catalogPath, holder: LeaseHolder(name: "other", terms: .init()))
    try other.write { db in
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
    "an upload that the store fails, and no other node has finished, is answered with the failure and can go on",
    arguments: [RemoteSpool.Call.join, .adoption])
  func failed(call: RemoteSpool.Call) async throws {
    let sent = try await send(by: "a")
    _ = try await sent.session.end(sent.writer, isWhole: true)
    let failure = StorageError.storeUnreachable(detail: "no answer in time")
    let fail = { @Sendable () throws(StorageError) in throw failure }
    if call == .join { spool.joining.withLock { $0 = fail } } else { blobs.adopting.withLock { $0 = fail } }
    await #expect(throws: failure) { try await sent.session.finish() }
    spool.joining.withLock { $0 = nil }
    blobs.adopting.withLock { $0 = nil }
    #expect(try await sent.session.finish().recording != nil)
    await bench.runner.stop()
  }
}
