import Foundation
import ObjectStore
import PresentRows
import Randomness
import Storage
import Terms
import Testing

@testable import S3Storage

/// What the cache fetches, and what it has.
@Suite struct BlockCacheTests {
  private let content = TestStore.bytes(300_000)

  @Test("only the blocks that are read are fetched, each once")
  func blocks() async throws {
    let test = try CacheTest()
    let (key, cache) = (try await test.put(content), try test.cache())
    let got = try await test.blocking {
      [
        try cache.read(key, 10..<20), try cache.read(key, 65_530..<65_540), try cache.read(key, 0..<100),
        try cache.read(key, 299_990..<400_000), try cache.read(key, 300_000..<300_001),
      ]
    }
    let expected = [10..<20, 65_530..<65_540, 0..<100, 299_990..<300_000, 300_000..<300_000]
    #expect(got == expected.map { Array(content[$0]) })
    #expect(test.requests() == ["HEAD", "0-65535", "65536-131071", "262144-299999"])
  }

  @Test("parts that are far apart are fetched by a request each, and near ones by one")
  func parts() async throws {
    let test = try CacheTest()
    let block = Int64(CacheTest.block)
    let content = TestStore.bytes(200 * CacheTest.block)
    let (key, cache) = (try await test.put(content), try test.cache())
    _ = try await test.blocking { try cache.read(key, 0..<1) }
    let parts = [0, 3, 20, 26, 31, 60, 199].map { $0 * block..<$0 * block + 5 }
    let got = try await test.blocking {
      _ = try cache.read(key, parts.reversed())
      return try cache.read(key, parts)
    }
    #expect(got == parts.map { Array(content[Int($0.lowerBound)..<Int($0.upperBound)]) })
    let expected = [3...3, 20...20, 26...31, 60...60, 199...199].map {
      "\($0.lowerBound * Int(block))-\(($0.upperBound + 1) * Int(block) - 1)"
    }
    #expect(Set(test.requests().dropFirst(2)) == Set(expected) && test.requests().count == 7)
  }

  @Test("a store that fails while parts are fetched ends that with its error, and the next call begins again")
  func failingParts() async throws {
    let test = try CacheTest { ($0.attempts, $0.breakSeconds) = (1, 0) }
    let content = TestStore.bytes(100 * CacheTest.block)
    let (key, cache) = (try await test.put(content), try test.cache())
    let parts = stride(from: Int64(0), to: 100, by: 10).map {
      $0 * Int64(CacheTest.block)..<$0 * Int64(CacheTest.block) + 9
    }
    _ = try await test.blocking { try cache.read(key, 0..<1) }
    test.store.fail(.refuses(503, code: "SlowDown"), .refuses(503, code: "SlowDown"))
    await #expect(throws: StorageError.self) { try await test.blocking { try cache.read(key, parts) } }
    test.store.heal()
    let got = try await test.blocking { try cache.read(key, parts) }
    #expect(got == parts.map { Array(content[Int($0.lowerBound)..<Int($0.upperBound)]) })
  }

  @Test("a file with the whole object is made of what is missing, and is at hand afterward")
  func wholeFile() async throws {
    let test = try CacheTest()
    let (key, cache) = (try await test.put(content), try test.cache())
    let (early, file) = try await test.blocking {
      _ = try cache.read(key, 70_000..<70_001)
      return (cache.fileAtHand(key)?.path, try cache.file(key))
    }
    #expect(early == nil)
    #expect(file?.withPath(CacheTest.contents) == content)
    #expect(cache.fileAtHand(key)?.path == file?.path && cache.path(of: key) == file?.path)
    #expect(test.requests() == ["HEAD", "65536-131071", "0-65535", "131072-299999"])
  }

  @Test("an object without bytes has a file")
  func emptyObject() async throws {
    let test = try CacheTest()
    let (key, cache) = (try await test.put([]), try test.cache())
    let file = try await test.blocking { try cache.file(key) }
    #expect(file?.withPath(CacheTest.contents) == [])
    #expect(test.requests() == ["HEAD"])
  }

  @Test("without an object there are neither bytes nor a file")
  func missing() async throws {
    let test = try CacheTest()
    let cache = try test.cache()
    let key = ObjectKey(RecordingID(), "audio.wav")
    let isMissing = try await test.blocking { try cache.read(key, 0..<1) == nil && cache.file(key) == nil }
    #expect(isMissing && cache.fileAtHand(key) == nil && !CacheTest.exists(cache.path(of: key)) && cache.cost == 0)
  }

  @Test("many readers at once share each fetch and get the right bytes")
  func sharedFetches() async throws {
    let test = try CacheTest()
    let content = TestStore.bytes(40 * CacheTest.block + 17)
    let (key, cache) = (try await test.put(content), try test.cache())
    test.store.fail(.delays(.milliseconds(20)), .delays(.milliseconds(20)), .delays(.milliseconds(20)))
    let wrong = try await withThrowingTaskGroup(of: Int.self) { group in
      for reader in 0..<8 {
        group.addTask {
          try await test.blocking {
            var generator = TestRandom(for: reader)
            if reader == 0 { return try cache.file(key)?.withPath(CacheTest.contents) == content ? 0 : 1 }
            return try (0..<60).count { _ in
              let start = Int64.random(in: 0..<Int64(content.count), using: &generator)
              let range = start..<min(start + .random(in: 1...200_000, using: &generator), Int64(content.count))
              return try cache.read(key, range) != Array(content[Int(range.lowerBound)..<Int(range.upperBound)])
            }
          }
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(wrong == 0)
    #expect(test.requests().count { $0 == "HEAD" } == 1)
    let fetched = test.requests().filter { $0 != "HEAD" }.map { $0.split(separator: "-").compactMap { Int($0) } }
    #expect(fetched.reduce(0) { $0 + $1[1] - $1[0] + 1 } == content.count)
  }

  // MARK: At hand

  @Test("blocks that the cache has are at hand, also after a restart, and asking for that asks the store for nothing")
  func atHand() async throws {
    let test = try CacheTest()
    let content = TestStore.bytes(12 * CacheTest.block)
    let (key, block) = (try await test.put(content), Int64(CacheTest.block))
    let begun = test.store.received.count
    try await test.blocking {
      let cache = try test.cache()
      #expect(!cache.isAtHand(key, [0..<1]))
      #expect(test.store.received.count == begun)
      _ = try cache.read(key, [0..<1, 8 * block..<8 * block + 1])
      #expect(cache.isAtHand(key, [0..<block, 8 * block..<9 * block, 0..<0]))
      #expect(!cache.isAtHand(key, [0..<block + 1]) && !cache.isAtHand(key, [0..<1, block..<block + 1]))
    }
    let before = test.store.received.count
    try await test.blocking {
      let cache = try test.cache()
      #expect(!cache.isAtHand(key, [7 * block..<8 * block + 1]))
      #expect(cache.isAtHand(key, [8 * block..<9 * block]))
      // The disk has lost some of what was written.
      try CacheTest.change(test.objectPath(key)) { $0[5] ^= 1 }
      #expect(!cache.isAtHand(key, [0..<1]))
      #expect(cache.isAtHand(key, [8 * block..<9 * block]))
    }
    #expect(test.store.received.count == before)
    try await test.blocking {
      // An index that can't be read is begun again by the next reader.
      try CacheTest.change(test.indexPath(key)) { $0[0] ^= 1 }
      let cache = try test.cache()
      #expect(!cache.isAtHand(key, [8 * block..<9 * block]))
      #expect(try cache.read(key, 8 * block..<8 * block + 9) == Array(content[8 * 65_536..<8 * 65_536 + 9]))
    }
  }

  @Test("whether blocks are at hand is known at once while the store is silent about others, and about other objects")
  func atHandMeanwhile() async throws {
    let test = try CacheTest()
    let (key, other, block) = (try await test.put(content), try await test.put(content), Int64(CacheTest.block))
    let cache = try test.cache()
    _ = try await test.blocking { try cache.read(key, 0..<1) }
    let before = test.store.received.count
    let (gate, end) = AsyncStream.makeStream(of: Never.self)
    test.store.fail(.holds(until: gate))
    async let bytes = test.blocking { try cache.read(key, block..<block + 1) }
    while test.store.received.count < before + 1 { await Task.yield() }
    #expect(try await test.blocking { cache.isAtHand(key, [0..<block]) })
    #expect(try await test.blocking { !cache.isAtHand(key, [block..<block + 1]) })
    end.finish()
    #expect(try await bytes?.count == 1)
    #expect(try await test.blocking { cache.isAtHand(key, [block..<block + 1]) })
    // The same while the store is asked what an object is.
    let (gate2, end2) = AsyncStream.makeStream(of: Never.self)
    test.store.fail(.holds(until: gate2))
    async let beginning = test.blocking { try cache.read(other, 0..<1) }
    while test.store.received.count < before + 2 { await Task.yield() }
    #expect(try await test.blocking { !cache.isAtHand(other, [0..<1]) })
    end2.finish()
    #expect(try await beginning?.count == 1)
  }

  // MARK: Restarts

  @Test("what was cached needs no request after a restart, whether in part or whole")
  func restart() async throws {
    let test = try CacheTest()
    let (part, whole) = (try await test.put(content), try await test.put(content))
    try await test.blocking {
      let cache = try test.cache()
      _ = try cache.read(part, 100_000..<200_000)
      _ = try cache.file(whole)
    }
    let before = test.store.received.count
    let cache = try test.cache()
    #expect(cache.fileAtHand(whole) == nil)
    let (bytes, file) = try await test.blocking { (try cache.read(part, 100_000..<200_000), try cache.file(whole)) }
    #expect(bytes == Array(content[100_000..<200_000]) && file?.withPath(CacheTest.contents) == content)
    #expect(test.requests(after: before) == [])
  }

  @Test("files that are no objects are removed at startup, and a second process has no access")
  func strays() async throws {
    let test = try CacheTest()
    let key = try await test.put(content)
    let cache = try test.cache()
    _ = try await test.blocking { try cache.file(key) }
    #expect(throws: StorageError.inUse(path: test.directory)) { try test.cache(patience: .zero) }
    for name in ["objects/x", "indexes/y", "incoming/z", "objects/w", "indexes/w"] {
      _ = try test.folder.file("cache/\(name)", [1])
    }
    let copy = test.folder.path + "/copy"
    try FileManager.default.copyItem(atPath: test.directory, toPath: copy)
    let restarted = try test.cache(in: copy)
    #expect(try FileManager.default.subpathsOfDirectory(atPath: copy).count { $0.contains("/") } == 2)
    #expect(restarted.cost > 300_000 && restarted.cost < 400_000)
  }

  @Test("a file that was stored is the cache's copy, also after a restart; a removed object is asked for again")
  func insertion() async throws {
    let test = try CacheTest()
    let (key, content) = (try await test.put(content), content)
    let version = CachedVersion(
      bytes: Int64(content.count), entityTag: "", sha256: Hexadecimal.text(SHA256.digest(of: content)))
    try await test.blocking {
      let cache = try test.cache()
      let path = cache.incomingPath()
      try Data(content).write(to: URL(fileURLWithPath: path))
      cache.insert(path, as: key, version, digests: CachedVersion.digests(of: content))
      #expect(cache.fileAtHand(key)?.withPath(CacheTest.contents) == content && !CacheTest.exists(path))
      cache.insert(path, as: key, version, digests: [])
      #expect(cache.fileAtHand(key) != nil)
    }
    let cache = try test.cache()
    #expect(try await test.blocking { try cache.file(key)?.withPath(CacheTest.contents) } == content)
    #expect(test.requests() == [])
    try await test.blocking { cache.remove(key) }
    #expect(cache.cost == 0 && !CacheTest.exists(test.objectPath(key)))
    #expect(try await test.blocking { try cache.read(key, 0..<1) } == [content[0]])
    #expect(test.requests() == ["HEAD", "0-65535"])
  }
}
