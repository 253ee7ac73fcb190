import Foundation
import PresentRows
import Storage
import Synchronization
import Testing

@testable import S3Storage

/// What others find at the path of an object, such as workers, which open it more than once.
@Suite struct CachePathTests {
  private let content = TestStore.bytes(300_000)

  @Test("a file that is held stays what it is when its copy is discarded and the object is begun again")
  func discardedWhileHeld() async throws {
    let cluster = try BlobsCluster()
    let (node, content) = (try cluster.node("n1"), content)
    let rights = try await cluster.blocking {
      let key = try #require(try cluster.node("n2").upload(content).audioKey)
      let file = try node.store.localFile(key)
      #expect(node.store.discardCopy(of: key))
      let early = CacheTest.contents(file.path) == content
      let part = try node.store.read(key, 100_000..<100_009) == Array(content[100_000..<100_009])
      let late = CacheTest.contents(file.path) == content
      let next = try node.store.localFile(key)
      return [early, part, late, next.path == file.path, next.withPath(CacheTest.contents) == content]
    }
    #expect(rights == [true, true, true, true, true])
  }

  @Test("no file has an object's path until all of it is there")
  func partOfAnObject() async throws {
    let test = try CacheTest()
    let (key, cache, content) = (try await test.put(content), try test.cache(), content)
    let path = cache.path(of: key)
    try await test.blocking {
      _ = try cache.read(key, 0..<100_000)
      #expect(!CacheTest.exists(path))
      _ = try cache.read(key, 0..<300_000)
      #expect(!CacheTest.exists(path), "it hasn't been compared with its SHA-256")
      #expect(try cache.file(key)?.withPath(CacheTest.contents) == content)
      #expect(CacheTest.exists(path))
    }
    let restarted = try test.cache(in: try test.copy("restarted"))
    let again = restarted.path(of: key)
    try await test.blocking { () throws -> Void in
      #expect(try restarted.read(key, 0..<9) == Array(content[..<9]))
      #expect(!CacheTest.exists(again), "what an earlier process left may have been lost in part")
      #expect(try restarted.file(key)?.withPath(CacheTest.contents) == content && CacheTest.exists(again))
    }
  }

  @Test("those who open an object's path by themselves find all of it or nothing, while others discard and read it")
  func readersByPath() async throws {
    let cluster = try BlobsCluster()
    let (node, content) = (try cluster.node("n1"), content)
    let isOver = Atomic(false)
    let finds = Atomic(0)
    let key = try await cluster.blocking { try #require(try cluster.node("n2").upload(content).audioKey) }
    async let found = cluster.blocking { () -> [Bool] in
      var found: [Bool] = []
      while !isOver.load(ordering: .relaxed) {
        guard let bytes = CacheTest.contents(node.cache.path(of: key)) else { continue }
        found.append(bytes == content)
        finds.add(1, ordering: .relaxed)
      }
      return found
    }
    try await cluster.blocking {
      defer { isOver.store(true, ordering: .relaxed) }
      var round = 0
      while finds.load(ordering: .relaxed) < 100, round < 100_000 {
        round += 1
        let start = Int64(round % 70) * 4000
        _ = try node.store.read(key, start..<start + 9)
        let file = try node.store.localFile(key)
        _ = node.store.discardCopy(of: key)
        if round % 2 == 0 { _ = try node.store.read(key, 0..<9) }
        withExtendedLifetime(file) {}
      }
    }
    let all = try await found
    #expect(!all.isEmpty && all.allSatisfy(\.self), "\(all.count { !$0 }) of \(all.count) are something else")
  }

  @Test("a discarded file goes with the last who holds it, or with the object")
  func lastHolder() async throws {
    let cluster = try BlobsCluster()
    let (node, content) = (try cluster.node("n1"), content)
    try await cluster.blocking {
      let key = try #require(try cluster.node("n2").upload(content).audioKey)
      let path = node.cache.path(of: key)
      var held: [LocalFile] = [try node.store.localFile(key), try node.store.localFile(key)]
      _ = node.store.discardCopy(of: key)
      held.removeLast()
      #expect(CacheTest.exists(path))
      held = []
      #expect(!CacheTest.exists(path) && !node.cache.has(key))
      // Two may find the same object damaged.
      held = [try node.store.localFile(key)]
      for _ in 0..<2 { _ = node.store.discardCopy(of: key) }
      #expect(CacheTest.exists(path))
      held = []
      #expect(!CacheTest.exists(path))
      // Another generation's file isn't the holder's.
      held = [try node.store.localFile(key)]
      _ = node.store.discardCopy(of: key)
      let next = try node.store.localFile(key)
      held = []
      #expect(next.withPath(CacheTest.contents) == content)
      // Nor is there a file without an object.
      _ = node.store.discardCopy(of: key)
      cluster.test.store.empty("sounds")
      #expect(try node.store.localFile(key).withPath(CacheTest.exists) == false)
      withExtendedLifetime(next) {}
    }
  }

  @Test("of a file that was left at an object's path and a later part of it, a restart keeps the part")
  func bothFiles() async throws {
    let test = try CacheTest()
    let (key, content) = (try await test.put(content), content)
    try await test.blocking { _ = try test.cache().read(key, 0..<9) }
    let left = "\(test.directory)/objects/\(key.recording).\(key.name)"
    try Data(content.map { ~$0 }).write(to: URL(filePath: left))
    let cache = try test.cache()
    #expect(!CacheTest.exists(left))
    #expect(try await test.blocking { try cache.file(key)?.withPath(CacheTest.contents) } == content)
  }

  // MARK: A folder that others change

  @Test("a cache whose folders another program removes makes them again", arguments: ["", "/objects", "/indexes"])
  func removedFolder(name: String) async throws {
    let cluster = try BlobsCluster()
    let (node, other, content) = (try cluster.node("n1"), try cluster.node("n2"), content)
    try await cluster.blocking {
      let keys = try (0..<4).map { _ in try #require(try other.upload(content).audioKey) }
      _ = try node.store.localFile(keys[0])
      _ = try node.store.read(keys[1], 0..<9)
      try FileManager.default.removeItem(atPath: cluster.folder.path + "/n1" + name)
      #expect(try node.store.read(keys[1], 200_000..<200_009) == Array(content[200_000..<200_009]))
      for key in keys { #expect(try node.store.localFile(key).withPath(CacheTest.contents) == content) }
      // A file that is put becomes the cache's copy even then.
      try FileManager.default.removeItem(atPath: cluster.folder.path + "/n1" + name)
      let put = try #require(try node.upload(content).audioKey)
      #expect(node.store.fileAtHand(put)?.withPath(CacheTest.contents) == content)
    }
  }

  @Test("an object whose index is gone or another one's is begun again", arguments: [0, 1, 2])
  func lostIndex(change: Int) async throws {
    let test = try CacheTest()
    let (key, other) = (try await test.put(content), try await test.put(TestStore.bytes(100_000)))
    let (cache, content) = (try test.cache(), content)
    try await test.blocking {
      _ = try (cache.read(key, 0..<9), cache.read(other, 0..<9))
      let index = test.indexPath(key)
      try FileManager.default.removeItem(atPath: index)
      switch change {
      case 0: break
      case 1: try FileManager.default.copyItem(atPath: test.indexPath(other), toPath: index)
      default: try Data().write(to: URL(filePath: index))
      }
      #expect(try cache.read(key, 200_000..<200_009) == Array(content[200_000..<200_009]))
      #expect(try cache.file(key)?.withPath(CacheTest.contents) == content)
    }
  }

  @Test("a check of the disk writes into the cache's folder, makes what is missing of it, and fails if it can't")
  func check() throws {
    let test = try CacheTest()
    let scratch = Scratch(try MediaStore(scratch: test.folder.path + "/scratch"), sharedWith: try test.cache())
    #expect(throws: Never.self) { try scratch.checkReceiving() }
    try FileManager.default.removeItem(atPath: test.directory)
    #expect(throws: Never.self) { try scratch.checkReceiving() }
    #expect(try FileManager.default.contentsOfDirectory(atPath: test.directory + "/incoming").isEmpty)
    // Root may write to any folder, but not even root can if it's a file.
    try FileManager.default.removeItem(atPath: test.directory + "/objects")
    try Data().write(to: URL(filePath: test.directory + "/objects"))
    #expect(throws: StorageError.self) { try scratch.checkReceiving() }
  }
}
