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
      test.store.fail(.none, .none, .replaces(other.content))
    } else {
      test.store.fail(.none, .none, .refuses(501, code: "NotImplemented"), .none, .replaces(other.content))
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
    test.store.put([1], as: "recordings/1/a", in: "sounds")
    #expect(try await refuses(TestBinding()))
    #expect(test.store.objects(in: "sounds").count == 1)
  }

  @Test("a new catalog isn't bound to the bucket of another one, even if that has no recordings yet")
  func anotherCatalogsBucket() async throws {
    let (first, second) = (TestBinding(), TestBinding())
    let id = try await bind(first).id
    #expect(try await refuses(second))
    #expect(second.boundMedia().id == nil)
    #expect(try await bind(first).id == id)
  }

  @Test("a first node that was killed before it gave the bucket its ID is followed by one that does")
  func killed() async throws {
    let (catalog, id) = (TestBinding(), MediaID().text)
    _ = catalog.bind(toMedia: id)
    #expect(try await bind(catalog).id == id)
    #expect(test.store.objects(in: "sounds")[BucketIdentity.key] == MediaID(Array(id.utf8))?.content)
  }

  @Test("a node that looks at a bucket before another one of its catalog gives that its ID starts, too")
  func firstNodesAtOnce() async throws {
    let catalog = TestBinding()
    let (gate, release) = AsyncStream<Never>.makeStream()
    test.store.fail(.holds(until: gate))
    let late = Task { try await bind(catalog) }
    while test.store.received.isEmpty { await Task.yield() }
    let id = try await bind(catalog).id
    release.finish()
    #expect(try await late.value.id == id)
  }
}
