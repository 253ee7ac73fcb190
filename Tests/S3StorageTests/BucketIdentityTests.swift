import ObjectStore
import Storage
import Testing

@testable import S3Storage

@Suite struct BucketIdentityTests {
  private let test: TestStore

  init() throws { test = try TestStore { $0.attempts = 1 } }

  private func bind(_ catalog: TestBinding) async throws -> BucketIdentity {
    try await test.blocking { try BucketIdentity.bound(catalog, to: $0) }
  }

  private func refuses(_ catalog: TestBinding) async throws -> Bool {
    do { _ = try await bind(catalog) } catch StorageError.otherMedia { return true }
    return false
  }

  @Test("a bucket that another installation's takes the place of is noticed while the node runs")
  func replaced() async throws {
    let identity = try await bind(TestBinding())
    let check = { try await test.blocking { try identity.check(by: $0) } }
    try await check()
    let other = MediaID().content
    for content in [other, [], [1, 2, 3]] {
      test.store.put(content, as: BucketIdentity.key, in: "sounds")
      await #expect(throws: StorageError.otherMedia(path: "s3://sounds/")) { try await check() }
    }
    test.store.empty("sounds")
    await #expect(throws: StorageError.otherMedia(path: "s3://sounds/")) { try await check() }
  }

  @Test("of two catalogs that find an empty bucket, only one is bound to it", arguments: [true, false])
  func twoCatalogs(hasConditions: Bool) async throws {
    let (first, second) = (TestBinding(), TestBinding())
    // The other one is faster by just one request.
    let other = MediaID()
    if hasConditions {
      test.store.fail(.none, .replaces(other.content))
    } else {
      test.store.fail(.none, .refuses(501, code: "NotImplemented"), .none, .replaces(other.content))
    }
    #expect(try await refuses(first))
    #expect(test.store.objects(in: "sounds")[BucketIdentity.key] == other.content)
    _ = second.bind(toMedia: other.text)
    #expect(try await bind(second).id == other.text)
    #expect(try await bind(second).id == other.text, "also at the next start")
  }

  @Test("a catalog that has something isn't bound to an empty bucket, nor an empty one to a bucket with recordings")
  func contents() async throws {
    #expect(try await refuses(TestBinding(hasContent: true)))
    #expect(test.store.objects(in: "sounds").isEmpty)
    _ = try await bind(TestBinding())
    test.store.put([1], as: "recordings/1/a", in: "sounds")
    #expect(try await refuses(TestBinding()))
  }
}
