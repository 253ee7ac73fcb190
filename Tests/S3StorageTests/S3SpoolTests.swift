import Foundation
import ObjectStore
import PresentRows
import Randomness
import Storage
import Synchronization
import Terms
import Testing

@testable import S3Storage

/// Resumable uploads as objects.
@Suite struct S3SpoolTests {
  private static let never = Timestamp(milliseconds: 4_000_000_000_000)

  /// One node's part in an upload.
  private struct Writer {
    let node: BlobsNode
    let spool: S3Spool
    let bytes: any UploadBytes
    let row: Upload

    /// Takes an upload over.
    init(
      _ id: UploadID, at offset: Int64, _ node: BlobsNode, _ client: S3Client,
      reserve: @escaping @Sendable (Int64) throws(StorageError) -> BlockCache.Room? = { _ throws(StorageError) in nil }
    ) throws {
      self.node = node
      spool = S3Spool(
        client, catalog: node.catalog, scratch: node.scratch, objectBytes: 6 << 20, reserve: reserve)
      row = try node.catalog.takeOver(id, at: offset)
      bytes = try #require(try spool.begin(try node.catalog.segments(of: id), at: offset))
    }

    /// Receives bytes and reports the offset, as a session does.
    func receive(_ more: ArraySlice<UInt8>) throws {
      try bytes.append(Array(more).span)
      try report()
    }

    func report() throws {
      let objects = try bytes.sync(to: bytes.byteCount)
      try node.catalog.advance(
        row.id, to: bytes.byteCount, expiresAt: S3SpoolTests.never, by: row.writer, adding: objects)
    }
  }

  private func begin(_ cluster: BlobsCluster, _ length: Int) throws -> UploadID {
    let upload = Upload(length: Int64(length), expiresAt: Self.never)
    try cluster.catalog.insert(upload, limits: UploadLimits(total: 9, perClient: 9))
    return upload.id
  }

  private func finish(_ writer: Writer, _ recording: RecordingID) throws -> StoredFile {
    let part = try writer.bytes.join()
    let stored = try writer.node.blobs.adopt(part, as: recording, name: "audio.wav")
    let shape = SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 44_100, channels: 2, estimatedFrames: 9)
    var row = Recording(id: recording, name: "a", format: shape, waveformJob: JobID())
    (row.audioKey, row.bytes, row.sha256) = (stored.key, stored.bytes, stored.sha256)
    try writer.node.catalog.insert(row, jobs: [], finishing: writer.row.id, expiresAt: Self.never)
    writer.spool.removeParts(of: writer.row.id)
    writer.spool.settle()
    return stored
  }

  private func keys(_ cluster: BlobsCluster) -> [String] { cluster.test.store.objects(in: "sounds").keys.sorted() }

  @Test("an upload that two nodes receive becomes one object, mostly by copies within the store")
  func twoNodes() async throws {
    let cluster = try BlobsCluster()
    let content = TestStore.bytes(17 << 20 + 5)
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    let recording = RecordingID()
    let id = try begin(cluster, content.count)
    let (stored, bytes) = try await cluster.blocking {
      let one = try Writer(id, at: 0, first, cluster.test.client)
      try one.receive(content[..<(7 << 20)])
      try one.receive(content[(7 << 20)..<(8 << 20)])
      let two = try Writer(id, at: 8 << 20, second, cluster.test.client)
      try two.receive(content[(8 << 20)...])
      #expect(try cluster.catalog.objects(of: id).map(\.bytes) == [6 << 20, 2 << 20, 6 << 20, 3 << 20 + 5])
      let stored = try finish(two, recording)
      return (stored, try first.bytes(stored.key))
    }
    let isRight = bytes == content
    #expect(isRight && stored.sha256 == Hexadecimal.text(SHA256.digest(of: content)))
    #expect(keys(cluster) == ["recordings/\(recording)/audio.wav"])
    #expect(cluster.test.store.uploadCount == 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: first.scratch.directory + "/uploads").count <= 1)
  }

  @Test("what a node puts after another one has taken the upload over counts for nothing, and goes a day later")
  func formerWriter() async throws {
    let cluster = try BlobsCluster()
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    let recording = RecordingID()
    let id = try begin(cluster, 8)
    let bytes = try await cluster.blocking {
      let one = try Writer(id, at: 0, first, cluster.test.client)
      try one.receive([1, 2, 3])
      let two = try Writer(id, at: 3, second, cluster.test.client)
      #expect(throws: StorageError.uploadTakenOver(id)) { try one.receive([9, 9, 9, 9, 9]) }
      try two.receive([4, 5, 6, 7, 8])
      return try second.bytes(try finish(two, recording).key)
    }
    #expect(bytes == [1, 2, 3, 4, 5, 6, 7, 8])
    #expect(keys(cluster) == ["recordings/\(recording)/audio.wav"])
  }

  @Test("an upload whose object can't be put continues at the offset that was reported")
  func failedPut() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let node = try cluster.node("a")
    let id = try begin(cluster, 6)
    try await cluster.blocking {
      let one = try Writer(id, at: 0, node, cluster.test.client)
      try one.receive([1, 2, 3])
    }
    // The store carries it out but doesn't say so.
    cluster.test.store.fail(.cuts(afterBytes: 0))
    let key = try await cluster.blocking {
      let two = try Writer(id, at: 3, node, cluster.test.client)
      #expect(throws: StorageError.self) { try two.receive([4, 5, 6]) }
      #expect(try cluster.catalog.upload(id)?.offset == 3)
      let three = try Writer(id, at: 3, node, cluster.test.client)
      try three.receive([4, 5, 6])
      return try finish(three, RecordingID()).key
    }
    #expect(try await cluster.blocking { try node.bytes(key) } == [1, 2, 3, 4, 5, 6])
    cluster.advance(90_000)
    try await cluster.blocking {
      try S3Spool(cluster.test.client, catalog: cluster.catalog, scratch: node.scratch).removeGarbage()
    }
    #expect(keys(cluster) == ["\(key)"])
  }

  /// Receives a range of `content`, and expects its objects to have it, and few others to be left.
  private func receive(
    _ content: [UInt8], _ range: Range<Int>, inPiecesOf piece: Int, by writer: Writer, _ cluster: BlobsCluster
  ) throws {
    for start in stride(from: range.lowerBound, to: range.upperBound, by: piece) {
      try writer.receive(content[start..<start + piece])
    }
    writer.spool.settle()
    let (objects, found) = (try cluster.catalog.objects(of: writer.row.id), cluster.test.store.objects(in: "sounds"))
    let areRight = objects.flatMap { found[$0.key] ?? [] } == Array(content[..<range.upperBound])
    #expect(areRight && found.count <= objects.count + 9, "\(found.count)")
  }

  @Test("an upload in tiny pieces has few objects, and those that were replaced are gone before it ends")
  func tinyPieces() async throws {
    let cluster = try BlobsCluster()
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    let content = TestStore.bytes(25_200_000)
    let id = try begin(cluster, content.count)
    let stored = try await cluster.blocking {
      let one = try Writer(id, at: 0, first, cluster.test.client)
      try receive(content, 0..<7_200_000, inPiecesOf: 60_000, by: one, cluster)
      #expect(try cluster.catalog.objects(of: id).map(\.bytes) == [3_840_000, 1_920_000, 960_000, 480_000])
      let two = try Writer(id, at: 7_200_000, second, cluster.test.client)
      try receive(content, 7_200_000..<18_000_000, inPiecesOf: 60_000, by: two, cluster)
      let added = try cluster.catalog.objects(of: id).map(\.bytes).dropFirst(4)
      #expect(added == [6 << 20, 3_308_544, 960_000, 240_000], "6 MiB is the limit here")
      let long = try cluster.catalog.objects(of: id).filter { $0.bytes == 6 << 20 }
      try receive(content, 18_000_000..<25_200_000, inPiecesOf: 60_000, by: two, cluster)
      #expect(try cluster.catalog.objects(of: id).filter { $0.bytes == 6 << 20 }.prefix(1) == long[...])
      return try finish(two, RecordingID())
    }
    #expect(stored.sha256 == Hexadecimal.text(SHA256.digest(of: content)))
    #expect(keys(cluster) == ["\(stored.key)"])
  }

  @Test("what an upload's row still names isn't removed as replaced")
  func unreplaced() async throws {
    let cluster = try BlobsCluster()
    let node = try cluster.node("a")
    let id = try begin(cluster, 6)
    try await cluster.blocking {
      let one = try Writer(id, at: 0, node, cluster.test.client)
      try one.receive([1, 2, 3])
      one.spool.remove(try cluster.catalog.objects(of: id), of: id)
      one.spool.settle()
    }
    #expect(keys(cluster).count == 1)
  }

  @Test("an upload with missing bytes isn't begun, and a damaged object isn't joined")
  func damage() async throws {
    let cluster = try BlobsCluster()
    let node = try cluster.node("a")
    let id = try begin(cluster, 6)
    try await cluster.blocking {
      let one = try Writer(id, at: 0, node, cluster.test.client)
      try one.receive([1, 2, 3])
      #expect(try one.spool.begin([UploadSegment(upload: id, start: 9, writer: 7)], at: 9) == nil)
      let two = try Writer(id, at: 3, node, cluster.test.client)
      try two.receive([4, 5, 6])
      cluster.test.store.fail(.damages(0xFF))
      #expect(throws: StorageError.self) { try two.bytes.join() }
      #expect(try finish(two, RecordingID()).bytes == 6)
    }
  }

  @Test("an upload that was taken over has the cache make room for its bytes, and can be finished once there is some")
  func roomForOthersBytes() async throws {
    let cluster = try BlobsCluster()
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    let content = TestStore.bytes(300_000)
    let id = try begin(cluster, 300_001)
    let asked = Mutex<[Int64]>([])
    let disk = Mutex<Int64>(100_000)
    try await cluster.blocking {
      let one = try Writer(id, at: 0, first, cluster.test.client)
      try one.receive(content[...])
      let two = try Writer(id, at: 300_000, second, cluster.test.client) { (bytes) throws(StorageError) in
        asked.withLock { $0.append(bytes) }
        guard bytes <= disk.withLock({ $0 }) else { throw .diskFull }
        return nil
      }
      try two.receive([7])
      #expect(throws: StorageError.diskFull) { try two.bytes.join() }
      disk.withLock { $0 = 700_000 }
      #expect(try finish(two, RecordingID()).bytes == 300_001)
      #expect(asked.withLock { $0 } == [600_001, 600_001])
    }
  }

  @Test("an abandoned upload's objects are removed by the rows that its end has written")
  func abandoned() async throws {
    let cluster = try BlobsCluster()
    let node = try cluster.node("a")
    let id = try begin(cluster, 6)
    try await cluster.blocking {
      let one = try Writer(id, at: 0, node, cluster.test.client)
      try one.receive([1, 2, 3])
      cluster.advance(90_000)
      try one.spool.removeGarbage()
      #expect(keys(cluster).count == 1, "it may still go on")
      try cluster.catalog.deleteUpload(id)
      // Its node dies here.
      try one.spool.removeGarbage()
      #expect(keys(cluster).count == 1)
      cluster.advance(90_000)
      try one.spool.removeGarbage()
      try cluster.catalog.forgetSettledDeletions()
    }
    #expect(keys(cluster) == [])
  }

  @Test(
    "whatever fails, an offset that was reported stands, its bytes stay, and nothing is left that no row names",
    arguments: 0..<6)
  func histories(number: Int) async throws {
    let cluster = try BlobsCluster { $0.attempts = 2 }
    let history = UploadHistory(cluster, [try cluster.node("a"), try cluster.node("b")], number)
    try await cluster.blocking { try history.run() }
  }

  /// Random nodes that receive an upload in turn or beside each other, on a store that fails, and are killed.
  private final class UploadHistory: @unchecked Sendable {
    // @unchecked: `run` is called once, by one thread.
    private let cluster: BlobsCluster
    private let nodes: [BlobsNode]
    private var generator: TestRandom
    private var writers: [Writer] = []
    private let content: [UInt8]
    private var reported: Int64 = 0

    init(_ cluster: BlobsCluster, _ nodes: [BlobsNode], _ number: Int) {
      (self.cluster, self.nodes) = (cluster, nodes)
      var random = TestRandom(for: number)
      content = (0..<200).map { _ in UInt8.random(in: .min ... .max, using: &random) }
      generator = random
    }

    private func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &generator) < percent }

    func run() throws {
      let upload = Upload(length: Int64(content.count), expiresAt: S3SpoolTests.never)
      try cluster.catalog.insert(upload, limits: UploadLimits(total: 9, perClient: 9))
      for _ in 0..<400 {
        try step(upload.id)
        try check(upload.id)
        if reported == upload.length { break }
      }
      cluster.test.store.heal()
      let last = try Writer(upload.id, at: reported, nodes[0], cluster.test.client)
      if reported < Int64(content.count) { try last.receive(content[Int(reported)...]) }
      let part = try last.bytes.join()
      #expect(CacheTest.contents(part.path) == content)
      try cluster.catalog.deleteUpload(upload.id)
      for _ in 0..<2 {
        cluster.advance(90_000)
        try last.spool.removeGarbage()
      }
      #expect(cluster.test.store.objects(in: "sounds").keys.sorted() == [])
    }

    private func step(_ id: UploadID) throws {
      if chance(30) {
        let faults: [S3Server.Fault] = [.refuses(500, code: "InternalError"), .cuts(afterBytes: 0), .none]
        for _ in 0..<3 { if let fault = faults.randomElement(using: &generator) { cluster.test.store.fail(fault) } }
      }
      if writers.isEmpty || chance(25) {
        let node = nodes[Int.random(in: 0..<nodes.count, using: &generator)]
        writers.append(try Writer(id, at: reported, node, cluster.test.client))
      }
      if chance(10) {
        cluster.advance(90_000)
        try? writers.last?.spool.removeGarbage()
      }
      // An earlier writer may not know that it was replaced, and may have other bytes.
      let index = chance(70) ? writers.count - 1 : Int.random(in: 0..<writers.count, using: &generator)
      let writer = writers[index]
      let isCurrent = index == writers.count - 1
      let start = Int(writer.bytes.byteCount)
      let end = min(start + Int.random(in: 1...9, using: &generator), content.count)
      let bytes = isCurrent ? Array(content[start..<end]) : Array(repeating: 0, count: 5)
      do {
        try writer.receive(bytes[...])
        #expect(isCurrent, "an earlier writer has reported an offset")
        reported = writer.bytes.byteCount
      } catch {
        // As a session does, which is opened again.
        writers.remove(at: index)
      }
    }

    private func check(_ id: UploadID) throws {
      #expect(try cluster.catalog.upload(id)?.offset == reported)
      let named = try cluster.catalog.objects(of: id)
      let objects = cluster.test.store.objects(in: "sounds")
      #expect(named.flatMap { objects[$0.key] ?? [] } == Array(content[..<Int(reported)]))
      let known = Set(named.map(\.key) + (try cluster.catalog.unneededObjects(of: id)).map(\.key))
      #expect(objects.keys.filter { !known.contains($0) } == [])
    }
  }
}
