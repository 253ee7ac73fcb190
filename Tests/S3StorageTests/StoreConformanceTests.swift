import Foundation
import Randomness
import Storage
import Terms
import Testing

@testable import S3Storage

/// What a store must offer. Usually, this is our own; with `STILLWAVE_TEST_STORE=s3://BUCKET?endpoint=…` and its key in
/// `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, it is another one. Every test has a prefix of its own.
@Suite struct StoreConformanceTests {
  private let client: S3Client
  /// Our own store; nil if it is another one.
  private let own: TestStore?
  private let folder: TemporaryFolder
  private let content = TestStore.bytes(11 << 20)
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = try folder.file("in", content)
    let environment = ProcessInfo.processInfo.environment
    guard let address = environment["STILLWAVE_TEST_STORE"] else {
      let own = try TestStore(prefix: "/test")
      (self.own, client) = (own, own.client)
      return
    }
    own = nil
    let parts = address.split(separator: "?", maxSplits: 1)
    client = S3Client(
      try S3Bucket("\(parts[0])/\(UInt64.random(in: .min ... .max))?" + (parts.count > 1 ? parts[1] : "")),
      credentials: try CredentialSource(environment: environment))
  }

  /// Calls `body` on a thread of its own, because the client blocks.
  private func blocking<Value: Sendable>(
    _ body: @escaping @Sendable (S3Client) throws -> Value
  ) async throws -> Value {
    try await S3StorageTests.blocking { [client] in try body(client) }
  }

  @Test("a file is stored and fetched with its SHA-256, with a length that needs several reads, or without content")
  func files() async throws {
    let (content, path, folder) = (content, path, folder)
    let empty = try folder.file("empty", [])
    let sha256 = Hexadecimal.text(SHA256.digest(of: content))
    let infos = try await blocking { client in
      try client.put(file: path, as: "big")
      try client.put(file: path, 10..<20, as: "part")
      try client.put(file: empty, as: "empty")
      return [
        try client.get("big", into: folder.path + "/big", bytes: Int64(content.count), sha256: sha256),
        try client.get("part", into: folder.path + "/part"), try client.get("empty", into: folder.path + "/none"),
      ]
    }
    #expect(infos.map(\.bytes) == [Int64(content.count), 10, 0])
    #expect(infos[0].sha256 == sha256)
    let isRight = folder.contents("big") == content
    #expect(isRight && folder.contents("part") == Array(content[10..<20]) && folder.contents("none") == [])
    #expect(try await blocking { try $0.head("big")?.sha256 } == sha256)
  }

  @Test("an object that is put again is replaced at once, and content that was damaged on its way isn't stored")
  func replacing() async throws {
    let path = path
    let (got, damaged) = try await blocking { client in
      try client.put([1, 2, 3], as: "x")
      try client.put([4, 5], as: "x")
      let damaged = #expect(throws: S3Error.self) { try client.put(file: path, sha256: SigV4.emptyPayload, as: "y") }
      return ((try client.get("x", 0..<9), try client.head("x")?.bytes, try client.head("y")), damaged)
    }
    #expect(got.0 == [4, 5] && got.1 == 2 && got.2 == nil)
    #expect(damaged == .damaged)
  }

  @Test("a range is cut to the object, and is empty past its end")
  func ranges() async throws {
    let got = try await blocking { client in
      try client.put(Array(0..<100), as: "x")
      return [try client.get("x", 10..<20), try client.get("x", 95..<200), try client.get("x", 100..<200)]
    }
    #expect(got == [Array(10..<20), Array(95..<100), []])
  }

  @Test("a range of another version than expected is refused")
  func versions() async throws {
    let tag = try await blocking { client in
      try client.put([1, 2, 3], as: "x")
      return try client.head("x")?.entityTag
    }
    #expect(try await blocking { try $0.get("x", 0..<2, entityTag: tag) } == [1, 2])
    await #expect(throws: S3Error.changed) { try await blocking { try $0.get("x", 0..<2, entityTag: "\"other\"") } }
  }

  @Test("a missing object has no head, can be deleted, and can't be read; a deleted one is missing")
  func missing() async throws {
    let folder = folder
    #expect(try await blocking { try $0.head("x") } == nil)
    try await blocking { try $0.delete("x") }
    await #expect(throws: S3Error.noSuchKey) { try await blocking { try $0.get("x", 0..<1) } }
    await #expect(throws: S3Error.noSuchKey) { try await blocking { try $0.get("x", into: folder.path + "/x") } }
    #expect(folder.contents("x") == nil)
    let head = try await blocking { client in
      try client.put([1], as: "x")
      try client.delete("x")
      return try client.head("x")
    }
    #expect(head == nil)
  }

  @Test("a listing has every object once, over pages, in the order of bytes, and only those with the prefix")
  func listing() async throws {
    let keys = ["a/1", "a/2&<>", "a/3 +", "a/Z", "a/ä", "b/1"]
    let pages = try await blocking { client in
      for (index, key) in keys.enumerated() { try client.put([UInt8](repeating: 0, count: index), as: key) }
      var pages = [try client.list(prefix: "a/", limit: 2)]
      while let next = pages.last?.next { pages.append(try client.list(prefix: "a/", token: next, limit: 2)) }
      return pages
    }
    #expect(pages.map { $0.objects.map(\.key) } == [["a/1", "a/2&<>"], ["a/3 +", "a/Z"], ["a/ä"]])
    #expect(pages.flatMap(\.objects).map(\.bytes) == [0, 1, 2, 3, 4])
    #expect(pages.flatMap(\.objects).allSatisfy { $0.modified != nil })
  }

  @Test("an object is joined of parts that were sent and parts that were copied, and is read like others")
  func joining() async throws {
    let (content, path, folder) = (content, path, folder)
    let whole = content + content[5..<6_000_000] + content[0..<3]
    let (info, range) = try await blocking { client in
      try client.put(file: path, as: "segment 1")
      let upload = try client.beginMultipart("whole", sha256: SigV4.emptyPayload)
      let parts = [
        try client.putPart(3, of: upload, file: path, 0..<3),
        try client.copyPart(1, of: upload, from: "segment 1", bytes: Int64(content.count)),
        try client.copyPart(2, of: upload, from: "segment 1", 5..<6_000_000),
      ]
      try client.complete(upload, parts, bytes: Int64(whole.count))
      // What was lost may have been carried out.
      try client.complete(upload, parts, bytes: Int64(whole.count))
      let info = try client.head("whole")
      return (info, try client.get("whole", 11_534_330..<11_534_340, entityTag: info?.entityTag))
    }
    _ = try await blocking { try $0.get("whole", into: folder.path + "/whole") }
    let isRight = folder.contents("whole") == whole
    #expect(isRight && info?.bytes == Int64(whole.count) && info?.sha256 == SigV4.emptyPayload)
    #expect(range == Array(whole[11_534_330..<11_534_340]))
    if let own { #expect(own.store.uploadCount == 0) }
    #expect(try await blocking { try $0.list().objects.map(\.key) } == ["segment 1", "whole"])
    try await blocking { try $0.delete("whole") }
    #expect(try await blocking { try $0.head("segment 1") } != nil)
  }

  @Test("parts have numbers up to 10,000")
  func manyParts() async throws {
    let (path, bytes) = (path, S3Client.leastPartBytes)
    try await blocking { client in
      try client.put(file: path, 0..<bytes, as: "segment")
      let upload = try client.beginMultipart("whole")
      var parts: [S3Part] = []
      for number in [1, 1001, 10_000] {
        parts.append(try client.copyPart(number, of: upload, from: "segment", bytes: bytes))
      }
      try client.complete(upload, parts, bytes: 3 * bytes)
    }
    #expect(try await blocking { try $0.head("whole")?.bytes } == 3 * bytes)
  }

  @Test("a part of an object that is missing can't be copied")
  func missingSource() async throws {
    await #expect(throws: S3Error.noSuchKey) {
      try await blocking { client in
        let upload = try client.beginMultipart("whole")
        defer { try? client.abort(upload) }
        return try client.copyPart(1, of: upload, from: "nothing", bytes: 1)
      }
    }
  }

  @Test("an aborted upload leaves nothing, can be aborted again, and can't be completed")
  func aborting() async throws {
    let path = path
    let (upload, part) = try await blocking { client in
      try client.put([1], as: "whole")
      let upload = try client.beginMultipart("whole")
      let part = try client.putPart(1, of: upload, file: path)
      try client.abort(upload)
      try client.abort(upload)
      return (upload, part)
    }
    #expect(try await blocking { try $0.get("whole", 0..<9) } == [1])
    let error = await #expect(throws: S3Error.self) {
      try await blocking { try $0.complete(upload, [part], bytes: 11 << 20) }
    }
    // Ceph answers 500: it takes it for one that is being completed.
    #expect(own == nil || error == .noSuchUpload)
    if let own { #expect(own.store.uploadCount == 0) }
  }

  @Test("a presigned URL can be read by anyone, only as it was signed, with the type and the name that it says")
  func presigned() async throws {
    @Sendable func get(_ url: String) throws -> S3Response {
      let handle = try #require(CurlHandle())
      let (outcome, _) = S3Call.send(
        S3Request(method: .get), to: url, fields: [], .memory, over: handle, of: S3Connections(), seconds: 20,
        settings: S3Settings())
      guard case .answered(let response) = outcome else { throw S3Error.timedOut }
      return response
    }
    let name = "attachment; filename=\"a.wav\"; filename*=UTF-8''%C3%A4.wav"
    let got = try await blocking { client in
      try client.put([1, 2, 3], as: "a b")
      let url = try client.presignedURL(
        "a b", in: client.bucket, from: .now, seconds: 3600,
        answering: [(name: "content-type", value: "audio/wav"), (name: "content-disposition", value: name)])
      return (try get(url), try get(url.replacing("Expires=3600", with: "Expires=3601")).status)
    }
    #expect(got.0.status == 200 && got.0.body == [1, 2, 3] && got.1 == 403)
    #expect(got.0.fields["content-type"] == "audio/wav" && got.0.fields["content-disposition"] == name)
  }

  @Test("a wrong key and a bucket that doesn't exist are told apart from a missing object")
  func errors() async throws {
    let address = "?endpoint=\(client.bucket.scheme)://\(client.bucket.host)"
    let key = own == nil ? ProcessInfo.processInfo.environment["AWS_ACCESS_KEY_ID"] : "AKIDEXAMPLE"
    let wrong = S3Client(
      try S3Bucket("s3://\(client.bucket.name)" + address),
      credentials: try CredentialSource(
        environment: ["AWS_ACCESS_KEY_ID": key ?? "", "AWS_SECRET_ACCESS_KEY": "wrong"]))
    let credentials: CredentialSource =
      own == nil ? try CredentialSource(environment: ProcessInfo.processInfo.environment) : try TestStore.source()
    let none = S3Client(try S3Bucket("s3://no-such-bucket" + address), credentials: credentials)
    await #expect(throws: S3Error.badCredentials(code: "SignatureDoesNotMatch")) {
      try await blocking { _ in try wrong.check() }
    }
    await #expect(throws: S3Error.noSuchBucket) { try await blocking { _ in try none.check() } }
    await #expect(throws: S3Error.noSuchBucket) { try await blocking { _ in try none.head("x") } }
  }
}
