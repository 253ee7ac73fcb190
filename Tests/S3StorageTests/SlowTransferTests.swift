import ObjectStore
import Storage
import Testing

@testable import S3Storage

/// Transfers that take longer than a call may take beside them.
@Suite struct SlowTransferTests {
  private static let content = TestStore.bytes(300_000)

  /// A client whose calls have 0.2 s beside their transfers, for which 20 kB/s are enough.
  private func test() throws -> TestStore {
    try TestStore {
      ($0.totalSeconds, $0.leastBytesPerSecond) = (0.2, 20_000)
    }
  }

  @Test("a long fetch whose connection breaks goes on where it broke")
  func brokenFetch() async throws {
    let (test, folder) = (try test(), try TemporaryFolder())
    test.store.put(Self.content, as: "x", in: "sounds")
    let stall = S3Server.Fault.stalls(afterBytes: 100_000, .milliseconds(300))
    test.store.fail(stall, stall)
    let info = try await test.blocking {
      try $0.get("x", into: folder.path + "/x", bytes: Int64(Self.content.count))
    }
    #expect(info.bytes == 300_000 && folder.contents("x") == Self.content)
    #expect(test.store.received.map(\.range) == [nil, "bytes=100000-", "bytes=200000-"])
  }

  @Test("a long put whose connection breaks is tried again")
  func brokenPut() async throws {
    let (test, folder) = (try test(), try TemporaryFolder())
    let path = try folder.file("in", Self.content)
    test.store.fail(.stalls(afterBytes: 0, .milliseconds(300)))
    try await test.blocking { try $0.put(file: path, as: "x") }
    #expect(test.store.objects(in: "sounds")["x"] == Self.content && test.store.received.count == 2)
  }

  @Test("a call that moves nothing for that time isn't tried again")
  func standstill() async throws {
    let test = try test()
    test.store.put(Self.content, as: "x", in: "sounds")
    test.store.fail(.stalls(afterBytes: 1000, .milliseconds(300)))
    await #expect(throws: S3Error.self) { try await test.blocking { try $0.digest(of: "x", bytes: 300_000) } }
    #expect(test.store.received.count == 1)
  }

  @Test("the time beside a transfer is what it took longer than the slowest one that is waited for")
  func timeBesideTransfer() {
    let settings = S3Settings()
    #expect(settings.secondsBesideTransfer(of: 0, in: 20) == 20)
    #expect(settings.secondsBesideTransfer(of: 1 << 20, in: 20) == 16)
    #expect(settings.secondsBesideTransfer(of: 64 << 20, in: 60) == 0)
  }
}
