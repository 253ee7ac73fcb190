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
      let (outcome, _) = S3Call.send(
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
