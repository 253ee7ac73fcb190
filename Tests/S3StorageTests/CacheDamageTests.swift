import Foundation
import ObjectStore
import PresentRows
import Randomness
import Storage
import Terms
import Testing

@testable import S3Storage

/// A cache whose disk loses something, and stores that fail or send something else.
@Suite struct CacheDamageTests {
  private let content = TestStore.bytes(300_000)

  @Test("a file or an index that lost something loses blocks, and never gives wrong bytes", arguments: 0..<12)
  func damagedFiles(round: Int) async throws {
    var generator = TestRandom(for: round)
    let test = try CacheTest()
    let (key, content) = (try await test.put(content), content)
    try await test.blocking {
      let cache = try test.cache()
      if round % 2 == 0 { _ = try cache.file(key) } else { _ = try cache.read(key, 0..<200_000) }
    }
    let path = round % 3 == 0 ? test.objectPath(key) : test.indexPath(key)
    try CacheTest.change(path) { bytes in
      switch round % 4 {
      case 0: bytes.removeLast(.random(in: 1...bytes.count, using: &generator))
      case 1:
        let start = Int.random(in: 0..<bytes.count, using: &generator)
        for place in start..<bytes.count { bytes[place] = 0 }
      case 2: for _ in 0..<20 { bytes[.random(in: 0..<bytes.count, using: &generator)] ^= 0x40 }
      default: bytes = []
      }
    }
    let cache = try test.cache()
    let (bytes, file) = try await test.blocking { (try cache.read(key, 50_000..<250_000), try cache.file(key)) }
    let areRight = bytes == Array(content[50_000..<250_000]) && file?.withPath(CacheTest.contents) == content
    #expect(areRight)
  }

  @Test("an index that names another SHA-256 than it did isn't believed")
  func damagedHead() async throws {
    let test = try CacheTest()
    let (key, content) = (try await test.put(content), content)
    try await test.blocking { _ = try test.cache().read(key, 0..<300_000) }
    try CacheTest.change(test.indexPath(key)) { $0[16] ^= 1 }
    let cache = try test.cache()
    #expect(try await test.blocking { try cache.file(key)?.withPath(CacheTest.contents) } == content)
  }

  @Test("a killed process leaves only blocks that are right, wherever it was")
  func kills() async throws {
    let test = try CacheTest()
    let content = TestStore.bytes(30 * CacheTest.block)
    let key = try await test.put(content)
    let cache = try test.cache()
    async let filling: Void = test.blocking {
      for block in 0..<30 {
        let start = Int64(block * 7 % 30 * CacheTest.block)
        _ = try cache.read(key, start..<start + 1)
      }
    }
    // What is on the disk at some moment, and not even of one moment for all files.
    for kill in 0..<8 {
      let copy = "\(test.folder.path)/kill-\(kill)"
      try FileManager.default.copyItem(atPath: test.directory, toPath: copy)
      let bytes = try await test.blocking {
        let restarted = try test.cache(in: copy)
        let range = Int64(kill * CacheTest.block)..<Int64((kill + 9) * CacheTest.block)
        return (try restarted.read(key, range), try restarted.file(key)?.withPath(CacheTest.contents))
      }
      // Not within #expect, which would print both.
      let areRight = bytes.0 == Array(content[kill * CacheTest.block..<(kill + 9) * CacheTest.block])
      let isRight = bytes.1 == content
      #expect(areRight && isRight)
    }
    try await filling
  }

  @Test("what another program removes or replaces while the node runs is fetched again", arguments: [0, 1, 2])
  func emptiedCache(change: Int) async throws {
    let test = try CacheTest()
    let (key, part) = (try await test.put(content), try await test.put(content))
    let (cache, content) = (try test.cache(), content)
    _ = try await test.blocking { (try cache.file(key), try cache.read(part, 0..<9)) }
    for path in [key, part].map(test.objectPath) {
      switch change {
      case 0: try FileManager.default.removeItem(atPath: path)
      case 1:
        // A copy has another inode.
        try FileManager.default.moveItem(atPath: path, toPath: path + ".old")
        try Data(content.map { ~$0 }).write(to: URL(fileURLWithPath: path))
      default: try CacheTest.change(path) { $0.removeLast() }
      }
    }
    #expect(cache.fileAtHand(key) == nil && cache.knownLength(of: key) == nil)
    let areRight = try await test.blocking {
      try cache.file(key)?.withPath(CacheTest.contents) == content && cache.read(part, 0..<9) == Array(content[..<9])
    }
    #expect(areRight && cache.fileAtHand(key) != nil)
    #expect(cache.cost < 500_000)
  }

  // MARK: Eviction

  @Test("wrong bytes are noticed once the object is whole, and fetched again; the same ones twice are lasting damage")
  func wrongBytes() async throws {
    let test = try CacheTest()
    let (key, cache) = (try await test.put(content), try test.cache())
    test.store.fail(.none, .damages(1))
    #expect(try await test.blocking { try cache.file(key)?.withPath(CacheTest.contents) } == content)
    let other = try await test.put(content)
    test.store.fail(.none, .damages(1), .damages(1))
    await #expect(throws: StorageError.damagedObject(key: "\(other)")) {
      try await test.blocking { try cache.file(other) }
    }
    #expect(cache.fileAtHand(other) == nil)
    #expect(try await test.blocking { try cache.file(other)?.withPath(CacheTest.contents) } == content)
  }

  @Test("bytes that are wrong in another way each time are the connection's fault, and may be right later")
  func damagingLine() async throws {
    let test = try CacheTest()
    let (key, cache) = (try await test.put(content), try test.cache())
    test.store.fail(.none, .damages(1), .damages(2), .damages(4))
    await #expect(throws: StorageError.storeUnreachable(detail: "\(key) arrives damaged, with other bytes each time")) {
      try await test.blocking { try cache.file(key) }
    }
    #expect(cache.fileAtHand(key) == nil && !cache.isAtHand(key, [0..<1]), "no block of it is kept")
    #expect(try await test.blocking { try cache.file(key)?.withPath(CacheTest.contents) } == content)
  }

  @Test("a length that isn't the row's is believed once a second connection has said the same")
  func wrongHeads() async throws {
    let test = try CacheTest()
    let (store, content) = (test.store, content)
    let cache = try test.cache(expecting: { ExpectedObject(key: $0, bytes: 300_000, sha256: nil) })
    func bytes(_ key: ObjectKey) async throws -> [UInt8]? {
      try await test.blocking { try cache.file(key)?.withPath(CacheTest.contents) }
    }
    var key = try await test.put(content)
    let before = store.connectionCount
    store.fail(.misstates(length: 5))
    var isRight = try await bytes(key) == content
    #expect(isRight && store.connectionCount == before + 1)
    key = try await test.put(content)
    store.fail(.misstates(length: 5), .misstates(length: 6))
    await #expect(throws: StorageError(S3Error.damaged)) { try await bytes(key) }
    store.fail(.misstates(length: 5), .misstates(length: 5))
    await #expect(throws: StorageError.damagedObject(key: "\(key)")) { try await bytes(key) }
    isRight = try await bytes(key) == content
    #expect(isRight)
  }

  @Test(
    "a wrong length that no row contradicts is noticed with the first bytes", arguments: [200_000, 400_000] as [Int64])
  func wrongHeadWithoutRow(length: Int64) async throws {
    let test = try CacheTest()
    let (key, cache, content) = (try await test.put(content), try test.cache(), content)
    test.store.fail(.misstates(length: length))
    #expect(try await test.blocking { try cache.read(key, 0..<10) } == Array(content[..<10]))
    let isRight = try await test.blocking { try cache.file(key)?.withPath(CacheTest.contents) } == content
    #expect(isRight && cache.knownLength(of: key) == 300_000)
  }

  @Test("damage that comes back after the connection's is the store's")
  func damageBehindADamagingLine() async throws {
    let test = try CacheTest()
    let (key, cache) = (try await test.put(content), try test.cache())
    test.store.fail(.none, .damages(1), .damages(2), .damages(2))
    await #expect(throws: StorageError.self) { try await test.blocking { try cache.file(key) } }
    await #expect(throws: StorageError.damagedObject(key: "\(key)")) {
      try await test.blocking { try cache.file(key) }
    }
  }

  @Test("an object that isn't the one of its row is refused, whatever the store says about it")
  func anotherObject() async throws {
    let test = try CacheTest()
    let (key, content) = (try await test.put(content), content)
    let other = [UInt8](content.reversed())
    let digest = { (bytes: [UInt8]) in Hexadecimal.text(SHA256.digest(of: bytes)) }
    func expected(_ sha256: String, bytes: Int64) throws -> BlockCache {
      try test.cache(
        in: test.folder.path + "/\(sha256)\(bytes)",
        expecting: { ExpectedObject(key: $0, bytes: bytes, sha256: sha256) })
    }
    let damaged = StorageError.damagedObject(key: "\(key)")
    for cache in [try expected(digest(other), bytes: 300_000), try expected(digest(content), bytes: 299_999)] {
      await #expect(throws: damaged) { try await test.blocking { try cache.read(key, 0..<1) } }
      await #expect(throws: damaged) { try await test.blocking { try cache.file(key) } }
    }
    // A row may have the length only.
    let short = try test.cache(
      in: test.folder.path + "/short", expecting: { ExpectedObject(key: $0, bytes: 299_999, sha256: nil) })
    await #expect(throws: damaged) { try await test.blocking { try short.file(key) } }
    // Put without its SHA-256.
    test.store.put(other, as: "\(key)", in: "sounds")
    let cache = try expected(digest(content), bytes: 300_000)
    await #expect(throws: damaged) { try await test.blocking { try cache.file(key) } }
    let right = try expected(digest(other), bytes: 300_000)
    #expect(try await test.blocking { try right.file(key)?.withPath(CacheTest.contents) } == other)
  }

  @Test("connections that break and a busy store only take longer")
  func brokenConnections() async throws {
    let test = try CacheTest()
    let (key, cache) = (try await test.put(content), try test.cache())
    test.store.fail(.refuses(503, code: "SlowDown"), .none, .cuts(afterBytes: 70_000), .cuts(afterBytes: 0))
    #expect(try await test.blocking { try cache.read(key, 0..<300_000) } == content)
  }

  @Test("a store that never answers is an error at the deadline, each time it is asked")
  func silentStore() async throws {
    let test = try CacheTest {
      $0.requestSeconds = 0.05
      $0.attempts = 1
    }
    let (key, cache) = (ObjectKey(RecordingID(), "audio.wav"), try test.cache())
    test.store.fail(.hangs, .hangs)
    for _ in 0..<2 {
      await #expect(throws: StorageError(S3Error.timedOut)) { try await test.blocking { try cache.file(key) } }
    }
  }

  @Test("an object that changes under its key isn't joined of two versions, and one that goes is missing")
  func changedObject() async throws {
    let test = try CacheTest()
    let (key, cache) = (try await test.put(content), try test.cache())
    let other = [UInt8](content.reversed())
    _ = try await test.blocking { try cache.read(key, 0..<1) }
    test.store.fail(.replaces(other))
    #expect(try await test.blocking { try cache.read(key, 200_000..<200_001) } == [other[200_000]])
    #expect(try await test.blocking { try cache.file(key)?.withPath(CacheTest.contents) } == other)
    let gone = try await test.put(content)
    _ = try await test.blocking { try cache.read(gone, 0..<1) }
    test.store.empty("sounds")
    #expect(try await test.blocking { try cache.file(gone) } == nil)
    #expect(cache.cost < 400_000)
  }

  // MARK: Insertion
}
