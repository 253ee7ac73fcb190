import HTTP
import Storage
import Synchronization
import Terms

// A request's log line, byte for byte what `JSONLogHandler` writes for the same members, without a dictionary and an
// encoder for each:
//
//   {"bytes_in":0,"bytes_out":431,"key":"ci","level":"info","message":"request","method":"GET","ms":0.123,
//   "path":"/healthz","peer":"127.0.0.1:50312","request_id":"…","status":200,"tenant":"acme",
//   "time":"2026-11-21T04:05:06.789Z","traceparent":"…"}
//
// in the order of the members' names, without those whose text is empty.

/// Writes the log lines of requests.
enum RequestLine {
  /// Returns the line of a request that ended at `time`, with its newline.
  static func bytes(_ record: RequestRecord, at time: Timestamp = .now) -> [UInt8] {
    var line: [UInt8] = []
    line.reserveCapacity(384)
    line.append(literal: "{\"bytes_in\":")
    line.append(decimal: record.bytesReceived)
    line.append(literal: ",\"bytes_out\":")
    line.append(decimal: record.bytesSent)
    let notes = record.notes
    member(",\"key\":", notes?.key ?? "", to: &line)
    line.append(literal: ",\"level\":\"info\",\"message\":\"request\"")
    member(",\"method\":", record.method?.rawValue ?? "", to: &line)
    line.append(literal: ",\"ms\":")
    append(microseconds: Int64((record.seconds * 1e6).rounded()), to: &line)
    member(",\"path\":", record.path ?? "", to: &line)
    member(",\"peer\":", record.peer, to: &line)
    member(",\"request_id\":", record.requestID, to: &line)
    line.append(literal: ",\"status\":")
    line.append(decimal: Int64(record.status?.code ?? 0))
    member(",\"tenant\":", notes?.tenant ?? "", to: &line)
    line.append(literal: ",\"time\":\"")
    line.append(contentsOf: seconds.text(of: time))
    let rest = Int(time.milliseconds % 1000)
    for divisor in [100, 10, 1] { line.append(UInt8(ascii: "0") + UInt8(rest / divisor % 10)) }
    line.append(literal: "Z\"")
    member(",\"traceparent\":", record.traceparent ?? "", to: &line)
    line.append(literal: "}\n")
    return line
  }

  /// Appends milliseconds, without trailing zeros: 0.123, 12.5, 3.
  private static func append(microseconds: Int64, to line: inout [UInt8]) {
    line.append(decimal: microseconds / 1000)
    var (rest, divisor) = (microseconds % 1000, Int64(100))
    if rest > 0 { line.append(UInt8(ascii: ".")) }
    while rest > 0 {
      line.append(UInt8(ascii: "0") + UInt8(rest / divisor))
      (rest, divisor) = (rest % divisor, divisor / 10)
    }
  }

  private static func member(_ name: StaticString, _ text: String, to line: inout [UInt8]) {
    guard !text.isEmpty else { return }
    line.append(literal: name)
    line.append(UInt8(ascii: "\""))
    let start = line.count
    line.append(contentsOf: text.utf8)
    if needsEscapes(line, from: start) {
      line.removeSubrange(start...)
      for byte in text.utf8 { escape(byte, to: &line) }
    }
    line.append(UInt8(ascii: "\""))
  }

  /// Looks at every byte without stopping, so that the compiler can look at several at once.
  private static func needsEscapes(_ line: [UInt8], from start: Int) -> Bool {
    let text = line.span.extracting(start...)
    var found: UInt8 = 0
    for index in text.indices {
      let byte = text[index]
      found |= (byte < 0x20 ? 1 : 0) | (byte == 0x22 ? 1 : 0) | (byte == 0x5c ? 1 : 0)
    }
    return found != 0
  }

  private static func escape(_ byte: UInt8, to line: inout [UInt8]) {
    switch byte {
    case 0x22: line.append(literal: "\\\"")
    case 0x5c: line.append(literal: "\\\\")
    case 0x08: line.append(literal: "\\b")
    case 0x09: line.append(literal: "\\t")
    case 0x0a: line.append(literal: "\\n")
    case 0x0c: line.append(literal: "\\f")
    case 0x0d: line.append(literal: "\\r")
    case 0..<0x20:
      line.append(literal: "\\u00")
      for digit in [byte >> 4, byte & 15] { line.append(digit < 10 ? 0x30 + digit : 0x57 + digit) }
    default: line.append(byte)
    }
  }

  private static let seconds = SecondText()
}

/// The text of the current second, which thousands of lines share: "2026-11-21T04:05:06.".
private final class SecondText: Sendable {
  private let last = Mutex<(second: Int64, text: [UInt8])>((.min, []))

  func text(of time: Timestamp) -> [UInt8] {
    let second = time.milliseconds / 1000
    let known = last.withLock { $0 }
    if known.second == second { return known.text }
    let text = Array(Timestamp(milliseconds: second * 1000).rfc3339.utf8.dropLast(4))
    last.withLock { $0 = (second, text) }
    return text
  }
}
