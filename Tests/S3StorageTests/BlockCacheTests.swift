import Foundation
import ObjectStore
import PresentRows
import Randomness
import Storage
import Synchronization
import Testing

@testable import S3Storage

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

  @Test("the least recently used objects go first, and what is held stays until it is released")
  func eviction() async throws {
    let test = try CacheTest()
    var keys: [ObjectKey] = []
    for _ in 0..<4 { keys.append(try await test.put(content)) }
    let (first, second, third, fourth) = (keys[0], keys[1], keys[2], keys[3])
    // Three fit.
    let cache = try test.cache(limit: 1_000_000)
    let file = try await test.blocking {
      let file = try cache.file(first)
      for key in [second, third, second, fourth] { _ = try cache.file(key) }
      return file
    }
    #expect(keys.map { cache.fileAtHand($0) != nil } == [true, true, false, true])
    #expect(!CacheTest.exists(test.objectPath(third)) && !CacheTest.exists(test.indexPath(third)))
    #expect(file?.withPath(CacheTest.contents) == content)
    #expect(cache.cost <= 1_000_000)
  }

  @Test("a full cache gives up a little more than it must, so that the next object needs no search for victims")
  func evictionInAdvance() async throws {
    let test = try CacheTest()
    var keys: [ObjectKey] = []
    for _ in 0..<67 { keys.append(try await test.put([1, 2, 3])) }
    let cost = try await test.blocking { [keys] in
      let cache = try test.cache()
      _ = try cache.file(keys[0])
      return cache.cost
    }
    let cache = try test.cache(limit: 64 * cost, in: test.directory + "-small")
    let costs = try await test.blocking { [keys] in
      try keys.dropFirst().map { key in
        _ = try cache.file(key)
        return cache.cost / cost
      }
    }
    #expect(costs.suffix(4) == [63, 64, 63, 64], "\(costs) of \(cost)")
  }

  /// A disk of a megabyte that has only the cache's objects.
  private final class SmallDisk: Sendable {
    let cache = Mutex<BlockCache?>(nil)

    var freeBytes: Int64 { 1_000_000 - (cache.withLock { $0 }?.cost ?? 0) }
  }

  @Test("a disk that fills up loses the least recently used objects first, and a full one is an error")
  func fullDisk() async throws {
    let test = try CacheTest()
    var keys: [ObjectKey] = []
    for _ in 0..<4 { keys.append(try await test.put(content)) }
    let disk = SmallDisk()
    let cache = try test.cache(spare: 200_000, freeBytes: { disk.freeBytes })
    disk.cache.withLock { $0 = cache }
    let (first, second, third, fourth) = (keys[0], keys[1], keys[2], keys[3])
    try await test.blocking { for key in [first, second, third] { _ = try cache.file(key) } }
    #expect(keys.map { cache.fileAtHand($0) != nil } == [false, true, true, false])
    #expect(disk.freeBytes >= 200_000 && cache.evictableBytes == cache.cost)
    try await test.blocking {
      let held = [try cache.file(second), try cache.file(third)]
      #expect(cache.evictableBytes == 0)
      let more = try cache.file(first)
      #expect(throws: StorageError.diskFull) { try cache.file(fourth) }
      withExtendedLifetime((held, more)) {}
    }
    cache.settle()
    #expect(try await test.blocking { try cache.file(fourth)?.withPath(CacheTest.contents) } == content)
    disk.cache.withLock { $0 = nil }
  }

  @Test("objects whose space comes back late don't cost all the others")
  func lateSpace() async throws {
    let test = try CacheTest()
    var keys: [ObjectKey] = []
    for _ in 0..<3 { keys.append(try await test.put(content)) }
    let all = keys
    let cache = try test.cache(spare: 100_000, freeBytes: { 500_000 })
    try await test.blocking {
      for key in all { _ = try cache.file(key) }
      // The disk never shows what was removed.
      #expect(throws: Never.self) { try cache.makeRoom(for: 450_000) }
    }
    #expect(all.map { cache.fileAtHand($0) != nil } == [false, true, true])
  }

  @Test("files in progress get the room that objects take which aren't held")
  func roomForOthers() async throws {
    let test = try CacheTest()
    let (one, two) = (try await test.put(content), try await test.put(content))
    let disk = SmallDisk()
    let cache = try test.cache(freeBytes: { disk.freeBytes })
    disk.cache.withLock { $0 = cache }
    try await test.blocking {
      for key in [one, two] { _ = try cache.file(key) }
      try cache.makeRoom(for: 600_000)
      #expect(disk.freeBytes >= 600_000 && cache.fileAtHand(one) == nil && cache.fileAtHand(two) != nil)
      #expect(throws: StorageError.diskFull) { try cache.makeRoom(for: 1_000_001) }
    }
    disk.cache.withLock { $0 = nil }
  }

  @Test("held objects may exceed the limit, and go when they are released")
  func heldObjects() async throws {
    let test = try CacheTest()
    let cache = try test.cache(limit: 100_000)
    var files: [LocalFile] = []
    for _ in 0..<3 {
      let key = try await test.put(content)
      files.append(try #require(try await test.blocking { try cache.file(key) }))
    }
    let paths = files.map(\.path)
    cache.settle()
    #expect(paths.map(CacheTest.contents) == [content, content, content] && cache.cost > 900_000)
    files = []
    cache.settle()
    #expect(!paths.contains(where: CacheTest.exists) && cache.cost == 0)
  }

  @Test("a restart keeps the order of use, and the limit")
  func evictionAfterRestart() async throws {
    let test = try CacheTest()
    var keys: [ObjectKey] = []
    for _ in 0..<3 { keys.append(try await test.put(content)) }
    let all = keys
    try await test.blocking {
      let cache = try test.cache()
      for key in all { _ = try cache.file(key) }
    }
    for (key, age) in zip(keys, [200.0, 300, 100]) {
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSinceNow: -age)], ofItemAtPath: test.indexPath(key))
    }
    let cache = try test.cache(limit: 700_000)
    #expect(keys.map { CacheTest.exists(test.objectPath($0)) } == [true, false, true])
    _ = try await test.blocking { try cache.file(all[0]) }
    // This use is as good as one of the process before.
    let other = try await test.put(content)
    _ = try await test.blocking { try cache.file(other) }
    #expect(keys.map { CacheTest.exists(test.objectPath($0)) } == [true, false, false])
  }

  @Test("readers are right while what they read is evicted and fetched again")
  func evictionUnderReaders() async throws {
    let test = try CacheTest()
    var keys: [ObjectKey] = []
    for _ in 0..<4 { keys.append(try await test.put(content)) }
    let (all, content) = (keys, content)
    let cache = try test.cache(limit: 400_000)
    let wrong = try await withThrowingTaskGroup(of: Int.self) { group in
      for reader in 0..<4 {
        group.addTask {
          try await test.blocking {
            var generator = TestRandom(for: reader)
            return try (0..<40).count { turn in
              guard let key = all.randomElement(using: &generator) else { return true }
              if turn % 4 == 0 { return try cache.file(key)?.withPath(CacheTest.contents) != content }
              return try cache.read(key, 60_000..<70_000) != Array(content[60_000..<70_000])
            }
          }
        }
      }
      return try await group.reduce(0, +)
    }
    cache.settle()
    #expect(wrong == 0 && cache.cost <= 400_000)
  }

  // MARK: Faults of the store

  @Test("wrong bytes are noticed once the object is whole, and fetched again; lasting damage is an error")
  func wrongBytes() async throws {
    let test = try CacheTest()
    let (key, cache) = (try await test.put(content), try test.cache())
    test.store.fail(.none, .damages)
    #expect(try await test.blocking { try cache.file(key)?.withPath(CacheTest.contents) } == content)
    let other = try await test.put(content)
    test.store.fail(.none, .damages, .damages)
    await #expect(throws: StorageError.damagedObject(key: "\(other)")) {
      try await test.blocking { try cache.file(other) }
    }
    #expect(cache.fileAtHand(other) == nil)
    #expect(try await test.blocking { try cache.file(other)?.withPath(CacheTest.contents) } == content)
  }

  @Test("an object that isn't the one of its row is refused, whatever the store says about it")
  func anotherObject() async throws {
    let test = try CacheTest()
    let (key, content) = (try await test.put(content), content)
    let other = [UInt8](content.reversed())
    let digest = { (bytes: [UInt8]) in Hexadecimal.text(SHA256.digest(of: bytes)) }
    func expected(_ sha256: String, bytes: Int64) throws -> BlockCache {
      try test.cache(
        in: test.folder.path + "/\(sha256)\(bytes)", expecting: { StoredFile(key: $0, bytes: bytes, sha256: sha256) })
    }
    let damaged = StorageError.damagedObject(key: "\(key)")
    for cache in [try expected(digest(other), bytes: 300_000), try expected(digest(content), bytes: 299_999)] {
      await #expect(throws: damaged) { try await test.blocking { try cache.read(key, 0..<1) } }
      await #expect(throws: damaged) { try await test.blocking { try cache.file(key) } }
    }
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
