import Foundation
import Randomness
import Storage
import Synchronization
import Testing

@testable import S3Storage

/// What the cache gives up when it is full or its disk is.
@Suite struct CacheEvictionTests {
  private let content = TestStore.bytes(300_000)

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
    cache.settle()
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

  @Test("a read for which the disk has no room evicts what it needs", .enabled(if: TestDisk.isAllowed))
  func readOnFullDisk() async throws {
    let test = try CacheTest()
    let disk = try TestDisk(at: test.directory, bytes: 1 << 20)
    defer { withExtendedLifetime(disk) {} }
    let cache = try test.cache()
    var keys: [ObjectKey] = []
    for _ in 0..<4 { keys.append(try await test.put(content)) }
    let (old, new) = (keys.dropLast(), keys[3])
    try await test.blocking { for key in old { _ = try cache.file(key) } }
    #expect(old.allSatisfy { cache.fileAtHand($0) != nil }, "the disk is as good as full")
    let bytes = try await test.blocking { try cache.read(new, 0..<250_000) }
    let isRight = bytes == Array(content[..<250_000])
    #expect(isRight)
    cache.settle()
    #expect(old.map { cache.fileAtHand($0) != nil } == [false, true, true])
    let held = try await test.blocking { try old.dropFirst().map { try cache.file($0) } + [try cache.file(new)] }
    await #expect(throws: StorageError.diskFull) { try await test.blocking { try cache.read(old[0], 0..<250_000) } }
    withExtendedLifetime(held) {}
  }

  @Test(
    "objects whose files another program has removed give no room, and others are evicted instead",
    .enabled(if: TestDisk.isAllowed))
  func evictionOfWhatIsGone() async throws {
    let test = try CacheTest()
    let disk = try TestDisk(at: test.directory, bytes: 1 << 20)
    defer { withExtendedLifetime(disk) {} }
    let cache = try test.cache()
    var keys: [ObjectKey] = []
    for _ in 0..<7 { keys.append(try await test.put(content)) }
    let (gone, old, new) = (keys[..<3], keys[3..<6], keys[6])
    try await test.blocking { for key in gone { _ = try cache.file(key) } }
    for folder in ["objects", "indexes"] { try FileManager.default.removeItem(atPath: "\(test.directory)/\(folder)") }
    try await test.blocking { for key in old { _ = try cache.file(key) } }
    #expect(old.allSatisfy { cache.fileAtHand($0) != nil }, "the disk is as good as full")
    #expect(try await test.blocking { try cache.file(new)?.withPath(CacheTest.contents) } == content)
    #expect(old.map { cache.fileAtHand($0) != nil } == [false, true, true])
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
      #expect(throws: Never.self) { _ = try cache.reserve(450_000) }
    }
    #expect(all.map { cache.fileAtHand($0) != nil } == [false, true, true])
  }

  @Test("room that evicted objects haven't given back yet isn't reserved")
  func lateRoom() async throws {
    let test = try CacheTest()
    let key = try await test.put(content)
    let cache = try test.cache(freeBytes: { 500_000 })
    try await test.blocking {
      _ = try cache.file(key)
      #expect(throws: StorageError.diskFull) { _ = try cache.reserve(600_000) }
    }
  }

  @Test("files that were stored make the least recently used ones go as soon as all exceed the limit")
  func storedFiles() async throws {
    let test = try CacheTest()
    let (content, cache) = (content, try test.cache(limit: 700_000))
    let version = CachedVersion(bytes: Int64(content.count), entityTag: "", sha256: nil)
    try await test.blocking {
      for _ in 0..<3 {
        let (path, key) = (cache.incomingPath(), ObjectKey(RecordingID(), "audio.wav"))
        try Data(content).write(to: URL(fileURLWithPath: path))
        cache.insert(path, as: key, version, digests: CachedVersion.digests(of: content))
        #expect(cache.cost <= 700_000 && cache.fileAtHand(key) != nil)
      }
    }
  }

  @Test("an object whose files another thread creates or removes isn't evicted")
  func busyObjects() {
    let (busy, idle) = (ObjectKey(RecordingID(), "audio.wav"), ObjectKey(RecordingID(), "audio.wav"))
    var table = CacheTable()
    for key in [busy, idle] { table.insert(key, nil, cost: 10) }
    table.busy[busy] = SharedTask()
    #expect(table.takeVictim(costingAtMost: 10, for: SharedTask())?.key == idle)
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
      _ = try cache.reserve(600_000)
      #expect(disk.freeBytes >= 600_000 && cache.fileAtHand(one) == nil && cache.fileAtHand(two) != nil)
      #expect(throws: StorageError.diskFull) { _ = try cache.reserve(1_000_001) }
    }
    disk.cache.withLock { $0 = nil }
  }

  @Test("what was promised to one fetch isn't promised to another until that ends, and counts less as it is used")
  func promises() async throws {
    let test = try CacheTest()
    let free = Mutex<Int64>(10_000_000)
    let cache = try test.cache(freeBytes: { free.withLock { $0 } })
    try await test.blocking {
      var first: BlockCache.Room? = try cache.reserve(8_000_000)
      #expect(throws: StorageError.diskFull) { _ = try cache.reserve(8_000_000) }
      let second = try cache.reserve(2_000_000)
      #expect(throws: StorageError.diskFull) { _ = try cache.reserve(1) }
      // Half of the first has been written.
      free.withLock { $0 -= 4_000_000 }
      first?.use(4_000_000)
      #expect(throws: StorageError.diskFull) { _ = try cache.reserve(1) }
      withExtendedLifetime(first) {}
      first = nil
      #expect(throws: Never.self) { _ = try cache.reserve(4_000_000) }
      #expect(throws: StorageError.diskFull) { _ = try cache.reserve(4_000_001) }
      withExtendedLifetime(second) {}
    }
  }

  @Test("uploads don't get the room that is reserved for fetches and isn't used yet")
  func roomBesideUploads() async throws {
    let test = try CacheTest()
    let free = Mutex<Int64>(10_000_000)
    let cache = try test.cache(freeBytes: { free.withLock { $0 } })
    let scratch = Scratch(
      try MediaStore(scratch: test.folder.path + "/scratch"), sharedWith: cache, freeBytes: { free.withLock { $0 } })
    let key = try await test.put(content)
    try await test.blocking {
      #expect(try scratch.freeBytes() == 10_000_000)
      var room: BlockCache.Room? = try cache.reserve(8_000_000)
      #expect(try scratch.freeBytes() == 2_000_000)
      free.withLock { $0 -= 3_000_000 }
      room?.use(3_000_000)
      #expect(try scratch.freeBytes() == 2_000_000)
      // Something else has filled the disk meanwhile.
      free.withLock { $0 = 1_000_000 }
      #expect(try scratch.freeBytes() == 0)
      withExtendedLifetime(room) {}
      room = nil
      #expect(try scratch.freeBytes() == 1_000_000)
      // What can be evicted counts as free.
      _ = try cache.read(key, 0..<1)
      #expect(try scratch.freeBytes() == 1_000_000 + cache.cost)
    }
  }

  @Test("several that fetch one object need its room once, and only as much as it lacks")
  func sharedRoom() async throws {
    let test = try CacheTest()
    let key = try await test.put(content)
    let disk = SmallDisk()
    // There is room for the object and its index, but not twice.
    let cache = try test.cache(freeBytes: { disk.freeBytes - 600_000 })
    disk.cache.withLock { $0 = cache }
    test.store.fail(.none, .delays(.milliseconds(20)))
    let content = content
    let areRight = try await withThrowingTaskGroup(of: Bool.self) { group in
      for _ in 0..<6 {
        group.addTask { try await test.blocking { try cache.file(key)?.withPath(CacheTest.contents) == content } }
      }
      return try await group.reduce(true) { $0 && $1 }
    }
    #expect(areRight)
    // Nothing stays promised.
    try await test.blocking { cache.remove(key) }
    #expect(throws: Never.self) { _ = try cache.reserve(400_000) }
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
}
