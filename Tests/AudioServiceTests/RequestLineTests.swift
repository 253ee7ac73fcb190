import FoundationEssentials
import Logging
import Storage
import Testing

@testable import AudioService
@testable import HTTP

/// A request's line is the one that the logger would write.
@Suite struct RequestLineTests {
  private let time = Timestamp(milliseconds: 1_795_233_906_009)

  private func expectLogged(_ record: RequestRecord, sourceLocation: SourceLocation = #_sourceLocation) {
    let plain = JSONLogHandler.line(at: time, .info, "request", ServiceLog.metadata(of: record))
    #expect(
      String(decoding: RequestLine.bytes(record, at: time), as: UTF8.self) == String(decoding: plain, as: UTF8.self),
      sourceLocation: sourceLocation)
  }

  private func record(
    _ target: String, fields: HTTPFields = [:], seconds: Double = 0.001, sent: Int64 = 431
  ) throws -> RequestRecord {
    RequestRecord(
      request: try HTTPRequest(method: .get, target: target, fields: fields), status: .ok, bytesReceived: 0,
      bytesSent: sent, seconds: seconds, peer: "127.0.0.1:50312", requestID: "0a1b2c")
  }

  @Test func membersStandInTheSameOrderAndForm() throws {
    expectLogged(try record("/healthz"))
    expectLogged(try record("/v1/recordings/a?start=1", fields: ["traceparent": "00-ab-cd-01"], sent: 5_000_000_000))
    expectLogged(
      RequestRecord(
        request: nil, status: nil, bytesReceived: 12, bytesSent: 0, seconds: 0, peer: "[::1]:5", requestID: ""))
  }

  @Test func durationsAreRoundedToTheMicrosecond() throws {
    for seconds in [0, 4e-7, 6e-7, 1e-6, 0.000_12, 0.0123, 0.999_999_6, 1, 12.345_678, 86_400.5] {
      expectLogged(try record("/", seconds: seconds))
    }
  }

  @Test func textIsEscaped() throws {
    for text in [#"a"b\c"#, "a\tb", "caf\u{e9}", "a/b", "\u{7f}", "\u{1f}\u{8}\u{c}"] {
      let record = try record("/a\"b", fields: ["traceparent": text])
      record.request?.notes.note { ($0.key, $0.tenant) = (text, text) }
      expectLogged(record)
    }
  }

  @Test func theLongestNumbersAndTextsHaveRoom() throws {
    let text = String(repeating: "\u{1}", count: 10_000)
    let request = try HTTPRequest(
      method: .options, target: "/" + String(repeating: "\"", count: 10_000), fields: ["traceparent": text])
    request.notes.note { ($0.key, $0.tenant) = (text, text) }
    let line = RequestLine.bytes(
      RequestRecord(
        request: request, status: .ok, bytesReceived: .min, bytesSent: .max, seconds: 0x1p42 - 0.001,
        peer: "[0000:0000:0000:0000:0000:0000:0000:0001]:65535", requestID: String(repeating: "x", count: 128)),
      at: .now)
    let members = try JSONDecoder().decode(Members.self, from: Data(line))
    #expect(members.bytes_in == .min && members.bytes_out == .max && members.status == 200)
    #expect(members.key == text && members.tenant == text && members.traceparent == text.replacing("\u{1}", with: " "))
  }

  private struct Members: Decodable {
    var bytes_in, bytes_out: Int64
    var status: Int
    var key, tenant, traceparent: String
  }
}
