import Glibc
import ObjectStore
import PresentRows
import Testing

@testable import S3Storage

/// What a client counts for metrics.
@Suite struct S3FiguresTests {
  private func lines(_ client: S3Client) -> Set<Substring> {
    Set(client.figures.text(S3Figures.State()).split(separator: "\n"))
  }

  @Test func eachAttemptIsCountedByWhatItDidAndHowItEnded() async throws {
    let test = try TestStore { $0.attempts = 2 }
    try await test.blocking { client in
      try client.put([1, 2, 3], as: "a")
      _ = try client.get("a", 0..<2)
      _ = try client.list()
      #expect(throws: S3Error.noSuchKey) { try client.get("b", 0..<1) }
      test.store.fail(.refuses(503, code: "SlowDown"))
      try client.delete("a")
      test.store.fail(.refuses(403, code: "QuotaExceeded"))
      #expect(throws: S3Error.quotaExceeded) { try client.put([1, 2, 3, 4], as: "c") }
    }
    let lines = lines(test.client)
    for (operation, outcome, count) in [
      ("put", "ok", 1), ("put", "refused", 1), ("get", "ok", 1), ("get", "missing", 1), ("list", "ok", 1),
      ("delete", "failed", 1), ("delete", "ok", 1), ("copy", "ok", 0), ("head", "failed", 0),
    ] {
      let labels = "operation=\"\(operation)\",outcome=\"\(outcome)\""
      #expect(lines.contains("stillwave_store_requests_total{\(labels)} \(count)"), "\(labels)")
    }
    #expect(lines.contains("stillwave_store_request_seconds_count{operation=\"delete\"} 2"))
    #expect(lines.contains("stillwave_store_sent_bytes_total 7"))
  }

  @Test func whatIsFetchedIsCountedInMemoryAndInFiles() async throws {
    let test = try TestStore()
    let folder = try TemporaryFolder()
    let bytes = TestStore.bytes(200_000)
    let received = try await test.blocking { client in
      try client.put(bytes, as: "a")
      _ = try client.get("a", 0..<1000)
      let before = Self.received(client)
      test.store.fail(.cuts(afterBytes: 70_000))
      _ = try client.get("a", into: folder.path + "/a")
      return Self.received(client) - before
    }
    #expect(received == bytes.count, "what arrived before the cut isn't fetched again")
  }

  private static func received(_ client: S3Client) -> Int {
    let name = "stillwave_store_received_bytes_total "
    let line = client.figures.text(S3Figures.State()).split(separator: "\n").first { $0.hasPrefix(name) }
    return line.flatMap { Int($0.dropFirst(name.count)) } ?? 0
  }

  @Test func aFaultOfTheDiskIsNoneOfTheStore() async throws {
    let test = try TestStore { $0.attempts = 1 }
    let folder = try TemporaryFolder()
    let path = try folder.file("sound", TestStore.bytes(300_000))
    try await test.blocking { client in
      test.store.fail(.refuses(503, code: "SlowDown"))
      #expect(throws: S3Error.self) { try client.delete("a") }
      // The file ends before the part that is to be sent, as if it had been cut meanwhile.
      #expect(throws: S3Error.file(operation: "read", path: path, errno: EIO)) {
        try client.put(file: path, 0..<400_000, sha256: SigV4.emptyPayload, as: "b")
      }
      #expect(client.isFailing, "it is still unknown whether the store works")
    }
    #expect(lines(test.client).contains("stillwave_store_requests_total{operation=\"put\",outcome=\"local\"} 1"))
    #expect(lines(test.client).contains("stillwave_store_requests_total{operation=\"put\",outcome=\"failed\"} 0"))
  }

  @Test func requestsThatAreNotSentToAStoreThatFailsAreCounted() async throws {
    let test = try TestStore {
      $0.attempts = 1
      $0.breakSeconds = 600
    }
    try await test.blocking { client in
      test.store.fail(.refuses(503, code: "SlowDown"))
      for _ in 0..<3 { #expect(throws: S3Error.self) { try client.delete("a") } }
    }
    #expect(lines(test.client).contains("stillwave_store_spared_requests_total 2"))
    #expect(lines(test.client).contains("stillwave_store_requests_total{operation=\"delete\",outcome=\"failed\"} 1"))
  }

  @Test func theCacheCountsWhatItHadAndWhatItFetched() async throws {
    let test = try CacheTest()
    let key = try await test.put(TestStore.bytes(3 * Int(CacheTest.block)))
    let cache = try test.cache()
    try await test.blocking {
      _ = try cache.read(key, 0..<100)
      _ = try cache.read(key, 50..<150)
      _ = try cache.file(key)
    }
    let lines = lines(test.test.client)
    #expect(lines.contains("stillwave_cache_miss_bytes_total \(3 * CacheTest.block)"))
    #expect(lines.contains("stillwave_cache_hit_bytes_total \(100 + CacheTest.block)"))
  }
}
