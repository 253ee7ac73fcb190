import HTTP
import Storage
import Synchronization

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
    append("{\"bytes_in\":", to: &line)
    append(record.bytesReceived, to: &line)
    append(",\"bytes_out\":", to: &line)
    append(record.bytesSent, to: &line)
    let notes = record.notes
    member(",\"key\":", notes?.key ?? "", to: &line)
    append(",\"level\":\"info\",\"message\":\"request\"", to: &line)
    member(",\"method\":", record.method?.rawValue ?? "", to: &line)
    append(",\"ms\":", to: &line)
    append(microseconds: Int64((record.seconds * 1e6).rounded()), to: &line)
    member(",\"path\":", record.path ?? "", to: &line)
    member(",\"peer\":", record.peer, to: &line)
    member(",\"request_id\":", record.requestID, to: &line)
    append(",\"status\":", to: &line)
    append(Int64(record.status?.code ?? 0), to: &line)
    member(",\"tenant\":", notes?.tenant ?? "", to: &line)
    append(",\"time\":\"", to: &line)
    line.append(contentsOf: seconds.text(of: time))
    let rest = Int(time.milliseconds % 1000)
    for divisor in [100, 10, 1] { line.append(UInt8(ascii: "0") + UInt8(rest / divisor % 10)) }
    append("Z\"", to: &line)
    member(",\"traceparent\":", record.traceparent ?? "", to: &line)
    append("}\n", to: &line)
    return line
  }

  private static func append(_ text: String, to line: inout [UInt8]) { line.append(contentsOf: text.utf8) }

  /// `number` isn't negative.
  private static func append(_ number: Int64, to line: inout [UInt8]) {
    var divisor: Int64 = 1
    while number / divisor >= 10 { divisor *= 10 }
    while divisor > 0 {
      line.append(UInt8(ascii: "0") + UInt8(number / divisor % 10))
      divisor /= 10
    }
  }

  /// Appends milliseconds, without trailing zeros: 0.123, 12.5, 3.
  private static func append(microseconds: Int64, to line: inout [UInt8]) {
    append(microseconds / 1000, to: &line)
    var (rest, divisor) = (microseconds % 1000, Int64(100))
    if rest > 0 { line.append(UInt8(ascii: ".")) }
    while rest > 0 {
      line.append(UInt8(ascii: "0") + UInt8(rest / divisor))
      (rest, divisor) = (rest % divisor, divisor / 10)
    }
  }

  private static func member(_ name: String, _ text: String, to line: inout [UInt8]) {
    guard !text.isEmpty else { return }
    append(name, to: &line)
    line.append(UInt8(ascii: "\""))
    let start = line.count
    line.append(contentsOf: text.utf8)
    if line[start...].contains(where: { $0 < 0x20 || $0 == 0x22 || $0 == 0x5c }) {
      line.removeSubrange(start...)
      for byte in text.utf8 { escape(byte, to: &line) }
    }
    line.append(UInt8(ascii: "\""))
  }

  private static func escape(_ byte: UInt8, to line: inout [UInt8]) {
    switch byte {
    case 0x22: append("\\\"", to: &line)
    case 0x5c: append("\\\\", to: &line)
    case 0x08: append("\\b", to: &line)
    case 0x09: append("\\t", to: &line)
    case 0x0a: append("\\n", to: &line)
    case 0x0c: append("\\f", to: &line)
    case 0x0d: append("\\r", to: &line)
    case 0..<0x20:
      append("\\u00", to: &line)
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
