import Foundation
import Storage
import Terms
import Testing

@testable import S3Storage

/// A cache whose disk has no room, although objects could be evicted.
@Suite struct FullDiskTests {
  private let content = TestStore.bytes(300_000)

  /// A cache on a disk of 1 MiB, which three objects fill.
  private struct FullDisk: Sendable {
    let test: CacheTest
    let disk: TestDisk
    let cache: BlockCache
    let old: [ObjectKey]
    let new: ObjectKey

    /// `rest` are more bytes of the new object.
    init(_ content: [UInt8], rest: [UInt8] = [], freeBytes: (@Sendable () -> Int64)? = nil) async throws {
      let test = try CacheTest()
      let disk = try TestDisk(at: test.directory, bytes: 1 << 20)
      let cache = try test.cache(freeBytes: freeBytes)
      var keys: [ObjectKey] = []
      for _ in 0..<3 { keys.append(try await test.put(content)) }
      keys.append(try await test.put(content + rest))
      (self.test, self.disk, self.cache, old, new) = (test, disk, cache, Array(keys[..<3]), keys[3])
      try await test.blocking { [old] in for key in old { _ = try cache.file(key) } }
      #expect(isAtHand == [true, true, true])
    }

    var isAtHand: [Bool] { old.map { cache.fileAtHand($0) != nil } }

    func bytes(of key: ObjectKey, count: Int64 = 300_000) async throws -> [UInt8]? {
      try await test.blocking { [cache] in try cache.read(key, 0..<count) }
    }

    /// Writes a file that takes all that is left of the disk.
    func fill() {
      let path = test.directory + "/filler"
      _ = FileManager.default.createFile(atPath: path, contents: nil)
      guard let file = FileHandle(forWritingAtPath: path) else { return }
      while (try? file.write(contentsOf: Data(count: 1024))) != nil {}
    }
  }

  @Test("an object of which nothing is there yet gets room on a disk without any", .enabled(if: TestDisk.isAllowed))
  func newObject() async throws {
    let full = try await FullDisk(content)
    full.fill()
    let isRight = try await full.bytes(of: full.new) == content
    #expect(isRight)
    #expect(full.isAtHand.suffix(1) == [true], "not everything goes")
  }

  @Test(
    "a disk that reports free space but refuses writes, as under a quota, is treated as full",
    .enabled(if: TestDisk.isAllowed))
  func hiddenLimit() async throws {
    let full = try await FullDisk(content, freeBytes: { 1 << 40 })
    let isRight = try await full.bytes(of: full.new) == content
    #expect(isRight)
    #expect(full.isAtHand == [false, true, true])
  }

  @Test(
    "if the first to be evicted is open and gives no room, others go as well", .enabled(if: TestDisk.isAllowed))
  func openVictim() async throws {
    let full = try await FullDisk(content)
    let path = full.cache.path(of: full.old[0])
    let open = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
    let isRight = try await full.bytes(of: full.new) == content
    #expect(isRight)
    #expect(full.isAtHand == [false, false, true])
    try open.close()
  }

  @Test(
    "what a piece that wasn't finished takes of the disk is counted, and needn't be free once more",
    .enabled(if: TestDisk.isAllowed))
  func brokenPiece() async throws {
    let full = try await FullDisk(content)
    var held = try await full.test.blocking { [cache = full.cache, old = full.old] in
      try old.map { try cache.file($0) }
    }
    let before = full.cache.cost
    await #expect(throws: StorageError.diskFull) { try await full.bytes(of: full.new) }
    let (taken, free) = (full.cache.cost - before, try FileSystem.freeBytes(at: full.test.directory))
    #expect(taken > 50_000 && free < 10_000, "\(taken), \(free)")
    let cache = full.cache
    let object = try #require(cache.table.withLock { $0.entries[full.new]?.object })
    #expect(object.missingBytes == content.count && object.lackingBytes < content.count - 50_000)
    withExtendedLifetime(held) {}
    held = []
    #expect(try await full.bytes(of: full.new)?.count == content.count)
  }

  @Test("an object whose bytes are wrong counts with what it takes of the disk")
  func wrongBytes() async throws {
    let test = try CacheTest()
    let key = ObjectKey(RecordingID(), "waveform-1.pyramid")
    // The store itself doesn't know its SHA-256.
    test.store.put(content, as: "\(key)", in: "sounds")
    let other = Hexadecimal.text(SHA256.digest(of: [1]))
    let cache = try test.cache(expecting: { ExpectedObject(key: $0, bytes: nil, sha256: other) })
    await #expect(throws: StorageError.damagedObject(key: "\(key)")) {
      try await test.blocking { _ = try cache.file(key) }
    }
    #expect(cache.cost >= content.count)
  }

  @Test("objects whose files are gone don't make a full cache give up others")
  func goneAndLimited() async throws {
    let test = try CacheTest()
    // Three fit.
    let cache = try test.cache(limit: 1_100_000)
    var keys: [ObjectKey] = []
    for _ in 0..<4 { keys.append(try await test.put(content)) }
    let (old, new) = (keys[..<3], keys[3])
    try await test.blocking { for key in old { _ = try cache.file(key) } }
    try FileManager.default.removeItem(atPath: test.objectPath(keys[0]))
    _ = try await test.blocking { try cache.file(new) }
    #expect(keys.map { cache.fileAtHand($0) != nil } == [false, true, true, true])
  }

  @Test("what another program has removed counts as evictable only until that is noticed", arguments: [false, true])
  func goneFolder(isCheck: Bool) async throws {
    let test = try CacheTest()
    let cache = try test.cache()
    let (old, new) = (try await test.put(content), try await test.put([1]))
    try await test.blocking { _ = try cache.file(old) }
    #expect(cache.evictableBytes > 300_000)
    for folder in ["objects", "indexes"] { try FileManager.default.removeItem(atPath: "\(test.directory)/\(folder)") }
    try await test.blocking { if isCheck { try cache.checkWritable() } else { _ = try cache.read(new, 0..<1) } }
    cache.settle()
    #expect(cache.evictableBytes < 20_000)
  }

  @Test("several that wait for the same blocks on a full disk evict once", .enabled(if: TestDisk.isAllowed))
  func waitingReaders() async throws {
    // They want a part of it.
    let full = try await FullDisk(content, rest: content)
    let part = content.prefix(250_000)
    let areRight = try await withThrowingTaskGroup(of: Bool.self) { group in
      for _ in 0..<12 {
        group.addTask { try await full.bytes(of: full.new, count: 250_000)?.elementsEqual(part) == true }
      }
      return try await group.reduce(true) { $0 && $1 }
    }
    #expect(areRight)
    #expect(full.isAtHand == [false, true, true])
  }

  @Test("several that fetch the same blocks need their room once, and none if the whole object has it")
  func sharedBlocks() async throws {
    let test = try CacheTest()
    let key = try await test.put(content)
    let cache = try test.cache(freeBytes: { 300_000 })
    try await test.blocking {
      _ = try cache.read(key, 0..<1)
      let object = try #require(cache.table.withLock { $0.entries[key]?.object })
      var rooms = [try cache.reserve(.blocks(1..<4, of: object)), try cache.reserve(.blocks(1..<4, of: object))]
      #expect(cache.room.promised == 3 * 65_536)
      rooms.append(try cache.reserve(.rest(of: object)))
      #expect(cache.room.promised == object.lackingBytes)
      withExtendedLifetime(rooms) {}
    }
  }
}
