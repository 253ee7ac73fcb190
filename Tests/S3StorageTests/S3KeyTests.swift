import Glibc
import ObjectStore
import Storage
import Testing

@testable import S3Storage

/// What a store says to keys, and about the time of requests.
@Suite struct S3KeyTests {
  /// A file of credentials.
  private func text(_ secret: String) -> [UInt8] {
    Array("[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = \(secret)\n".utf8)
  }

  @Test("bad credentials, a wrong region, a wrong clock and a missing bucket are different errors")
  func settings() async throws {
    let test = try TestStore()
    func check(_ client: S3Client) async throws -> S3Error? {
      try await test.blocking(client) { client in
        do throws(S3Error) { try client.check() } catch { return error }
        return nil
      }
    }
    #expect(try await check(test.client) == nil)
    let wrongSecret = try TestStore.client(of: test.store, credentials: try TestStore.source("wrong"))
    #expect(try await check(wrongSecret) == .badCredentials(code: "SignatureDoesNotMatch"))
    let wrongRegion = try TestStore.client(of: test.store, options: "&region=eu-central-1")
    #expect(try await check(wrongRegion) == .wrongRegion(expected: "us-east-1"))
    #expect(try await check(try TestStore.client(of: test.store, bucket: "other")) == .noSuchBucket)
    test.store.setKeys([])
    #expect(try await check(test.client) == .badCredentials(code: "InvalidAccessKeyId"))
    test.store.setKeys([S3Server.Key("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCY", hasExpired: true)])
    #expect(try await check(test.client) == .badCredentials(code: "ExpiredToken"))
    test.store.setClock(ahead: 20 * 60)
    // Every error but the first comes from one request: none is worth a second one.
    #expect(try await check(test.client) == .badCredentials(code: "ExpiredToken"))
    #expect(test.store.received.count == 8)
  }

  @Test("a clock that is 20 minutes off costs one more request, once", arguments: [-1200, 1200] as [Int64])
  func clockSkew(seconds: Int64) async throws {
    let test = try TestStore()
    test.store.setClock(ahead: seconds)
    for expected in [2, 3, 4] {
      try await test.blocking { try $0.put([1], as: "x") }
      #expect(test.store.received.count == expected)
    }
    test.store.setClock(ahead: 0)
    try await test.blocking { try $0.put([1], as: "x") }
    #expect(test.store.received.count == 6)
  }

  @Test(
    "a clock that jumps is noticed by a HEAD, too, whose refusal has no reason", arguments: [-1200, 1200] as [Int64])
  func clockSkewOfHead(seconds: Int64) async throws {
    let test = try TestStore()
    try await test.blocking { try $0.put([1], as: "x") }
    test.store.setClock(ahead: seconds)
    for expected in [5, 6] {
      #expect(try await test.blocking { try $0.head("x") }?.bytes == 1)
      #expect(test.store.received.count == expected)
    }
    test.store.setClock(ahead: 0)
    #expect(try await test.blocking { try $0.head("y") } == nil)
    #expect(!test.client.isFailing)
  }

  @Test("a HEAD that is refused has the reason that a GET gets, and is an error if that gets none")
  func refusedHead() async throws {
    let test = try TestStore()
    test.store.put([1], as: "x", in: "sounds")
    let denied = S3Server.Fault.refuses(403, code: "AccessDenied")
    test.store.fail(denied, .refuses(400, code: "InvalidToken"))
    await #expect(throws: S3Error.badCredentials(code: "InvalidToken")) { try await test.blocking { try $0.head("x") } }
    test.store.fail(denied, denied)
    await #expect(throws: S3Error.accessDenied) { try await test.blocking { try $0.head("x") } }
    test.store.fail(denied, .none, denied, .none)
    await #expect(throws: S3Error.accessDenied) { try await test.blocking { try $0.head("x") } }
    #expect(test.store.received.count == 8)
  }

  @Test("clients with one clock learn of its error together")
  func sharedClock() async throws {
    let test = try TestStore()
    let other = S3Client(
      test.client.bucket, credentials: try TestStore.source(), settings: S3Settings(), figures: S3Figures(),
      clock: test.client.storeClock)
    test.store.setClock(ahead: 1200)
    try await test.blocking(other) { try $0.put([1], as: "x") }
    #expect(test.store.received.count == 2)
    #expect(try await test.blocking { try $0.head("x") }?.bytes == 1)
    #expect(test.store.received.count == 3)
  }

  @Test("the time of a store that refuses a clock is in its answer, or in the field Date")
  func serverTime() {
    func error(_ element: String, _ date: String) -> S3Error {
      let body = "<Error><Code>RequestTimeTooSkewed</Code>\(element)</Error>"
      return S3Error(S3Response(status: 403, fields: ["date": date], body: Array(body.utf8)))
    }
    let date = "Thu, 06 Nov 2026 19:00:27 GMT"
    let time = Timestamp(rfc3339: "2026-11-06T19:00:27Z")
    #expect(error("", date) == .clockSkew(serverTime: time))
    #expect(
      error("<ServerTime>2026-12-06T19:00:27Z</ServerTime>", date)
        == .clockSkew(serverTime: Timestamp(rfc3339: "2026-12-06T19:00:27Z")))
    for date in ["", "yesterday", "Thu, 06 Nov 2026 19:00:27", "Thu, 06 Nox 2026 19:00:27 GMT", "a b c d e GMT"] {
      #expect(error("", date) == .clockSkew(serverTime: nil), "\(date)")
    }
  }

  @Test("credentials that were replaced in their file are used at once, also by a request that was refused")
  func rotation() async throws {
    let folder = try TemporaryFolder()
    let path = try folder.file("credentials", text("old"))
    let test = try TestStore(credentials: CredentialSource(file: path))
    test.store.setKeys([S3Server.Key("AKIDEXAMPLE", "old")])
    try await test.blocking { try $0.put([1], as: "x") }
    test.store.setKeys([S3Server.Key("AKIDEXAMPLE", "newsecret")])
    await #expect(throws: S3Error.badCredentials(code: "SignatureDoesNotMatch")) {
      try await test.blocking { try $0.put([2], as: "x") }
    }
    _ = try folder.file("credentials", text("newsecret"))
    try await test.blocking { try $0.put([3], as: "x") }
    #expect(test.store.objects(in: "sounds")["x"] == [3])
  }

  /// A file of temporary credentials.
  private func session(_ name: String) -> [UInt8] {
    Array(
      "[default]\naws_access_key_id = AK\(name)\naws_secret_access_key = s\naws_session_token = \(name)\n".utf8)
  }

  private func key(_ name: String, hasExpired: Bool = false) -> S3Server.Key {
    S3Server.Key("AK\(name)", "s", sessionToken: name, hasExpired: hasExpired)
  }

  private func refusals(of client: S3Client) -> Int {
    client.figures.text(S3Figures.State()).split(separator: "\n").filter { $0.contains("outcome=\"refused\"") }
      .compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }.reduce(0, +)
  }

  @Test("what is under way waits for temporary credentials that are renewed too late, also in the middle of parts")
  func lateRenewal() async throws {
    let folder = try TemporaryFolder()
    let path = try folder.file("credentials", session("one"))
    let test = try TestStore(credentials: CredentialSource(file: path))
    let (store, content) = (test.store, TestStore.bytes(11 << 20))
    let file = try folder.file("in", content)
    /// Renews the key once a call has had this many answers that refuse it.
    func renewed<Value: Sendable>(
      _ old: String, _ new: String, after count: Int = 1, _ body: @escaping @Sendable (S3Client) throws -> Value
    ) async throws -> Value {
      store.setKeys([key(old, hasExpired: true), key(new)])
      let before = refusals(of: test.client)
      let call = Task { try await test.blocking(body) }
      while refusals(of: test.client) < before + count { await Task.yield() }
      _ = try folder.file("credentials", session(new))
      return try await call.value
    }
    store.setKeys([key("one")])
    let (upload, first) = try await test.blocking { client in
      let upload = try client.beginMultipart("x")
      return (upload, try client.putPart(1, of: upload, file: file, 0..<6 << 20))
    }
    let second = try await renewed("one", "two") { try $0.putPart(2, of: upload, file: file, 6 << 20..<11 << 20) }
    try await renewed("two", "three") { try $0.complete(upload, [first, second], bytes: 11 << 20) }
    #expect(store.received.map(\.method) == ["POST", "PUT", "PUT", "PUT", "POST", "POST"])
    let isRight = store.objects(in: "sounds")["x"] == content
    #expect(isRight)
    let info = try await renewed("three", "four", after: 2) { try $0.head("x") }
    #expect(info?.bytes == 11 << 20)
    #expect(!test.client.isFailing)
  }

  @Test("temporary credentials that nobody renews are an error when the call's time is over, and then at once")
  func noRenewal() async throws {
    let folder = try TemporaryFolder()
    let path = try folder.file("credentials", session("one"))
    // The file would be looked at again once the time is over.
    let test = try TestStore(credentials: CredentialSource(file: path)) {
      ($0.pauseSeconds, $0.breakSeconds) = (3600, 3600)
    }
    test.store.setKeys([key("one", hasExpired: true)])
    for _ in 0..<2 {
      await #expect(throws: S3Error.badCredentials(code: "ExpiredToken")) {
        try await test.blocking { try $0.put([1], as: "x") }
      }
    }
    #expect(test.store.received.count == 1 && test.client.isFailing)
  }

  @Test("a new key that reaches another bucket changes nothing there")
  func otherBucket() async throws {
    let folder = try TemporaryFolder()
    let path = try folder.file("credentials", text("old"))
    let test = try TestStore(credentials: CredentialSource(file: path)) { $0.attempts = 2 }
    test.store.setKeys([S3Server.Key("AKIDEXAMPLE", "old")])
    let (ours, theirs) = (MediaID(), MediaID())
    test.store.put(ours.content, as: BucketIdentity.key, in: "sounds")
    test.client.expect(ours.text)
    for _ in 0..<2 { try await test.blocking { try $0.put([1], as: "x") } }
    #expect(test.store.received.count == 3, "the bucket is asked once for each key")
    test.store.setKeys([S3Server.Key("AKIDEXAMPLE", "new")])
    _ = try folder.file("credentials", text("new"))
    for content in [theirs.content, [], nil] {
      test.store.empty("sounds")
      if let content { test.store.put(content, as: BucketIdentity.key, in: "sounds") }
      let before = test.store.objects(in: "sounds")
      await #expect(throws: S3Error.otherBucket(name: "s3://sounds/")) {
        try await test.blocking { try $0.put([2], as: "x") }
      }
      await #expect(throws: S3Error.otherBucket(name: "s3://sounds/")) {
        try await test.blocking { try $0.delete("x") }
      }
      #expect(test.store.objects(in: "sounds") == before && test.client.isFailing)
    }
    test.store.put(ours.content, as: BucketIdentity.key, in: "sounds")
    test.store.fail(.refuses(503, code: "SlowDown"))
    try await test.blocking { try $0.put([3], as: "x") }
    #expect(test.store.objects(in: "sounds")["x"] == [3])
  }
}
