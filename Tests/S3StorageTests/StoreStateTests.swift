import ObjectStore
import PresentRows
import Storage
import Testing

@testable import S3Storage

/// How a node treats a store that fails, is slow or full, or is another one.
@Suite struct StoreStateTests {
  @Test("nothing is missing because the bucket is, or is another one, or because a proxy answers 404")
  func anotherBucket() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let (first, second) = (try cluster.node("a"), try cluster.node("b", isBound: true))
    let store = cluster.test.store
    let key = try await cluster.blocking { try ObjectKey(first.upload([9, 8, 7]).id, "audio.mp3") }
    func expectUnknown(_ what: Comment) async throws {
      let look = try await cluster.blocking { second.store.look(at: key) }
      #expect(look == .unknown, what)
      await #expect(throws: StorageError.self, what) { try await cluster.blocking { try second.bytes(key) } }
      await #expect(throws: StorageError.self, what) {
        try await cluster.blocking { try second.store.read(key, 0..<1) }
      }
    }
    store.rename("sounds", to: "away")
    try await expectUnknown("no bucket")
    await #expect(throws: S3Error.noSuchBucket) { try await cluster.test.blocking { try $0.delete("\(key)") } }
    store.empty("sounds")
    try await expectUnknown("another tenant's bucket")
    store.rename("away", to: "sounds")
    for fault in [S3Server.Fault.refuses(404, code: ""), .answers([60, 62], status: 404)] {
      store.fail(fault, fault)
      #expect(try await cluster.blocking { second.store.look(at: key) } == .unknown)
      store.fail(fault)
      await #expect(throws: S3Error.unavailable(status: 404, code: nil)) {
        try await cluster.test.blocking { try $0.get("\(key)", 0..<1) }
      }
      store.heal()
    }
    #expect(try await cluster.blocking { try second.bytes(key) } == [9, 8, 7])
    #expect(try await cluster.blocking { second.store.look(at: key.map.map) } == .absent)
  }

  @Test("a sound's length is believed if it is its row's, or if two connections say the same")
  func wrongHeads() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    let key = try await cluster.blocking { try ObjectKey(first.upload([9, 8, 7]).id, "audio.mp3") }
    for (lengths, expected) in [
      ([], .present(bytes: 3)), ([5], .present(bytes: 3)), ([5, 6], .unknown), ([5, 5], .present(bytes: 5)),
    ] as [([Int64], FileLook)] {
      for length in lengths { cluster.test.store.fail(.misstates(length: length)) }
      #expect(try await cluster.blocking { second.store.look(at: key) } == expected, "\(lengths)")
    }
  }

  @Test("what a look at the store learns of its clock holds for all requests")
  func sharedClock() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let key = try await cluster.blocking { try ObjectKey(cluster.node("a").upload([9, 8, 7]).id, "audio.mp3") }
    cluster.bind()
    try await cluster.blocking {
      let media = try S3Media(
        in: cluster.test.client.bucket, credentials: try TestStore.source(), settings: S3Settings(),
        catalog: cluster.catalog, binding: cluster.binding, scratch: cluster.folder.path + "/b", cacheBytes: 1 << 30,
        spareBytes: 0)
      #expect(media.store.look(at: key) == .present(bytes: 3))
      cluster.test.store.setClock(ahead: 1200)
      try media.check()
      let before = cluster.test.store.received.count
      #expect(media.store.look(at: key) == .present(bytes: 3))
      #expect(cluster.test.store.received.count == before + 1)
    }
  }

  @Test("a full bucket, a store that is down, and one that refuses are told apart")
  func errors() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let node = try cluster.node("a")
    let key = ObjectKey(RecordingID(), "audio-1.wav")
    func failure(_ fault: S3Server.Fault) async throws -> StorageError? {
      cluster.test.store.fail(fault)
      return try await cluster.blocking {
        do throws(StorageError) { _ = try node.blobs.put((try? node.work([1])) ?? "", as: key) } catch { return error }
        return nil
      }
    }
    #expect(try await failure(.refuses(507, code: "QuotaExceeded")) == .storeFull)
    guard case .storeUnreachable = try await failure(.refuses(503, code: "SlowDown")) else {
      Issue.record("a store that is busy isn't told from others")
      return
    }
    guard case .objectStore = try await failure(.refuses(403, code: "AccessDenied")) else {
      Issue.record("a store that refuses isn't told from others")
      return
    }
    #expect(try await failure(.none) == nil)
  }

  @Test("after a store has failed, it is asked again before a job begins, and only then")
  func recovery() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    let recording = try await cluster.blocking { try first.upload([1, 2, 3]) }
    let key = ObjectKey(recording.id, "audio.mp3")
    let before = cluster.test.store.received.count
    try await cluster.blocking { try second.store.checkReachable() }
    #expect(cluster.test.store.received.count == before)
    let busy = S3Server.Fault.refuses(503, code: "SlowDown")
    let refused = S3Server.Fault.refuses(403, code: "InvalidAccessKeyId")
    // A HEAD that is refused is followed by a GET, for the reason.
    for faults in [[busy, busy], [refused, refused, refused]] {
      for fault in faults { cluster.test.store.fail(fault) }
      await #expect(throws: StorageError.self) { try await cluster.blocking { try second.bytes(key) } }
      await #expect(throws: StorageError.self) { try await cluster.blocking { try second.store.checkReachable() } }
      try await cluster.blocking { for _ in 0..<3 { try second.store.checkReachable() } }
    }
    #expect(cluster.test.store.received.count == before + 7)
    for _ in 0..<2 { cluster.test.store.fail(.refuses(403, code: "AccessDenied")) }
    await #expect(throws: StorageError.self) { try await cluster.blocking { try second.bytes(key) } }
    try await cluster.blocking { try second.store.checkReachable() }
    #expect(cluster.test.store.received.count == before + 10, "only that object is refused")
  }

  @Test("a store that is slow is usable, and one that doesn't answer holds nobody up for longer than a second")
  func slowStore() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let node = try cluster.node("a", isBound: true)
    let store = cluster.test.store
    let (gate, release) = AsyncStream<Never>.makeStream()
    try await cluster.blocking {
      store.fail(.refuses(503, code: "SlowDown"))
      #expect(throws: StorageError.self) { try node.bytes(ObjectKey(RecordingID(), "audio.wav")) }
      store.fail(.holds(until: gate))
      try node.store.checkUsable()
      #expect(throws: StorageError(S3Error.timedOut)) { try node.store.checkReachable() }
      release.finish()
      // The same look.
      for _ in 0..<20 where (try? node.store.checkReachable()) == nil {}
      let before = store.received.count
      for _ in 0..<9 { try node.store.checkReachable() }
      #expect(store.received.count == before)
    }
  }

  @Test("while the bucket is full, no job begins; there is room again once something can be put")
  func fullBucket() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let node = try cluster.node("a", isBound: true)
    let store = cluster.test.store
    try await cluster.blocking {
      let recording = try node.upload([1, 2, 3])
      store.setQuota(bytes: 100)
      let path = try node.work(TestStore.bytes(1000))
      let key = ObjectKey(recording.id, "waveform-1.pyramid")
      #expect(throws: StorageError.storeFull) { try node.blobs.put(path, as: key) }
      for _ in 0..<2 { #expect(throws: StorageError.storeFull) { try node.store.checkReachable() } }
      try node.store.checkUsable()
      #expect(try node.bytes(try #require(recording.audioKey)) == [1, 2, 3], "what is there can be read")
      store.setQuota(bytes: .max)
      try node.store.checkReachable()
      let before = store.received.count
      try node.store.checkReachable()
      #expect(store.received.count == before)
    }
    #expect(store.objects(in: "sounds").keys.filter { $0.hasPrefix("uploads/") } == [])
  }
}
