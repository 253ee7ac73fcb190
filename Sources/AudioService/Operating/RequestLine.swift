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
  static func bytes(_ record: RequestRecord, at time: Timestamp) -> [UInt8] {
    let notes = record.notes
    let key = escaped(notes?.key ?? "")
    // None of these has anything to escape: the parser accepts known methods only, the address is the system's
    // (SocketAddress), and a caller's ID is refused if it has other characters (RequestIdentifier).
    let (method, peer, id) = (record.method?.rawValue ?? "", record.peer, record.requestID)
    let path = escaped(record.path ?? "")
    let tenant = escaped(notes?.tenant ?? "")
    let traceparent = escaped(record.traceparent ?? "")
    let second = seconds.text(of: time)
    var room = ownRoom + second.count
    for text in [key, method, path, peer, id, tenant, traceparent] { room += text.utf8.count }
    var line: [UInt8] = []
    line.append(addingCapacity: room) { line in
      line.append(literal: "{\"bytes_in\":")
      line.append(decimal: record.bytesReceived)
      line.append(literal: ",\"bytes_out\":")
      line.append(decimal: record.bytesSent)
      member(",\"key\":\"", key, to: &line)
      line.append(literal: ",\"level\":\"info\",\"message\":\"request\"")
      member(",\"method\":\"", method, to: &line)
      line.append(literal: ",\"ms\":")
      append(microseconds: Int64((record.seconds * 1e6).rounded()), to: &line)
      member(",\"path\":\"", path, to: &line)
      member(",\"peer\":\"", peer, to: &line)
      member(",\"request_id\":\"", id, to: &line)
      line.append(literal: ",\"status\":")
      line.append(decimal: Int64(record.status?.code ?? 0))
      member(",\"tenant\":\"", tenant, to: &line)
      line.append(literal: ",\"time\":\"")
      line.append(copying: second.span)
      let rest = Int(time.milliseconds % 1000)
      line.append(UInt8(ascii: "0") + UInt8(rest / 100 % 10))
      line.append(UInt8(ascii: "0") + UInt8(rest / 10 % 10))
      line.append(UInt8(ascii: "0") + UInt8(rest % 10))
      line.append(literal: "Z\"")
      member(",\"traceparent\":\"", traceparent, to: &line)
      line.append(literal: "}\n")
    }
    return line
  }

  /// An upper bound on the bytes of all names, numbers, and quotation marks.
  private static let ownRoom = 320

  /// Appends milliseconds, without trailing zeros: 0.123, 12.5, 3.
  private static func append(microseconds: Int64, to line: inout OutputSpan<UInt8>) {
    line.append(decimal: microseconds / 1000)
    let rest = microseconds % 1000
    guard rest > 0 else { return }
    line.append(UInt8(ascii: "."))
    line.append(UInt8(ascii: "0") + UInt8(rest / 100))
    if rest % 100 > 0 { line.append(UInt8(ascii: "0") + UInt8(rest / 10 % 10)) }
    if rest % 10 > 0 { line.append(UInt8(ascii: "0") + UInt8(rest % 10)) }
  }

  /// `name`: with everything around it, up to the quotation mark before the text.
  private static func member(_ name: StaticString, _ text: String, to line: inout OutputSpan<UInt8>) {
    guard !text.isEmpty else { return }
    line.append(literal: name)
    line.append(copying: text.utf8.span)
    line.append(UInt8(ascii: "\""))
  }

  /// Returns the text with escapes in place of what JSON doesn't allow in a string.
  private static func escaped(_ text: String) -> String {
    guard !text.isEmpty, needsEscapes(text.utf8.span) else { return text }
    var bytes: [UInt8] = []
    for byte in text.utf8 { escape(byte, to: &bytes) }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Looks at every byte without stopping, so that the compiler can look at several at once.
  private static func needsEscapes(_ text: Span<UInt8>) -> Bool {
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
