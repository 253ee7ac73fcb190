import Foundation
import ObjectStore
import PresentRows
import Storage
import Synchronization
import Terms
import Testing

@testable import S3Storage

/// What only a bucket does. `BlobsTests` has what every store of media does.
@Suite struct BucketStoreTests {
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

  @Test("an object is compared in pieces of 4 MiB, past the cache of the node")
  func comparison() async throws {
    let cluster = try BlobsCluster()
    let content = TestStore.bytes(9 << 20)
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    let recording = try await cluster.blocking { try first.upload(content) }
    let key = ObjectKey(recording.id, "audio.mp3")
    var altered = content
    altered[5 << 20] ^= 1
    cluster.test.store.put(altered, as: key.description, in: "sounds")
    for node in [first, second] {
      let read = Mutex<[Int]>([])
      let found = try await cluster.blocking {
        try node.store.sha256(of: "\(key)", inPieces: true) { count in
          read.withLock { $0.append(count) }
          return true
        }
      }
      #expect(found == Hexadecimal.text(SHA256.digest(of: altered)) && found != recording.sha256)
      #expect(read.withLock { $0 } == [4 << 20, 4 << 20, 1 << 20])
    }
    #expect(second.store.fileAtHand(key) == nil && !second.store.isAtHand(key, [0..<1]))
    #expect(try await cluster.blocking { try second.store.sha256(of: "\(key)", inPieces: true) { _ in false } } == nil)
    await #expect(throws: StorageError.self) {
      try await cluster.blocking {
        try second.store.sha256(of: "\(ObjectKey(RecordingID(), "audio.mp3"))", inPieces: true) { _ in true }
      }
    }
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
    try await cluster.blocking { _ = try node.blobs.removeGarbage(of: cluster.catalog) }
    #expect(cluster.test.store.uploadCount == 0)
    #expect(try cluster.catalog.takeMultiparts() == [])
  }

  @Test("a description that couldn't be written is written by the next collection of any node")
  func lateDescription() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    let failures = Mutex(0)
    cluster.catalog.keepDescriptions(in: first.blobs.descriptions) { _, _ in failures.withLock { $0 += 1 } }
    let recording = try await cluster.blocking {
      // The sound and its map are put, the description is not.
      cluster.test.store.fail(.none, .none, .refuses(507, code: "QuotaExceeded"))
      return try first.upload([9, 8, 7])
    }
    #expect(failures.withLock { $0 } == 1 && cluster.objects[recording.descriptionKey] == nil)
    #expect(try cluster.catalog.announcedObjects(of: recording.id) == [recording.descriptionKey])
    try await cluster.blocking { _ = try second.blobs.removeGarbage(of: cluster.catalog) }
    #expect(cluster.objects[recording.descriptionKey] == nil, "it has a minute")
    cluster.advance(61)
    cluster.test.store.fail(.refuses(507, code: "QuotaExceeded"))
    await #expect(throws: StorageError.self) {
      try await cluster.blocking { _ = try second.blobs.removeGarbage(of: cluster.catalog) }
    }
    try await cluster.blocking { _ = try second.blobs.removeGarbage(of: cluster.catalog) }
    #expect(cluster.objects[recording.descriptionKey] == recording.describedJSON)
    #expect(try cluster.catalog.announcedObjects(of: recording.id) == [])
  }

  @Test("a node gets the map with the sound, and both stay while the sound is held")
  func maps() async throws {
    let cluster = try BlobsCluster()
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    let file = try await cluster.blocking {
      let recording = try first.upload([9, 8, 7])
      return try second.store.localFile(ObjectKey(recording.id, "audio.mp3"))
    }
    #expect(CacheTest.contents(file.path) == [9, 8, 7] && CacheTest.contents(file.path + ".map") == [1, 2, 3])
    #expect(try FileManager.default.contentsOfDirectory(atPath: cluster.folder.path + "/b/incoming") == [])
  }

  @Test("a sound that is in the cache already gets its map, too, and readers fetch that once")
  func mapsOfCachedSounds() async throws {
    let cluster = try BlobsCluster()
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    let (key, before) = try await cluster.blocking {
      let key = ObjectKey(try first.upload([9, 8, 7]).id, "audio.mp3")
      _ = try second.cache.file(key)
      return (key, cluster.test.store.received.count)
    }
    #expect(!CacheTest.exists(second.cache.path(of: key.map)))
    cluster.test.store.fail(.delays(.milliseconds(50)))
    let maps = try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
      for _ in 0..<8 {
        group.addTask {
          try await cluster.blocking {
            try second.store.localFile(key).withPath { CacheTest.contents($0 + ".map") }
          }
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(maps == Array(repeating: [1, 2, 3], count: 8))
    #expect(cluster.test.store.received.count == before + 1)
  }

  @Test("a map that is missing isn't looked for again for a while, and of few more than are remembered")
  func missingMaps() async throws {
    let (hand, cluster) = (ManualClock(), try BlobsCluster())
    let node = try cluster.node("a")
    var settings = S3Settings()
    settings.clock = hand.clock
    let client = S3Client(cluster.test.client.bucket, credentials: try TestStore.source(), settings: settings)
    let maps = SoundMaps(client, cache: node.cache, limit: 4)
    let sounds = (0..<4).map { _ in ObjectKey(RecordingID(), "audio.mp3") }
    func requests(_ sounds: [ObjectKey]) async throws -> Int {
      let before = cluster.test.store.received.count
      try await cluster.blocking { for sound in sounds { #expect(maps.map(of: sound) == nil) } }
      return cluster.test.store.received.count - before
    }
    #expect(try await requests(sounds) == 4)
    #expect(try await requests(sounds) == 0)
    hand.advance(by: 601)
    #expect(try await requests(sounds) == 4)
    // Those before are forgotten for it.
    #expect(try await requests([ObjectKey(RecordingID(), "audio.mp3")]) == 1)
    #expect(try await requests(sounds) >= 3)
  }

  @Test("a map that is made here after it was missing is found at once")
  func lateMap() async throws {
    let cluster = try BlobsCluster()
    let node = try cluster.node("a")
    let sound = ObjectKey(RecordingID(), "audio.mp3")
    let maps = SoundMaps(cluster.test.client, cache: node.cache)
    let found = try await cluster.blocking {
      let early = maps.map(of: sound)
      _ = node.blobs.offer(try node.work([4, 5]), as: sound.map)
      return (early, maps.map(of: sound))
    }
    #expect(found.0 == nil && found.1?.withPath(CacheTest.contents) == [4, 5])
  }

  @Test("looking for an object costs a request and no room, unless the cache has it")
  func looking() async throws {
    let cluster = try BlobsCluster()
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    let looks = try await cluster.blocking {
      let recording = try first.upload([9, 8, 7])
      let key = ObjectKey(recording.id, "audio.mp3")
      let before = cluster.test.store.received.count
      let looks = [first.store.look(at: key), second.store.look(at: key), second.store.look(at: key.map.map)]
      #expect(cluster.test.store.received.count == before + 3 && second.cache.cost == 0)
      for _ in 0..<2 { cluster.test.store.fail(.refuses(403, code: "AccessDenied")) }
      return looks + [second.store.look(at: key)]
    }
    #expect(looks == [.present(bytes: 3), .present(bytes: 3), .absent, .unknown])
  }
}
