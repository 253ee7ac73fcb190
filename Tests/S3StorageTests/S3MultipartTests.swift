import ObjectStore
import Storage
import Testing

@testable import S3Storage

@Suite struct S3MultipartTests {
  private let test: TestStore
  private let folder: TemporaryFolder
  private let content = TestStore.bytes(11 << 20)
  private let path: String

  init() throws {
    (test, folder) = (try TestStore(), try TemporaryFolder())
    path = try folder.file("in", content)
  }

  @Test("if the answer to the completion is lost, the object that exists counts")
  func lostCompletion() async throws {
    let (store, path, bytes) = (test.store, path, Int64(content.count))
    try await test.blocking { client in
      let upload = try client.beginMultipart("whole")
      let part = try client.putPart(1, of: upload, file: path)
      store.fail(.cuts(afterBytes: 0))
      try client.complete(upload, [part], bytes: bytes)
    }
    #expect(store.objects(in: "sounds")["whole"] == content)
    #expect(store.received.suffix(3).map(\.method) == ["POST", "POST", "HEAD"])
  }

  @Test("an error after 200 OK is an error, and is sent again if it is transient")
  func lateErrors() async throws {
    let store = test.store
    await #expect(throws: S3Error.quotaExceeded) {
      try await test.blocking { client in
        try client.put([1], as: "source")
        let upload = try client.beginMultipart("whole")
        store.fail(.failsLate(code: "QuotaExceeded"))
        _ = try client.copyPart(1, of: upload, from: "source")
      }
    }
    let part = try await test.blocking { client in
      let upload = try client.beginMultipart("other")
      store.fail(.failsLate(code: "InternalError"), .failsLate(code: "SlowDown"))
      let part = try client.copyPart(1, of: upload, from: "source")
      store.fail(.failsLate(code: "InternalError"))
      try client.complete(upload, [part], bytes: 1)
      return part
    }
    #expect(part.number == 1)
    #expect(store.objects(in: "sounds")["other"] == [1])
  }

  @Test("an upload isn't begun twice if the first may have begun")
  func beginning() async throws {
    let store = test.store
    store.fail(.cuts(afterBytes: 0))
    await #expect(throws: S3Error.self) { try await test.blocking { try $0.beginMultipart("x") } }
    #expect(store.uploadCount == 1)
    store.fail(.refuses(500, code: "InternalError"))
    await #expect(throws: S3Error.unavailable(status: 500, code: "InternalError")) {
      try await test.blocking { try $0.beginMultipart("x") }
    }
    store.fail(.refuses(503, code: "SlowDown"))
    _ = try await test.blocking { try $0.beginMultipart("x") }
    #expect(store.uploadCount == 2)
  }
}
