import CZlib
import CZstd
import Synchronization
import Testing

@testable import HTTP

/// Answers every request with the same representation; a stream supplies its own pieces.
private struct Fixed: HTTPResponder {
  var body: ResponseBody
  var type = "application/json"
  var etag: String? = "\"v1\""

  func respond(to request: HTTPRequest) -> HTTPAnswer {
    .now(
      HTTPResponse(
        Representation(body: body, contentType: type, etag: etag, cacheControl: "no-cache", acceptsRanges: true),
        for: request))
  }
}

private let long = Array(String(repeating: "12,-345,678,", count: 400).utf8)

private func answer(_ fixed: Fixed, _ fields: HTTPFields, _ method: HTTPMethod = .get) async throws -> HTTPResponse {
  let request = try HTTPRequest(method: method, target: "/", fields: fields)
  return try await ContentCoder(fixed).respond(to: request).response
}

/// Decompresses with zlib itself, independently of the coder.
@safe
private func gunzip(_ coded: [UInt8]) -> [UInt8] {
  var output = [UInt8](repeating: 0, count: 1 << 22)
  var stream = unsafe z_stream()
  guard unsafe inflateInit2_(&stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
    return []
  }
  defer { unsafe inflateEnd(&stream) }
  var input = coded
  let status = unsafe input.withUnsafeMutableBytes { input in
    unsafe output.withUnsafeMutableBytes { output in
      unsafe stream.next_in = input.bindMemory(to: UInt8.self).baseAddress
      unsafe stream.avail_in = UInt32(input.count)
      unsafe stream.next_out = output.bindMemory(to: UInt8.self).baseAddress
      unsafe stream.avail_out = UInt32(output.count)
      return unsafe inflate(&stream, Z_FINISH)
    }
  }
  #expect(status == Z_STREAM_END, "one whole gzip member")
  return unsafe Array(output.prefix(Int(stream.total_out)))
}

/// Decompresses with zstd itself.
@safe
private func unzstd(_ coded: [UInt8]) -> [UInt8] {
  var output = [UInt8](repeating: 0, count: 1 << 22)
  let count = unsafe output.withUnsafeMutableBytes { output in
    unsafe coded.withUnsafeBytes { coded in
      unsafe ZSTD_decompress(output.baseAddress, output.count, coded.baseAddress, coded.count)
    }
  }
  guard ZSTD_isError(count) == 0 else { return [] }
  return Array(output.prefix(count))
}

@Suite struct ContentCodingTests {
  @Test(
    "zstd is sent to those that like it at least as much as gzip",
    arguments: [
      ("zstd", "zstd"), ("gzip, deflate, br, zstd", "zstd"), ("gzip;q=0.5, zstd;q=0.6", "zstd"), ("ZSTD;q=1", "zstd"),
      ("gzip, zstd;q=0.9", "gzip"), ("zstd;q=0, gzip", "gzip"), ("zstd;q=0", nil), ("zstd;q=0.5, identity", nil),
    ])
  func zstd(accepted: String, coding: String?) async throws {
    let response = try await answer(Fixed(body: .bytes(long)), ["Accept-Encoding": accepted])
    #expect(response.fields["Content-Encoding"] == coding && response.fields["Vary"] == "Accept-Encoding")
    guard coding == "zstd" else { return }
    let coded = try await response.body.collect()
    #expect(unzstd(coded) == long && coded.count < long.count / 2)
    let held = try await answer(
      Fixed(body: .bytes(long)), ["Accept-Encoding": accepted, "If-None-Match": response.fields["ETag"] ?? ""])
    #expect(response.fields["ETag"] == "\"v1-zstd\"")
    #expect(held.status == .notModified && held.fields["ETag"] == "\"v1-zstd\"")
  }

  @Test("content of more than 8 KiB is compressed on another thread than the event loop's, once")
  func elsewhere() async throws {
    let fixed = Fixed(body: .bytes((0..<4).flatMap { _ in long }))
    let representation = Representation(body: fixed.body, contentType: fixed.type, etag: nil, cacheControl: "no-cache")
    let request = try HTTPRequest(method: .get, target: "/", fields: ["Accept-Encoding": "zstd"])
    guard case .pending(let work) = HTTPResponse(representation, for: request).coded(for: request) else {
      Issue.record("compressed at once")
      return
    }
    let coded = try await work().body.collect()
    guard case .done(let again) = HTTPResponse(representation, for: request).coded(for: request) else {
      Issue.record("compressed again")
      return
    }
    #expect(try await again.body.collect() == coded)
  }

  @Test(
    "a handler may compress what it made on a thread of its own, and nothing compresses it again",
    arguments: ["gzip", "zstd"])
  func here(coding: String) async throws {
    let text = (0..<4).flatMap { _ in long }
    let representation = Representation(
      body: .bytes(text), contentType: "application/json", etag: "\"v1\"", cacheControl: "no-cache")
    let request = try HTTPRequest(method: .get, target: "/", fields: ["Accept-Encoding": coding])
    let coded = HTTPResponse(representation, for: request).codedHere(for: request)
    #expect(coded.fields["Content-Encoding"] == coding && coded.fields["ETag"] == "\"v1-\(coding)\"")
    guard case .done(let again) = coded.coded(for: request) else {
      Issue.record("compressed twice")
      return
    }
    #expect(again.fields == coded.fields)
    let bytes = try await again.body.collect()
    #expect((coding == "gzip" ? gunzip(bytes) : unzstd(bytes)) == text)
  }

  @Test(
    "a word is found in a list, whatever its case and the blanks around it",
    arguments: [
      ("Origin", true), ("a, origin", true), (" ,\tORIGIN ,b", true), ("a,origin", true), ("origin;q=1", false),
      ("origi", false), ("origins", false), ("or igin", false), ("", false), (",,", false), ("a b origin", false),
    ])
  func list(value: String, hasWord: Bool) {
    let fields: HTTPFields = ["Vary": "x", "VARY": value]
    #expect(fields.list("vary", contains: "Origin") == hasWord)
    #expect(!fields.list("Var", contains: "Origin"))
  }

  @Test func longTextIsCompressedForClientsThatAcceptIt() async throws {
    let response = try await answer(Fixed(body: .bytes(long)), ["Accept-Encoding": "br, gzip;q=0.8"])
    #expect(response.fields["Content-Encoding"] == "gzip")
    #expect(response.fields["ETag"] == "\"v1-gzip\"")
    #expect(response.fields.list("Vary") == ["Accept-Encoding"])
    let coded = try await response.body.collect()
    #expect(coded.count < long.count / 2)
    #expect(gunzip(coded) == long)
    #expect(response.body.length == Int64(coded.count))
  }

  @Test(arguments: [
    nil, "", "identity", "br", "gzip;q=0", "*;q=0", "gzip;q=x", "gzip;q=0.000", "gzip;q=0.5, identity", "gzip;q=2",
  ])
  func whoDoesNotAcceptItGetsThePlainForm(_ accepted: String?) async throws {
    let response = try await answer(Fixed(body: .bytes(long)), accepted.map { ["Accept-Encoding": $0] } ?? [:])
    #expect(!response.fields.contains("Content-Encoding"))
    #expect(response.fields["ETag"] == "\"v1\"")
    #expect(response.fields["Vary"] == "Accept-Encoding")
    #expect(try await response.body.collect() == long)
  }

  @Test(arguments: ["gzip", "GZIP", "x-gzip", "*", "deflate, gzip;q=1.0, *;q=0.5", "identity;q=0.5, *;q=0.7"])
  func allSpellingsOfGzipAreUnderstood(_ accepted: String) async throws {
    let response = try await answer(Fixed(body: .bytes(long)), ["Accept-Encoding": accepted])
    #expect(response.fields["Content-Encoding"] == "gzip")
  }

  @Test func contentBelowAKilobyteIsNotCompressed() async throws {
    let response = try await answer(Fixed(body: .bytes(Array(long.prefix(1024)))), ["Accept-Encoding": "gzip"])
    #expect(!response.fields.contains("Content-Encoding"))
    let more = try await answer(Fixed(body: .bytes(Array(long.prefix(1025)))), ["Accept-Encoding": "gzip"])
    #expect(more.fields["Content-Encoding"] == "gzip")
  }

  @Test(arguments: ["audio/wav", "image/png", "application/vnd.bbc.audiowaveform", "application/octet-stream"])
  func otherContentIsNotCompressedAndDoesNotVary(_ type: String) async throws {
    let response = try await answer(Fixed(body: .bytes(long), type: type), ["Accept-Encoding": "gzip"])
    #expect(!response.fields.contains("Content-Encoding"))
    #expect(!response.fields.contains("Vary"))
  }

  @Test(arguments: [100, 1000, 70_000, 300_000])
  func longContentAndStreamsAreCompressedOnTheFly(_ size: Int) async throws {
    let text = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 3) % 64 + 32 }
    let pieces = Pieces(text, size)
    for body in [ResponseBody.bytes(text), .stream(length: nil) { pieces.next() }] {
      for coding in ["gzip", "zstd"] {
        let response = try await answer(Fixed(body: body), ["Accept-Encoding": coding])
        #expect(response.fields["Content-Encoding"] == coding && response.body.length == nil)
        let coded = try await response.body.collect()
        #expect((coding == "gzip" ? gunzip(coded) : unzstd(coded)) == text)
        pieces.reset()
      }
    }
  }

  @Test func aRangeRefersToThePlainForm() async throws {
    let response = try await answer(
      Fixed(body: .bytes(long)), ["Accept-Encoding": "gzip", "Range": "bytes=0-1999", "If-Range": "\"v1\""])
    #expect(response.status == .partialContent)
    #expect(!response.fields.contains("Content-Encoding"))
    let coded = try await answer(
      Fixed(body: .bytes(long)), ["Accept-Encoding": "gzip", "Range": "bytes=0-1999", "If-Range": "\"v1-gzip\""])
    #expect(coded.status == .ok)
  }

  @Test(arguments: [("\"v1-gzip\"", "\"v1-gzip\""), ("\"v1\"", "\"v1\""), ("W/\"v1-gzip\"", "\"v1-gzip\"")])
  func bothFormsCanBeRevalidated(_ held: String, _ told: String) async throws {
    let response = try await answer(
      Fixed(body: .bytes(long)), ["Accept-Encoding": "gzip", "If-None-Match": held])
    #expect(response.status == .notModified)
    #expect(response.fields["ETag"] == told)
    #expect(response.fields["Vary"] == "Accept-Encoding")
  }

  @Test func aChangeMayNameEitherForm() throws {
    for (tag, isAllowed) in [("\"v1\"", true), ("\"v1-gzip\"", true), ("W/\"v1-gzip\"", false), ("\"v2-gzip\"", false)]
    {
      let request = try HTTPRequest(method: .patch, target: "/", fields: ["If-Match": tag])
      #expect(request.mayChange(etag: "\"v1\"") == isAllowed, "\(tag)")
    }
  }

  @Test func headSaysWhatGetWould() async throws {
    let head = try await answer(Fixed(body: .bytes(long)), ["Accept-Encoding": "gzip"], .head)
    let get = try await answer(Fixed(body: .bytes(long)), ["Accept-Encoding": "gzip"])
    #expect(head.fields == get.fields)
    #expect(head.body.length == get.body.length)
  }
}

/// Pieces of a given size, one after the other.
private final class Pieces: Sendable {
  private let bytes: [UInt8]
  private let rest: Mutex<ArraySlice<UInt8>>
  private let size: Int

  init(_ bytes: [UInt8], _ size: Int) {
    rest = Mutex(bytes[...])
    (self.bytes, self.size) = (bytes, size)
  }

  func reset() { rest.withLock { $0 = bytes[...] } }

  func next() -> [UInt8]? {
    rest.withLock { rest in
      let piece = Array(rest.prefix(size))
      rest = rest.dropFirst(size)
      return piece.isEmpty ? nil : piece
    }
  }
}
