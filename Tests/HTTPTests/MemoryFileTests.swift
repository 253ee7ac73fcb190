import Testing

@testable import HTTP

/// Content in a file in memory.
@Suite struct MemoryFileTests {
  private static let first = [UInt8](repeating: 0x41, count: 20_000)
  private static let second = (0..<100_000).map { UInt8($0 % 251) }

  @Test func addingMoreKeepsEarlierAdditions() throws {
    var file = MemoryFile()
    let first = try Self.appended(Self.first, to: file)
    let second = try Self.appended(Self.second, to: file)
    file = MemoryFile()
    #expect(try first.read(0..<first.length) == Self.first)
    #expect(try second.slice(10_000..<90_000).read(0..<80_000) == Array(Self.second[10_000..<90_000]))
    #expect(ResponseBody.file(second).bytesAtHand == Self.second)
  }

  @Test func afterItsTurnoverTheNextFileBeginsAndTheEarlierOneStays() throws {
    let file = MemoryFile(turnover: 30_000)
    let contents = try (0..<9).map { number in
      try Self.appended([UInt8](repeating: UInt8(number), count: 20_000), to: file)
    }
    #expect(contents.map(\.offset) == [0, 20_000, 0, 20_000, 0, 20_000, 0, 20_000, 0])
    for (number, content) in contents.enumerated() {
      #expect(try content.read(0..<20_000) == [UInt8](repeating: UInt8(number), count: 20_000))
    }
  }

  @Test func itIsServedLikeBytes() async throws {
    let file = MemoryFile()
    _ = file.append(Self.first)
    let content = try Self.appended(Self.second, to: file)
    try await withServer { request in
      HTTPResponse(Self.representation(.file(content)), for: request)
    } test: { port, _ in
      let client = try WireClient(port: port)
      for _ in 0..<3 {
        try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) { head += try client.read(1) }
        #expect(String(decoding: head, as: UTF8.self).contains("Content-Length: 100000\r\n"))
        #expect(try client.read(100_000) == Self.second)
      }
    }
  }

  @Test(arguments: [20_000, 100_000])
  func itIsCodedLikeBytes(count: Int) async throws {
    let file = MemoryFile()
    let bytes = Array(Self.second.prefix(count))
    let content = try Self.appended(bytes, to: file)
    let request = try HTTPRequest(method: .get, target: "/", fields: ["Accept-Encoding": "gzip"])
    var coded: [[UInt8]] = []
    for body in [ResponseBody.file(content), .bytes(bytes)] {
      let response = HTTPResponse(Self.representation(body), for: request).coded(for: request)
      #expect(response.fields["Content-Encoding"] == "gzip")
      coded.append(try await response.body.collect())
    }
    #expect(coded[0] == coded[1])
    #expect(coded[0].count < count)
  }

  private static func appended(_ bytes: [UInt8], to file: MemoryFile) throws -> FileContent {
    try #require(file.append(bytes))
  }

  private static func representation(_ body: ResponseBody) -> Representation {
    Representation(body: body, contentType: "application/json", etag: "\"a\"", cacheControl: "no-cache")
  }
}
