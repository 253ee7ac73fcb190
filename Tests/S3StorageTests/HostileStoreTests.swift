import Foundation
import ObjectStore
import PresentRows
import Storage
import Synchronization
import Terms
import Testing

@testable import S3Storage

/// A store that says what isn't so, or stops the work on one object because of another.
@Suite struct HostileStoreTests {
  private static let content = TestStore.bytes(300_000)

  // MARK: Lengths

  @Test(
    "an object that no sound or waveform can be as long as is refused before anything is allocated",
    arguments: [Int64.max, Int64.max - 65_535, 15_000_000_000_000, S3ObjectInfo.lengthLimit + 1])
  func claimedLength(length: Int64) async throws {
    let test = try CacheTest()
    let (key, cache) = (try await test.put(Self.content), try test.cache())
    let error = S3Error.tooLong(bytes: length, limit: S3ObjectInfo.lengthLimit)
    for _ in 0..<2 {
      test.store.fail(.claims(length: length, []))
      await #expect(throws: StorageError.objectStore(detail: "\(key): \(error)")) {
        try await test.blocking { try cache.read(key, 0..<1) }
      }
      #expect(cache.cost == 0 && !CacheTest.exists(test.objectPath(key)) && !CacheTest.exists(test.indexPath(key)))
    }
    #expect(try await test.blocking { try cache.read(key, 0..<1) } == [Self.content[0]])
  }

  @Test("what the disk can never hold costs no other object its place")
  func hugeObject() async throws {
    let test = try CacheTest()
    let (key, other) = (try await test.put(Self.content), try await test.put([1]))
    let cache = try test.cache(spare: .max, freeBytes: { 1_000_000 })
    let free = try test.cache(in: test.folder.path + "/other", freeBytes: { 1_000_000 })
    try await test.blocking { _ = try free.file(other) }
    test.store.fail(.claims(length: 1 << 35, []))
    for cache in [cache, free] {
      await #expect(throws: StorageError.diskFull) { try await test.blocking { _ = try cache.reserve(.max) } }
    }
    await #expect(throws: StorageError.diskFull) { try await test.blocking { try free.file(key) } }
    #expect(free.fileAtHand(other) != nil)
  }

  @Test("no more is received than an object should have, and nothing that isn't said to be all of it")
  func unboundedAnswers() async throws {
    let (test, folder) = (try TestStore(), try TemporaryFolder())
    let bytes = [UInt8](repeating: 1, count: 10)
    func expect(_ error: S3Error, _ fault: S3Server.Fault) async {
      for intoFile in [true, false] {
        test.store.fail(fault)
        await #expect(throws: error) {
          try await test.blocking { client in
            if intoFile {
              _ = try client.get("x", into: folder.path + "/x", bytes: 10)
            } else {
              _ = try client.digest(of: "x", bytes: 10)
            }
          }
        }
        #expect(folder.contents("x") == nil)
      }
    }
    await expect(.tooLong(bytes: 1 << 40, limit: 10), .claims(length: 1 << 40, bytes))
    await expect(.malformedAnswer(what: "Content-Length"), .claims(length: nil, bytes))
    // No part was wanted.
    await expect(.malformedAnswer(what: "Content-Range"), .claims(length: 10, bytes, range: "bytes 0-9/100"))
    await expect(.malformedAnswer(what: "Content-Range"), .claims(length: 10, bytes, range: "bytes 0-9/10"))
    #expect(test.store.received.count == 8)
  }

  @Test(
    "a fetch isn't continued by an answer that isn't the rest",
    arguments: ["bytes 1000-1999/300000", "bytes 1000-299999/*", "bytes 999-299998/299999", "1000-299999/300000", ""])
  func wrongRest(range: String) async throws {
    let (test, folder) = (try TestStore(), try TemporaryFolder())
    test.store.put(Self.content, as: "x", in: "sounds")
    test.store.fail(.cuts(afterBytes: 1000), .claims(length: 1000, [UInt8](repeating: 1, count: 1000), range: range))
    await #expect(throws: S3Error.malformedAnswer(what: "Content-Range")) {
      try await test.blocking { try $0.get("x", into: folder.path + "/x") }
    }
    #expect(folder.contents("x") == nil)
  }

  @Test("an answer without content that continues a fetch is the whole object, which is empty")
  func emptyRest() async throws {
    let (test, folder) = (try TestStore(), try TemporaryFolder())
    test.store.put(Self.content, as: "x", in: "sounds")
    test.store.fail(.cuts(afterBytes: 1000), .answers([]))
    let info = try await test.blocking { try $0.get("x", into: folder.path + "/x") }
    #expect(info.bytes == 0 && folder.contents("x") == [])
  }

  @Test("a map that the store can't prove, or that there is no room for, is none")
  func maps() async throws {
    let cluster = try BlobsCluster()
    let first = try cluster.node("a")
    let recording = try await cluster.blocking { try first.upload([9, 8, 7]) }
    let sound = ObjectKey(recording.id, "audio.mp3")
    func map(after fault: S3Server.Fault?) async throws -> [UInt8]? {
      try await cluster.blocking {
        // Another one each time, because a node remembers that it found none.
        let second = try cluster.node(RecordingID().text)
        // The sound first, with two requests.
        if let fault { cluster.test.store.fail(.none, .none, fault) }
        return CacheTest.contents(try second.store.localFile(sound).path + ".map")
      }
    }
    #expect(try await map(after: nil) == [1, 2, 3])
    #expect(try await map(after: .claims(length: 3, [1, 2, 3])) == nil)
    #expect(try await map(after: .claims(length: .max, [1, 2, 3])) == nil)
    #expect(try await map(after: .claims(length: 1 << 35, [1, 2, 3])) == nil)
    #expect(try await map(after: nil) == [1, 2, 3])
  }

  // MARK: Listings

  private func page(_ keys: [String], next: String? = nil, size: Int64 = 1) -> S3Server.Fault {
    let objects = keys.map { "<Contents><Key>\($0)</Key><Size>\(size)</Size></Contents>" }.joined()
    let end = next.map { "<IsTruncated>true</IsTruncated><NextContinuationToken>\($0)</NextContinuationToken>" } ?? ""
    return .answers(Array("<ListBucketResult>\(objects)\(end)</ListBucketResult>".utf8))
  }

  @Test(
    "a listing whose keys don't ascend is refused, within a page and over pages", arguments: [["b", "a"], ["b", "b"]])
  func descendingKeys(keys: [String]) async throws {
    let test = try TestStore()
    let expected = S3Error.malformedAnswer(what: "order of keys")
    test.store.fail(page(keys))
    await #expect(throws: expected) { try await test.blocking { try $0.list() } }
    test.store.fail(page([keys[0]], next: "A"), page([keys[1]], next: "B"))
    await #expect(throws: expected) {
      try await test.blocking { client in
        let first = try client.list()
        _ = try client.list(token: first.next, after: first.lastKey)
      }
    }
  }

  @Test("a check of a bucket whose listing goes round in circles ends")
  func circle() async throws {
    let cluster = try BlobsCluster()
    // Each page is listed twice, because its objects may have been removed meanwhile.
    let (a, b) = (page(["a"], next: "A"), page(["b"], next: "B"))
    await #expect(throws: StorageError(S3Error.malformedAnswer(what: "order of keys"))) {
      try await audit(cluster, with: [a, a, b, b, a, a, b, b])
    }
    await #expect(throws: StorageError(S3Error.malformedAnswer(what: "ListBucketResult"))) {
      try await audit(cluster, with: (0..<100).map { page([], next: "\($0)") })
    }
  }

  @Test("lengths that no number can hold together are too many bytes, not the end of the process")
  func hugeSum() async throws {
    let cluster = try BlobsCluster()
    let folder = "recordings/\(RecordingID())"
    let all = page(["\(folder)/a", "\(folder)/b", "x", "y"], size: .max)
    let report = try await audit(cluster, with: [all, all])
    #expect(report.notes.contains { $0.code == "stray_objects" && "\($0)".contains("\(Int64.max) bytes") })
    #expect(report.problems.map(\.code) == ["row_missing"])
  }

  /// Lists the bucket as a check does; the store answers like this meanwhile.
  @discardableResult
  private func audit(
    _ cluster: BlobsCluster, with faults: [S3Server.Fault]
  ) async throws -> DataCheck.Report {
    cluster.bind()
    return try await cluster.blocking {
      cluster.test.store.heal()
      let bucket = try CheckedStore(
        cluster.test.client, of: cluster.catalog, boundBy: cluster.binding, temporary: cluster.folder.path + "/check")
      for fault in faults { cluster.test.store.fail(fault) }
      var report = DataCheck.Report()
      try bucket.audit(cluster.catalog, &report) { true }
      return report
    }
  }

  // MARK: Removal

  @Test("an upload's object that can't be removed keeps no others, and is tried again the next time")
  func refusedRemoval() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let node = try cluster.node("a")
    let spool = S3Spool(cluster.test.client, catalog: cluster.catalog, scratch: node.scratch)
    let uploads = (0..<5).map { _ in UploadID() }
    let objects = uploads.flatMap { id in (0..<2).map { UploadObject(of: id, start: $0, bytes: 1) } }
    try cluster.catalog.announce(objects)
    for object in objects { cluster.test.store.put([1], as: object.key, in: "sounds") }
    cluster.advance(86_401)
    cluster.test.store.fail(.refuses(403, code: "AccessDenied"))
    await #expect(throws: StorageError.objectStore(detail: "the key may not do this")) {
      try await cluster.blocking { try spool.removeGarbage(batch: 1) }
    }
    #expect(cluster.test.store.objects(in: "sounds").count == 1)
    try await cluster.blocking { try spool.removeGarbage(batch: 1) }
    #expect(cluster.test.store.objects(in: "sounds").isEmpty)
    #expect(try cluster.catalog.takeUploadObjects() == [])
  }

  // MARK: Two versions in the cache

  @Test("readers of an object that is put into the cache meanwhile get its bytes, and write nothing into it")
  func insertionMeanwhile() async throws {
    let test = try CacheTest()
    let (key, content) = (try await test.put(Self.content), Self.content)
    let cache = try test.cache()
    _ = try await test.blocking { try cache.read(key, 0..<1) }
    let (gate, opening) = AsyncStream<Never>.makeStream()
    test.store.fail(.holds(until: gate))
    let before = test.store.received.count
    async let late = test.blocking { try cache.read(key, 200_000..<200_010) }
    while test.store.received.count == before { await Task.yield() }
    try await test.blocking {
      let path = cache.incomingPath()
      try Data(content).write(to: URL(fileURLWithPath: path))
      let version = CachedVersion(
        bytes: Int64(content.count), entityTag: "", sha256: Hexadecimal.text(SHA256.digest(of: content)))
      cache.insert(path, as: key, version, digests: CachedVersion.digests(of: content))
    }
    opening.finish()
    #expect(try await late == Array(content[200_000..<200_010]))
    #expect(CacheTest.contents(test.objectPath(key)) == content)
    #expect(cache.fileAtHand(key) != nil)
  }

  @Test("readers of an object that is removed from the cache meanwhile begin again")
  func removalMeanwhile() async throws {
    let test = try CacheTest()
    let (key, content) = (try await test.put(Self.content), Self.content)
    let cache = try test.cache()
    let (gate, opening) = AsyncStream<Never>.makeStream()
    test.store.fail(.none, .holds(until: gate))
    let before = test.store.received.count
    async let late = test.blocking { try cache.read(key, 200_000..<200_010) }
    while test.store.received.count < before + 2 { await Task.yield() }
    _ = try await test.blocking {
      cache.remove(key)
      // Begins it again, with another block.
      return try cache.read(key, 0..<1)
    }
    opening.finish()
    #expect(try await late == Array(content[200_000..<200_010]))
    #expect(try await test.blocking { try cache.file(key)?.withPath(CacheTest.contents) } == content)
  }
}
