import ObjectStore
import Storage
import Testing

@testable import S3Storage

/// The client against a store that verifies each signature.
@Suite struct S3ClientTests {
  @Test(
    "keys with any characters are signed as they are sent",
    arguments: ["plain", "a/b/c.wav", "with space", "ü+ä&=?#%41", "~.-_!$'()*,;:@[]", "a/../b/./c", "日本語/音"])
  func keys(key: String) async throws {
    let test = try TestStore()
    let content = TestStore.bytes(100)
    let got = try await test.blocking { client in
      try client.put(content, as: key)
      return (try client.get(key, 0..<1000), try client.head(key)?.bytes, try client.list().objects.map(\.key))
    }
    #expect(got.0 == content)
    #expect(got.1 == 100)
    #expect(got.2 == [key])
    #expect(test.store.objects(in: "sounds") == [key: content])
  }

  @Test("a file is stored and fetched, with a length that needs several reads, or without content")
  func files() async throws {
    let test = try TestStore()
    let folder = try TemporaryFolder()
    let content = TestStore.bytes(3_000_001)
    let path = try folder.file("in", content)
    let empty = try folder.file("empty", [])
    let sha256 = Hexadecimal.text(SHA256.digest(of: content))
    let infos = try await test.blocking { client in
      try client.put(file: path, as: "big")
      try client.put(file: path, 10..<20, as: "part")
      try client.put(file: empty, as: "empty")
      return [
        try client.get("big", into: folder.path + "/big", bytes: 3_000_001, sha256: sha256),
        try client.get("part", into: folder.path + "/part"), try client.get("empty", into: folder.path + "/none"),
      ]
    }
    #expect(infos.map(\.bytes) == [3_000_001, 10, 0])
    #expect(folder.contents("big") == content)
    #expect(folder.contents("part") == Array(content[10..<20]))
    #expect(folder.contents("none") == [])
  }

  @Test("a range is cut to the object, and is empty past its end")
  func ranges() async throws {
    let test = try TestStore()
    let got = try await test.blocking { client in
      try client.put(Array(0..<100), as: "x")
      return [try client.get("x", 10..<20), try client.get("x", 95..<200), try client.get("x", 100..<200)]
    }
    #expect(got == [Array(10..<20), Array(95..<100), []])
  }

  @Test("a range of another version than expected is refused")
  func versions() async throws {
    let test = try TestStore()
    let tag = try await test.blocking { client in
      try client.put([1, 2, 3], as: "x")
      return try client.head("x")?.entityTag
    }
    #expect(try await test.blocking { try $0.get("x", 0..<2, entityTag: tag) } == [1, 2])
    await #expect(throws: S3Error.changed) {
      try await test.blocking { try $0.get("x", 0..<2, entityTag: "\"other\"") }
    }
  }

  @Test("a missing object has no head, can be deleted, and can't be read")
  func missing() async throws {
    let test = try TestStore()
    let folder = try TemporaryFolder()
    #expect(try await test.blocking { try $0.head("x") } == nil)
    try await test.blocking { try $0.delete("x") }
    await #expect(throws: S3Error.noSuchKey) { try await test.blocking { try $0.get("x", 0..<1) } }
    await #expect(throws: S3Error.noSuchKey) {
      try await test.blocking { try $0.get("x", into: folder.path + "/x") }
    }
    #expect(folder.contents("x") == nil)
  }

  @Test("a deleted object is gone")
  func deletion() async throws {
    let test = try TestStore()
    try await test.blocking { client in
      try client.put([1], as: "x")
      try client.delete("x")
    }
    #expect(test.store.objects(in: "sounds").isEmpty)
  }

  @Test("a listing has every object once, over pages, in the order of bytes, and only those with the prefix")
  func listing() async throws {
    let test = try TestStore()
    let keys = ["a/1", "a/2&<>", "a/3 +", "a/Z", "a/ä", "b/1"]
    let pages = try await test.blocking { client in
      for (index, key) in keys.enumerated() { try client.put([UInt8](repeating: 0, count: index), as: key) }
      var pages = [try client.list(prefix: "a/", limit: 2)]
      while let next = pages.last?.next { pages.append(try client.list(prefix: "a/", token: next, limit: 2)) }
      return pages
    }
    #expect(pages.map { $0.objects.map(\.key) } == [["a/1", "a/2&<>"], ["a/3 +", "a/Z"], ["a/ä"]])
    #expect(pages.flatMap(\.objects).map(\.bytes) == [0, 1, 2, 3, 4])
    #expect(pages.flatMap(\.objects).allSatisfy { $0.modified != nil })
  }

  @Test("the bucket's prefix begins all keys, and nothing outside is listed")
  func prefix() async throws {
    let test = try TestStore(prefix: "/one/two")
    let other = try TestStore.client(of: test.store)
    try await test.blocking(other) { try $0.put([1], as: "one/twofold") }
    let listed = try await test.blocking { client in
      try client.put([2], as: "x")
      return try client.list().objects.map(\.key)
    }
    #expect(listed == ["x"])
    #expect(test.store.objects(in: "sounds") == ["one/two/x": [2], "one/twofold": [1]])
  }

  @Test("a bucket can be part of the host's name")
  func virtualHost() async throws {
    let test = try TestStore()
    let endpoint = test.store.endpoint.replacing("127.0.0.1", with: "localhost")
    let client = S3Client(
      try S3Bucket("s3://sounds?style=virtual&endpoint=\(endpoint)"), credentials: try TestStore.source())
    let listed = try await test.blocking(client) { client in
      try client.put([1], as: "a/x")
      return try client.list().objects.map(\.key)
    }
    #expect(listed == ["a/x"])
    #expect(test.store.received.first?.path == "/a/x")
    #expect(test.store.objects(in: "sounds") == ["a/x": [1]])
  }

  @Test("encryption is asked for when an object is created, and only then")
  func encryption() async throws {
    let test = try TestStore(options: "&encryption=AES256")
    try await test.blocking { client in
      try client.put([1], as: "x")
      try client.abort(client.beginMultipart("y"))
      _ = try client.get("x", 0..<1)
    }
    #expect(test.store.received.map(\.encryption) == ["AES256", "AES256", nil, nil])
  }

  @Test("a presigned URL can be read by anyone until it ends, and only as it was signed")
  func presigned() async throws {
    let test = try TestStore()
    let url = try await test.blocking { client in
      try client.put([1, 2, 3], as: "a b")
      return try client.presignedURL("a b", in: client.bucket, from: .now, seconds: 3600)
    }
    @Sendable func get(_ url: String) throws -> S3Response {
      let handle = try #require(CurlHandle())
      let outcome = S3Call.send(
        S3Request(method: .get), to: url, fields: [], .memory, over: handle, of: S3Connections(), seconds: 20,
        settings: S3Settings())
      guard case .answered(let response) = outcome else { throw S3Error.timedOut }
      return response
    }
    let got = try await test.blocking { _ in
      (try get(url), try get(url.replacing("Expires=3600", with: "Expires=3601")).status)
    }
    #expect(got.0.status == 200)
    #expect(got.0.body == [1, 2, 3])
    #expect(got.1 == 403)
    test.store.setClock(ahead: 3601)
    #expect(try await test.blocking { _ in try get(url).status } == 403)
  }

  @Test("eight threads at once get what each has stored")
  func threads() async throws {
    let test = try TestStore()
    let wrong = try await withThrowingTaskGroup(of: Int.self) { group in
      for thread in 0..<8 {
        group.addTask {
          try await test.blocking { client in
            try (0..<20).count { number in
              let content = [UInt8](repeating: UInt8(thread), count: 1000 * number + 1)
              try client.put(content, as: "\(thread)/\(number)")
              return try client.get("\(thread)/\(number)", 0..<20_000) != content
            }
          }
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(wrong == 0)
    #expect(test.store.objects(in: "sounds").count == 160)
    #expect(test.store.connectionCount <= 8)
  }

  @Test("connections are kept: a hundred requests, one after another, use one")
  func keptConnections() async throws {
    let test = try TestStore()
    try await test.blocking { client in
      for number in 0..<100 { try client.put([1], as: "\(number)") }
    }
    #expect(test.store.objects(in: "sounds").count == 100)
    #expect(test.store.connectionCount == 1)
  }
}
