import Testing

@testable import HTTP

@Suite struct RequestBodyTests {
  private func body(_ count: Int) throws -> RequestBody {
    try HTTPRequest(method: .post, target: "/", body: [UInt8](repeating: 1, count: count)).body
  }

  @Test func aBodyInMemoryIsReadInPiecesOf64KiBAtMost() async throws {
    let body = try body(150_000)
    var counts: [Int] = []
    while let piece = try await body.read() { counts.append(piece.count) }
    #expect(counts == [65_536, 65_536, 18_928])
    #expect(body.receivedLength == 150_000)
    #expect(try await body.read() == nil)
  }

  @Test func aDeclaredLengthBeyondTheLimitIsRefusedBeforeReading() async throws {
    let body = try body(11)
    body.limit(to: 10)
    await #expect(throws: RequestBodyError.tooLarge(limit: 10)) { try await body.read() }
    #expect(body.receivedLength == 0)
    await #expect(throws: RequestBodyError.tooLarge(limit: 5)) { try await body.collect(upTo: 5) }
  }

  @Test func aBodyAtTheLimitIsRead() async throws {
    let body = try body(10)
    body.limit(to: 10)
    #expect(try await body.collect(upTo: 10).count == 10)
  }

  @Test func aRequestWithoutABodyHasNone() async throws {
    let body = try body(0)
    #expect(body.declaredLength == 0)
    #expect(try await body.collect(upTo: 0).isEmpty)
  }

  @Test(arguments: ["a", "A-b_c.1~:+/=", String(repeating: "x", count: 128)])
  func aSaneRequestIdIsKept(_ id: String) throws {
    #expect(try HTTPRequest(method: .get, target: "/", fields: ["X-Request-Id": id]).id == id)
  }

  @Test(arguments: ["", "a b", "a\"", "a,b", "<x>", String(repeating: "x", count: 129)])
  func aRequestIdOfAnotherFormIsReplaced(_ id: String) throws {
    #expect(try HTTPRequest(method: .get, target: "/", fields: ["X-Request-Id": id]).id.utf8.count == 13)
  }
}
