import Foundation
import ObjectStore
import PresentRows
import Randomness
import Storage
import Synchronization
import Testing

@testable import S3Storage

/// What only a bucket does. `BlobsTests` has what every store of media does.
@Suite struct S3BlobsTests {
  @Test("a large file is put in parts, and read by another node as it was")
  func parts() async throws {
    let cluster = try BlobsCluster()
    let content = TestStore.bytes(11 << 20 + 3)
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    let (recording, bytes) = try await cluster.blocking {
      let recording = try first.upload(content)
      let key = ObjectKey(recording.id, "audio.mp3")
      return (recording, try second.bytes(key))
    }
    let isRight = bytes == content
    #expect(isRight && recording.sha256 == Hexadecimal.text(SHA256.digest(of: content)))
    #expect(cluster.test.store.received.count { $0.query.contains("partNumber") } == 3)
    #expect(cluster.test.store.uploadCount == 0)
  }

  @Test(
    "a large file whose parts can't be put leaves an upload that is aborted at once or, if the store fails, a day later"
  )
  func failedParts() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let node = try cluster.node("a")
    let path = try await cluster.blocking { try node.work(TestStore.bytes(11 << 20)) }
    let key = ObjectKey(RecordingID(), "audio-1.wav")
    cluster.test.store.fail(.none, .none, .refuses(503, code: "SlowDown"))
    let expected = StorageError(S3Error.unavailable(status: 503, code: "SlowDown"))
    await #expect(throws: expected) { try await cluster.blocking { try node.blobs.put(path, as: key) } }
    #expect(cluster.test.store.uploadCount == 1 && cluster.objects.isEmpty)
    cluster.test.store.fail(.none, .none, .refuses(403, code: "AccessDenied"))
    await #expect(throws: StorageError.self) { try await cluster.blocking { try node.blobs.put(path, as: key) } }
    #expect(cluster.test.store.uploadCount == 1)
    #expect(try cluster.catalog.announcedObjects(of: key.recording) == [key])
    cluster.advance(86_401)
    try await cluster.blocking { try node.blobs.removeGarbage(of: cluster.catalog) }
    #expect(cluster.test.store.uploadCount == 0)
    #expect(try cluster.catalog.takeMultiparts() == [])
  }

  @Test("a description that couldn't be written is written by the next collection of any node")
  func lateDescription() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    let failures = Mutex(0)
    cluster.catalog.keepDescriptions(in: first.blobs) { _, _ in failures.withLock { $0 += 1 } }
    func description(of id: RecordingID) -> [UInt8]? { cluster.objects[.description(of: id)] }
    let recording = try await cluster.blocking {
      // The sound and its map are put, the description is not.
      cluster.test.store.fail(.none, .none, .refuses(507, code: "QuotaExceeded"))
      return try first.upload([9, 8, 7])
    }
    #expect(failures.withLock { $0 } == 1 && description(of: recording.id) == nil)
    #expect(try cluster.catalog.announcedObjects(of: recording.id) == [.description(of: recording.id)])
    try await cluster.blocking { try second.blobs.removeGarbage(of: cluster.catalog) }
    #expect(description(of: recording.id) == nil, "it has a minute")
    cluster.advance(61)
    cluster.test.store.fail(.refuses(507, code: "QuotaExceeded"))
    await #expect(throws: StorageError.self) {
      try await cluster.blocking { try second.blobs.removeGarbage(of: cluster.catalog) }
    }
    try await cluster.blocking { try second.blobs.removeGarbage(of: cluster.catalog) }
    let current = try #require(try cluster.catalog.recording(recording.id))
    #expect(description(of: recording.id) == current.describedJSON)
    #expect(try cluster.catalog.announcedObjects(of: recording.id) == [])
  }

  @Test("an object that can't be removed keeps no others, and is tried again the next time")
  func refusedRemoval() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let node = try cluster.node("a")
    let keys = (0..<5).map { _ in ObjectKey(RecordingID(), "waveform-1.pyramid") }
    try cluster.catalog.announce(keys)
    for key in keys { cluster.test.store.put([1], as: "\(key)", in: "sounds") }
    cluster.advance(86_401)
    // Each is asked for its description before it is removed.
    cluster.test.store.fail(.none, .refuses(403, code: "AccessDenied"))
    await #expect(throws: StorageError.objectStore(detail: "the key may not do this")) {
      try await cluster.blocking { try node.blobs.removeGarbage(of: cluster.catalog, batch: 1) }
    }
    #expect(cluster.objects.count == 1)
    try await cluster.blocking { try node.blobs.removeGarbage(of: cluster.catalog, batch: 1) }
    #expect(cluster.objects.isEmpty)
    #expect(try cluster.catalog.takeGarbage() == [])
  }

  @Test("a node gets the map with the sound, and both stay while the sound is held")
  func maps() async throws {
    let cluster = try BlobsCluster()
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    let file = try await cluster.blocking {
      let recording = try first.upload([9, 8, 7])
      return try second.blobs.localFile(ObjectKey(recording.id, "audio.mp3"))
    }
    #expect(CacheTest.contents(file.path) == [9, 8, 7] && CacheTest.contents(file.path + ".map") == [1, 2, 3])
    #expect(try FileManager.default.contentsOfDirectory(atPath: cluster.folder.path + "/b/incoming") == [])
  }

  @Test("looking for an object costs a request and no room, unless the cache has it")
  func looking() async throws {
    let cluster = try BlobsCluster()
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    let looks = try await cluster.blocking {
      let recording = try first.upload([9, 8, 7])
      let key = ObjectKey(recording.id, "audio.mp3")
      let before = cluster.test.store.received.count
      let looks = [first.blobs.look(at: key), second.blobs.look(at: key), second.blobs.look(at: key.map.map)]
      #expect(cluster.test.store.received.count == before + 3 && second.cache.cost == 0)
      cluster.test.store.fail(.refuses(403, code: "AccessDenied"))
      return looks + [second.blobs.look(at: key)]
    }
    #expect(looks == [.present(bytes: 3), .present(bytes: 3), .absent, .unknown])
  }

  @Test("nothing is missing because the bucket is, or is another one, or because a proxy answers 404")
  func anotherBucket() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let (first, second) = (try cluster.node("a"), try cluster.node("b", isBound: true))
    let store = cluster.test.store
    let key = try await cluster.blocking { try ObjectKey(first.upload([9, 8, 7]).id, "audio.mp3") }
    func expectUnknown(_ what: Comment) async throws {
      let look = try await cluster.blocking { second.blobs.look(at: key) }
      #expect(look == .unknown, what)
      await #expect(throws: StorageError.self, what) { try await cluster.blocking { try second.bytes(key) } }
      await #expect(throws: StorageError.self, what) {
        try await cluster.blocking { try second.blobs.read(key, 0..<1) }
      }
    }
    store.rename("sounds", to: "away")
    try await expectUnknown("no bucket")
    await #expect(throws: S3Error.noSuchBucket) { try await cluster.test.blocking { try $0.delete("\(key)") } }
    store.empty("sounds")
    try await expectUnknown("another tenant's bucket")
    store.rename("away", to: "sounds")
    for fault in [ObjectStore.Fault.refuses(404, code: ""), .answers([60, 62], status: 404)] {
      store.fail(fault, fault)
      #expect(try await cluster.blocking { second.blobs.look(at: key) } == .unknown)
      store.fail(fault)
      await #expect(throws: S3Error.unavailable(status: 404, code: nil)) {
        try await cluster.test.blocking { try $0.get("\(key)", 0..<1) }
      }
      store.heal()
    }
    #expect(try await cluster.blocking { try second.bytes(key) } == [9, 8, 7])
    #expect(try await cluster.blocking { second.blobs.look(at: key.map.map) } == .absent)
  }

  @Test("a full bucket, a store that is down, and one that refuses are told apart")
  func errors() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let node = try cluster.node("a")
    let key = ObjectKey(RecordingID(), "audio-1.wav")
    func failure(_ fault: ObjectStore.Fault) async throws -> StorageError? {
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
    try await cluster.blocking { try second.blobs.checkReachable() }
    #expect(cluster.test.store.received.count == before)
    for fault in [ObjectStore.Fault.refuses(503, code: "SlowDown"), .refuses(403, code: "InvalidAccessKeyId")] {
      cluster.test.store.fail(fault, fault)
      await #expect(throws: StorageError.self) { try await cluster.blocking { try second.bytes(key) } }
      await #expect(throws: StorageError.self) { try await cluster.blocking { try second.blobs.checkReachable() } }
      try await cluster.blocking { for _ in 0..<3 { try second.blobs.checkReachable() } }
    }
    #expect(cluster.test.store.received.count == before + 6)
    cluster.test.store.fail(.refuses(403, code: "AccessDenied"))
    await #expect(throws: StorageError.self) { try await cluster.blocking { try second.bytes(key) } }
    try await cluster.blocking { try second.blobs.checkReachable() }
    #expect(cluster.test.store.received.count == before + 8, "only that object is refused")
  }

  @Test("an upload that fails because the store does isn't taken back at once, but a day later")
  func failedAdoption() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let node = try cluster.node("a")
    let store = cluster.test.store
    try await cluster.blocking {
      store.fail(.cuts(afterBytes: 0))
      #expect(throws: StorageError.self) { try node.upload([1, 2, 3]) }
      store.heal()
      #expect(store.received.count { $0.method == "DELETE" } == 0 && cluster.objects.count == 1)
      cluster.advance(86_401)
      try node.blobs.removeGarbage(of: cluster.catalog)
    }
    #expect(cluster.objects.isEmpty)
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
      try node.blobs.checkUsable()
      #expect(throws: StorageError(S3Error.timedOut)) { try node.blobs.checkReachable() }
      release.finish()
      // The same look.
      for _ in 0..<20 where (try? node.blobs.checkReachable()) == nil {}
      let before = store.received.count
      for _ in 0..<9 { try node.blobs.checkReachable() }
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
      for _ in 0..<2 { #expect(throws: StorageError.storeFull) { try node.blobs.checkReachable() } }
      try node.blobs.checkUsable()
      #expect(try node.bytes(try #require(recording.audioKey)) == [1, 2, 3], "what is there can be read")
      store.setQuota(bytes: .max)
      try node.blobs.checkReachable()
      let before = store.received.count
      try node.blobs.checkReachable()
      #expect(store.received.count == before)
    }
    #expect(store.objects(in: "sounds").keys.filter { $0.hasPrefix("uploads/") } == [])
  }

  @Test("what nothing names stays, and an object that appears after its recording's deletion goes in a day")
  func strays() async throws {
    let cluster = try BlobsCluster()
    let node = try cluster.node("a")
    let left = try await cluster.blocking {
      let recording = try node.upload([1, 2, 3])
      let (late, stranger) = (ObjectKey(recording.id, "working-1.wav"), ObjectKey(recording.id, "letter.txt"))
      try cluster.catalog.announce([late])
      _ = try cluster.catalog.deleteRecording(recording.id)
      try node.blobs.remove(recording.id)
      // The PUT of a node that was cut off, and someone else's object.
      for key in [late, stranger] { try cluster.test.client.put([4], as: "\(key)") }
      try node.blobs.removeGarbage(of: cluster.catalog)
      let before = cluster.objects.keys.map(\.name).sorted()
      cluster.advance(86_401)
      try node.blobs.removeGarbage(of: cluster.catalog)
      #expect(try cluster.catalog.isDeleted(recording.id) == false)
      return [before, cluster.objects.keys.map(\.name)]
    }
    #expect(left == [["letter.txt", "working-1.wav"], ["letter.txt"]])
  }

  @Test(
    "what a description that can't be read may name stays, and everything else goes",
    arguments: [#""version":2"#, "…", ""])
  func unreadableDescription(change: String) async throws {
    let cluster = try BlobsCluster()
    let node = try cluster.node("a")
    try await cluster.blocking {
      let one = try node.upload([1], isAcknowledged: false)
      _ = try node.upload([2], isAcknowledged: false)
      // Of a newer catalog, which has been restored to an earlier state.
      let text = String(decoding: one.describedJSON, as: UTF8.self).replacing(#""version":1"#, with: change)
      try cluster.test.client.put(Array((change.isEmpty ? "" : text).utf8), as: "recordings/\(one.id)/recording.json")
      for _ in 0..<2 {
        cluster.advance(86_401)
        #expect(throws: StorageError.self) { try node.blobs.removeGarbage(of: cluster.catalog) }
        #expect(throws: Never.self) { try node.blobs.removeGarbage(of: cluster.catalog) }
      }
      let kept = cluster.objects
      #expect(Set(kept.keys.map(\.recording)) == [one.id] && kept[ObjectKey(one.id, "audio.mp3")] == [1])
      try cluster.test.client.put(one.describedJSON, as: "recordings/\(one.id)/recording.json")
      cluster.advance(86_401)
      try node.blobs.removeGarbage(of: cluster.catalog)
      #expect(cluster.objects == kept.merging([.description(of: one.id): one.describedJSON]) { $1 })
    }
  }

  @Test("an upload whose row comes after its object was collected is refused, not acknowledged without sound")
  func lateRow() async throws {
    let cluster = try BlobsCluster()
    let node = try cluster.node("a")
    try await cluster.blocking {
      let recording = try node.upload([1, 2, 3], isAcknowledged: false)
      cluster.advance(86_401)
      try node.blobs.removeGarbage(of: cluster.catalog)
      #expect(throws: StorageError.self) { try cluster.catalog.insert(recording) }
      #expect(try cluster.catalog.recording(recording.id) == nil && cluster.objects.isEmpty)
    }
  }

  @Test("a deletion that the store refuses is completed later")
  func refusedDeletion() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let node = try cluster.node("a")
    let recording = try await cluster.blocking {
      let recording = try node.upload([1, 2, 3])
      _ = try cluster.catalog.deleteRecording(recording.id)
      return recording
    }
    cluster.test.store.fail(.none, .refuses(500, code: "InternalError"))
    await #expect(throws: StorageError.self) { try await cluster.blocking { try node.blobs.remove(recording.id) } }
    #expect(!cluster.objects.isEmpty)
    cluster.advance(86_401)
    try await cluster.blocking { try node.blobs.removeGarbage(of: cluster.catalog) }
    #expect(cluster.objects.isEmpty)
  }

  @Test(
    "whatever fails, each object is named by a row or was announced, each row's object exists, and strays go",
    arguments: 0..<6)
  func histories(number: Int) async throws {
    let cluster = try BlobsCluster { $0.attempts = 2 }
    let history = BlobsHistory(cluster, [try cluster.node("a"), try cluster.node("b")], number)
    try await cluster.blocking { try history.run(steps: 40) }
  }
}

/// A random history of nodes that upload, work, delete and collect, on a store that fails, and are killed in between.
private final class BlobsHistory: @unchecked Sendable {
  // @unchecked: `run` is called once, by one thread.
  private let cluster: BlobsCluster
  private let nodes: [BlobsNode]
  private var generator: TestRandom
  private var recordings: [Recording] = []

  init(_ cluster: BlobsCluster, _ nodes: [BlobsNode], _ number: Int) {
    (self.cluster, self.nodes) = (cluster, nodes)
    generator = TestRandom(for: number)
  }

  func run(steps: Int) throws {
    cluster.bind()
    cluster.catalog.keepDescriptions(in: nodes[0].blobs) { _, _ in }
    for step in 0..<steps {
      if chance(40) {
        let faults: [ObjectStore.Fault] = [
          .refuses(500, code: "InternalError"), .cuts(afterBytes: 0), .failsLate(code: "InternalError"), .none,
        ]
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
          if let fault = faults.randomElement(using: &generator) { cluster.test.store.fail(fault) }
        }
      }
      try act(nodes[Int.random(in: 0..<nodes.count, using: &generator)])
      try check("after step \(step)")
      if step % 10 == 9 { try compare("after step \(step)") }
    }
    for _ in 0..<3 {
      cluster.advance(90_000)
      _ = try cluster.catalog.endLostLeases()
      try nodes[0].blobs.removeGarbage(of: cluster.catalog)
    }
    try check("at the end")
    try compare("at the end")
    let named = try Set(recordings.flatMap { try cluster.catalog.namedObjects(of: $0.id) })
    let strays = cluster.objects.keys.filter { !named.contains($0) }
    #expect(strays == [])
  }

  private func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &generator) < percent }

  /// One act of a node; errors of the store end it where it is.
  private func act(_ node: BlobsNode) throws {
    do {
      switch Int.random(in: 0..<6, using: &generator) {
      case 0, 1:
        let bytes = (0..<100).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        recordings.append(try node.upload(bytes, isAcknowledged: chance(70)))
      case 2, 3: try work(node)
      case 4:
        guard let recording = recordings.randomElement(using: &generator) else { return }
        guard try cluster.catalog.deleteRecording(recording.id) != nil, chance(70) else { return }
        try node.blobs.remove(recording.id)
      default:
        cluster.advance(chance(50) ? 5000 : 90_000)
        _ = try cluster.catalog.endLostLeases()
        try node.blobs.removeGarbage(of: cluster.catalog)
      }
    } catch let error as StorageError {
      switch error {
      case .storeUnreachable, .objectStore, .noSuchRecording: break
      default: throw error
      }
    }
  }

  private func work(_ node: BlobsNode) throws {
    guard let recording = recordings.randomElement(using: &generator), let job = recording.waveformJob,
      let token = try cluster.catalog.claim(job).written?.token
    else { return }
    let key = ObjectKey(recording.id, "waveform-\(token.name).pyramid")
    _ = try node.put([7, 7, 7], as: key)
    if chance(30) {
      if chance(50) { node.blobs.removeResults(of: token, in: recording.id) }
      _ = try cluster.catalog.giveBack(token, interrupted: true, hasWritten: true)
    } else {
      _ = try cluster.catalog.finish(token, with: "{}") {
        ($0.waveformState, $0.waveformKey) = (.ready, key)
      }
    }
  }

  /// What operators run finds nothing, either. A description that couldn't be put may be outdated.
  private func compare(_ moment: String) throws {
    let bucket = try CheckedBucket(
      cluster.test.client, boundTo: cluster.binding, temporary: cluster.folder.path + "/checked")
    let report = try DataCheck { _ in nil }.run(bucket, of: cluster.catalog)
    #expect(report.problems.filter { $0.code != "description_outdated" } == [], "\(moment)")
    #expect(report.notes == [], "\(moment)")
  }

  private func check(_ moment: String) throws {
    cluster.test.store.heal()
    let objects = cluster.objects
    for id in Set(objects.keys.map(\.recording)) {
      let known = try cluster.catalog.namedObjects(of: id).union(cluster.catalog.announcedObjects(of: id))
      #expect(objects.keys.filter { $0.recording == id && !known.contains($0) } == [], "\(moment)")
    }
    for recording in recordings {
      guard let current = try cluster.catalog.recording(recording.id) else { continue }
      for key in [current.audioKey, current.waveformKey].compactMap({ $0 }) {
        #expect(objects[key] != nil, "\(key) \(moment)")
      }
      #expect(try nodes[1].bytes(ObjectKey(recording.id, "audio.mp3")) == objects[ObjectKey(recording.id, "audio.mp3")])
    }
  }
}
