import Glibc
import ObjectStore
import Storage
import Terms
import Testing

@testable import S3Storage

@Suite struct S3FailureTests {
  private let content = TestStore.bytes(300_000)

  @Test(
    "a full bucket is told in several ways",
    arguments: [(403, "QuotaExceeded"), (507, "InsufficientStorage"), (400, "EntityTooLarge")])
  func fullBucket(status: Int, code: String) async throws {
    let test = try TestStore()
    test.store.fail(.refuses(status, code: code))
    await #expect(throws: S3Error.quotaExceeded) { try await test.blocking { try $0.put([1], as: "x") } }
    #expect(test.client.isFull)
  }

  @Test("a failure with a long page is the failure that its status says")
  func longPage() async throws {
    let test = try TestStore { $0.attempts = 2 }
    let page = [UInt8](repeating: 60, count: 300_000)
    test.store.fail(.answers(page, status: 503))
    try await test.blocking { try $0.put([1], as: "x") }
    test.store.fail(.answers(page, status: 404), .answers(page, status: 404))
    await #expect(throws: S3Error.unavailable(status: 404, code: nil)) {
      try await test.blocking { try $0.get("x", 0..<1) }
    }
  }

  @Test("a store that is busy is tried again, as often as the settings say")
  func busy() async throws {
    let test = try TestStore { $0.attempts = 3 }
    test.store.fail(.refuses(503, code: "SlowDown"), .refuses(500, code: "InternalError"))
    try await test.blocking { try $0.put([1], as: "x") }
    #expect(test.store.received.count == 3)
    test.store.fail(.refuses(503, code: "SlowDown"), .refuses(503, code: "A"), .refuses(503, code: "B"))
    await #expect(throws: S3Error.unavailable(status: 503, code: "B")) {
      try await test.blocking { try $0.put([1], as: "x") }
    }
    #expect(test.store.received.count == 6)
  }

  @Test("after a call has failed, others fail at once, until one that may try succeeds")
  func breaker() async throws {
    let test = try TestStore { ($0.attempts, $0.breakSeconds) = (1, 3600) }
    func failure() async throws -> S3Error? {
      try await test.blocking { client in
        do throws(S3Error) { try client.put([1], as: "x") } catch { return error }
        return nil
      }
    }
    test.store.fail(.refuses(403, code: "AccessDenied"), .none, .refuses(503, code: "SlowDown"))
    #expect(try await failure() == .accessDenied)
    #expect(try await failure() == nil, "the store works")
    let busy = S3Error.unavailable(status: 503, code: "SlowDown")
    for _ in 0..<3 { #expect(try await failure() == busy) }
    #expect(test.store.received.count == 3)
    test.client.noteRecovery()
    #expect(try await failure() == nil)
  }

  @Test("an object that can't be read keeps nobody from others")
  func oneObject() async throws {
    let test = try TestStore { ($0.attempts, $0.breakSeconds) = (1, 3600) }
    test.store.put([1, 2], as: "good", in: "sounds")
    let gate = AsyncStream<Never>.makeStream()
    test.store.fail(.breaks(until: gate.stream))
    let bad = Task { try await test.blocking { try $0.get("bad", 0..<1) } }
    while test.store.received.isEmpty { await Task.yield() }
    #expect(try await test.blocking { try $0.get("good", 0..<1) } == [1])
    gate.continuation.finish()
    await #expect(throws: S3Error.self) { try await bad.value }
    #expect(!test.client.isFailing)
    #expect(try await test.blocking { try $0.get("good", 1..<2) } == [2])
  }

  @Test("of calls to a store that fails, one may try after a while, once")
  func trial() async throws {
    let test = try TestStore { ($0.attempts, $0.breakSeconds) = (2, 1e-9) }
    let busy = S3Server.Fault.refuses(503, code: "SlowDown")
    test.store.fail(busy, busy, busy)
    for expected in [2, 3] {
      await #expect(throws: S3Error.self) {
        try await test.blocking { try $0.put([1], as: "x") }
      }
      #expect(test.store.received.count == expected)
    }
    try await test.blocking { try $0.put([1], as: "x") }
  }

  @Test("content that a store took without an answer, over a connection used before, is sent again only as an attempt")
  func closedConnection() async throws {
    for attempts in [1, 2] {
      let store = try ClosingStore(closingAt: 2)
      let client = try store.client(attempts: attempts)
      let error = try await blocking { () throws -> S3Error? in
        try client.put([1], as: "x")
        do throws(S3Error) { try client.put([1, 2], as: "x") } catch { return error }
        return nil
      }
      #expect(error == (attempts > 1 ? nil : .unreachable(reason: "closed without an answer")))
      #expect(store.stop() == 1 + attempts)
    }
  }

  @Test("a call to a store that never answers ends when its time is over, whatever attempts are left")
  func totalTime() async throws {
    let test = try TestStore { ($0.requestSeconds, $0.totalSeconds) = (0.05, 0.05) }
    test.store.fail(.hangs, .hangs)
    await #expect(throws: S3Error.timedOut) { try await test.blocking { try $0.get("x", 0..<1) } }
    #expect(test.store.received.count == 1)
  }

  @Test("a call to a store that doesn't answer ends soon once the process is about to end, and later ones fail at once")
  func endOfCalls() async throws {
    let test = try TestStore()
    test.store.fail(.hangs)
    let waiting = Task { try await test.blocking { try $0.put([1], as: "x") } }
    while test.store.received.isEmpty { await Task.yield() }
    test.client.endCalls()
    await #expect(throws: S3Error.self) { try await waiting.value }
    await #expect(throws: S3Error.unreachable(reason: "this node is stopping")) {
      try await test.blocking { try $0.put([1], as: "y") }
    }
    #expect(test.store.received.count == 1)
  }

  @Test("a fetch whose connection breaks goes on where it broke")
  func continuation() async throws {
    let test = try TestStore()
    let folder = try TemporaryFolder()
    let (store, content) = (test.store, content)
    let info = try await test.blocking { client in
      try client.put(content, as: "x")
      store.fail(.cuts(afterBytes: 1000), .refuses(503, code: "SlowDown"), .cuts(afterBytes: 0))
      return try client.get(
        "x", into: folder.path + "/x", sha256: Hexadecimal.text(SHA256.digest(of: content)))
    }
    #expect(info.bytes == Int64(content.count))
    #expect(folder.contents("x") == content)
    #expect(store.received.map(\.range) == [nil, nil, "bytes=1000-", "bytes=1000-", "bytes=1000-"])
  }

  @Test("a fetch doesn't join two versions of an object")
  func changedMeanwhile() async throws {
    let test = try TestStore()
    let folder = try TemporaryFolder()
    let (store, content) = (test.store, content)
    await #expect(throws: S3Error.changed) {
      try await test.blocking { client in
        try client.put(content, as: "x")
        store.fail(.cuts(afterBytes: 1000), .replaces(content.reversed()))
        return try client.get("x", into: folder.path + "/x")
      }
    }
    #expect(folder.contents("x") == nil)
  }

  @Test("a range whose connection breaks is fetched again")
  func brokenRange() async throws {
    let test = try TestStore()
    let (store, content) = (test.store, content)
    let got = try await test.blocking { client in
      try client.put(content, as: "x")
      store.fail(.cuts(afterBytes: 100), .cuts(afterBytes: 0))
      return try client.get("x", 10..<70_000)
    }
    #expect(got == Array(content[10..<70_000]))
  }

  @Test("damaged content is noticed, and leaves no file")
  func damage() async throws {
    let test = try TestStore()
    let folder = try TemporaryFolder()
    let (store, content) = (test.store, content)
    await #expect(throws: S3Error.damaged) {
      try await test.blocking { client in
        try client.put(content, as: "x")
        store.fail(.damages(0xFF))
        return try client.get("x", into: folder.path + "/x", sha256: Hexadecimal.text(SHA256.digest(of: content)))
      }
    }
    #expect(folder.contents("x") == nil)
  }

  @Test("content that isn't what its SHA-256 says isn't stored")
  func wrongDigest() async throws {
    let test = try TestStore { $0.attempts = 2 }
    let folder = try TemporaryFolder()
    let path = try folder.file("in", content)
    await #expect(throws: S3Error.damaged) {
      try await test.blocking { try $0.put(file: path, sha256: SigV4.emptyPayload, as: "x") }
    }
    #expect(test.store.objects(in: "sounds").isEmpty)
  }

  @Test("a store that never answers ends at the deadline")
  func deadline() async throws {
    let test = try TestStore {
      $0.requestSeconds = 0.05
      $0.attempts = 2
    }
    test.store.fail(.hangs, .hangs, .hangs, .hangs)
    await #expect(throws: S3Error.timedOut) { try await test.blocking { try $0.check() } }
    #expect(test.store.received.count == 2)
    await #expect(throws: S3Error.timedOut) { try await test.blocking { try $0.beginMultipart("x") } }
    #expect(test.store.received.count == 3)
  }

  @Test("a store that can't be reached is tried again, also for what mustn't be done twice")
  func unreachable() async throws {
    let test = try TestStore { $0.attempts = 2 }
    await test.store.stop()
    await #expect { try await test.blocking { try $0.beginMultipart("x") } } throws: { error in
      if case .unreachable = error as? S3Error { true } else { false }
    }
  }

  @Test(
    "an answer that breaks the protocol is refused",
    arguments: [
      ("", "ListBucketResult"), ("<Other/>", "ListBucketResult"),
      ("<ListBucketResult><Contents><Key>x</Key></Contents></ListBucketResult>", "Contents"),
      ("<ListBucketResult><Contents><Key>x</Key><Size>-1</Size></Contents></ListBucketResult>", "Contents"),
      ("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>", "NextContinuationToken"),
      (
        "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>same</NextContinuationToken>"
          + "</ListBucketResult>", "NextContinuationToken"
      ),
    ])
  func protocolErrors(answer: String, what: String) async throws {
    let test = try TestStore()
    test.store.fail(.answers(Array(answer.utf8)))
    await #expect(throws: S3Error.malformedAnswer(what: what)) {
      try await test.blocking { try $0.list(token: "same") }
    }
  }

  @Test("a store that ignores a range is refused, and one that sends without end is cut off")
  func ignoredRange() async throws {
    let test = try TestStore()
    test.store.fail(.answers([1, 2, 3]), .answers([UInt8](repeating: 0, count: 100_000)))
    await #expect(throws: S3Error.malformedAnswer(what: "Content-Range")) {
      try await test.blocking { try $0.get("x", 0..<3) }
    }
    await #expect(throws: S3Error.malformedAnswer(what: "length")) {
      try await test.blocking { try $0.get("x", 0..<3) }
    }
    #expect(test.store.received.count == 2)
  }

  @Test("a fetch starts over if the store ignores the range that continues it")
  func startingOver() async throws {
    let test = try TestStore()
    let folder = try TemporaryFolder()
    let (store, content) = (test.store, content)
    let info = try await test.blocking { client in
      try client.put(content, as: "x")
      store.fail(.cuts(afterBytes: 100_000), .answers([1, 2, 3]))
      return try client.get("x", into: folder.path + "/x", sha256: Hexadecimal.text(SHA256.digest(of: [1, 2, 3])))
    }
    #expect(info.bytes == 3)
    #expect(folder.contents("x") == [1, 2, 3])
  }

  @Test("a big file isn't sent if the store refuses it")
  func refusedBeforeSending() async throws {
    let test = try TestStore()
    let folder = try TemporaryFolder()
    let path = try folder.file("in", TestStore.bytes(4 << 20))
    test.store.setKeys([])
    await #expect(throws: S3Error.badCredentials(code: "InvalidAccessKeyId")) {
      try await test.blocking { try $0.put(file: path, as: "x") }
    }
  }

  @Test("a file that is shorter than the part to send is an error of the file")
  func shortFile() async throws {
    let test = try TestStore { $0.attempts = 1 }
    let folder = try TemporaryFolder()
    let path = try folder.file("in", [1, 2, 3])
    await #expect(throws: S3Error.file(operation: "read", path: path, errno: EIO)) {
      try await test.blocking { try $0.put(file: path, 0..<10, as: "x") }
    }
    await #expect(throws: S3Error.file(operation: "read", path: path, errno: EIO)) {
      try await test.blocking { try $0.put(file: path, 0..<10, sha256: SigV4.emptyPayload, as: "x") }
    }
    #expect(test.store.objects(in: "sounds").isEmpty)
  }
}
