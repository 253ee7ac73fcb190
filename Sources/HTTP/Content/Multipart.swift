// multipart/form-data (RFC 7578, RFC 2046 §5.1):
//
//   [ preamble CRLF ] "--" boundary blanks CRLF  *( fields CRLF )  CRLF  content
//   *( CRLF "--" boundary blanks CRLF … )   CRLF "--" boundary "--"   epilogue
//
// A boundary is 1 to 70 characters. The CRLF before a delimiter belongs to the delimiter, not to the content; at the
// very start, the first delimiter needs none. Content of any length passes through in pieces.

/// Why multipart content was refused.
package enum MultipartError: Error, Equatable, Sendable {
  /// It does not follow the grammar.
  case malformed(Fault)
  /// It ended before the closing delimiter.
  case truncated
  /// The fields of a part exceed this many bytes.
  case partHeadTooLarge(limit: Int)
  /// There are more parts than this.
  case tooManyParts(limit: Int)

  /// Which rule was broken.
  package enum Fault: String, Sendable {
    /// A delimiter is followed by something other than CRLF or `--`.
    case delimiter
    /// A line of a part's head is not a field.
    case field
    /// There is no `Content-Disposition: form-data` with a name.
    case disposition = "Content-Disposition"
    /// More than a few KB precede the first delimiter.
    case preamble
  }
}

/// Limits on multipart content.
package struct MultipartLimits: Sendable {
  /// Maximum number of parts.
  package var partCount = 64
  /// Maximum size of a part's fields, in bytes.
  package var partHeadBytes = 8 * 1024
  /// Maximum size of the preamble before the first delimiter, in bytes.
  package var preambleBytes = 4 * 1024

  /// Creates the default limits.
  package init() {}
}

/// The head of one part.
package struct MultipartPart: Sendable {
  /// The form field's name.
  package let name: String
  /// The file's name as sent by the client; never use it as a path.
  package let filename: String?
  /// All fields of the part.
  package let fields: HTTPFields
}

/// Parses multipart content that arrives in pieces of any size. Buffers at most one piece and one part's head.
struct MultipartParser {
  enum Event: Equatable {
    case needsInput
    /// A part begins; its content follows.
    case part(HTTPFields)
    case content([UInt8])
    case partEnded
    /// The closing delimiter was read; the rest is discarded.
    case ended
  }

  private enum Phase { case preamble, delimiterEnd, fields, content, ended }

  private let delimiter: [UInt8]
  /// For each byte, how far to move the delimiter if its last position holds that byte and it doesn't match.
  private let shifts: [Int]
  private let limits: MultipartLimits
  private var phase = Phase.preamble
  /// Starts with a CRLF that was not sent, so that a delimiter at the very start needs no special case.
  private var buffer: [UInt8] = Array("\r\n".utf8)
  private var start = 0
  private var preambleBytes = 0
  private var partCount = 0
  private var fields = FieldSection()
  private var headBytes = 0
  private var owesPartEnd = false

  init(boundary: String, limits: MultipartLimits) {
    delimiter = Array("\r\n--\(boundary)".utf8)
    var shifts = [Int](repeating: delimiter.count, count: 256)
    for (index, byte) in delimiter.dropLast().enumerated() { shifts[Int(byte)] = delimiter.count - 1 - index }
    self.shifts = shifts
    self.limits = limits
  }

  var hasEnded: Bool { phase == .ended }

  mutating func append(_ piece: [UInt8]) {
    // Usually the previous piece is used up, so nothing is copied.
    if start == buffer.count {
      buffer = piece
    } else {
      buffer.removeFirst(start)
      buffer.append(contentsOf: piece)
    }
    start = 0
  }

  /// Returns the next event.
  mutating func next() throws(MultipartError) -> Event {
    while true {
      if owesPartEnd {
        owesPartEnd = false
        return .partEnded
      }
      switch phase {
      case .preamble:
        let found = skipPreamble()
        guard preambleBytes <= limits.preambleBytes else { throw .malformed(.preamble) }
        guard let found else { return .needsInput }
        start = found + delimiter.count
        phase = .delimiterEnd
      case .delimiterEnd:
        guard let event = try takeDelimiterEnd() else { continue }
        return event
      case .fields:
        guard let event = try takeField() else { continue }
        return event
      case .content:
        return takeContent()
      case .ended:
        (start, buffer) = (0, [])
        return .ended
      }
    }
  }

  private mutating func skipPreamble() -> Int? {
    let (found, safe) = search()
    preambleBytes += (found ?? safe) - start
    start = found ?? safe
    return found
  }

  /// After a delimiter, `--` ends the content and CRLF begins a part. Blanks before the CRLF are permitted padding.
  private mutating func takeDelimiterEnd() throws(MultipartError) -> Event? {
    while start < buffer.count, ASCII.isBlank(buffer[start]) { start += 1 }
    guard start + 2 <= buffer.count else { return .needsInput }
    let end = buffer[start..<start + 2]
    start += 2
    if end.elementsEqual("--".utf8) {
      phase = .ended
      return .ended
    }
    guard end.elementsEqual("\r\n".utf8) else { throw .malformed(.delimiter) }
    partCount += 1
    guard partCount <= limits.partCount else { throw .tooManyParts(limit: limits.partCount) }
    (fields, headBytes, phase) = (FieldSection(), 0, .fields)
    return nil
  }

  private mutating func takeField() throws(MultipartError) -> Event? {
    guard let lineFeed = buffer[start...].firstIndex(of: ASCII.lineFeed) else {
      guard headBytes + buffer.count - start <= limits.partHeadBytes else {
        throw .partHeadTooLarge(limit: limits.partHeadBytes)
      }
      return .needsInput
    }
    let line = buffer[start...lineFeed]
    headBytes += line.count
    start = lineFeed + 1
    guard headBytes <= limits.partHeadBytes else { throw .partHeadTooLarge(limit: limits.partHeadBytes) }
    guard line.count >= 2, line[lineFeed - 1] == ASCII.carriageReturn else { throw .malformed(.field) }
    if line.count == 2 {
      phase = .content
      // The empty line's CRLF may also begin a delimiter that follows immediately (an empty part), so keep it.
      start -= 2
      return .part(HTTPFields(fields))
    }
    do { try FieldLine.parse(line.dropLast(2), into: &fields) } catch { throw .malformed(.field) }
    return nil
  }

  private mutating func takeContent() -> Event {
    if headBytes > 0 {
      // The head's last CRLF is still in the buffer: content begins after it, unless it begins a delimiter.
      guard buffer.count - start >= delimiter.count || !matchesDelimiter(at: start, partially: true) else {
        return .needsInput
      }
      if !matchesDelimiter(at: start, partially: false) { start += 2 }
      headBytes = 0
    }
    let (found, safe) = search()
    let end = found ?? safe
    if end > start {
      if start == 0, end == buffer.count { return .content(takeBuffer()) }
      let content = Array(buffer[start..<end])
      start = end
      if found != nil { finishPart() }
      return .content(content)
    }
    guard found != nil else { return .needsInput }
    finishPart()
    owesPartEnd = false
    return .partEnded
  }

  private mutating func finishPart() {
    start += delimiter.count
    phase = .delimiterEnd
    owesPartEnd = true
  }

  private mutating func takeBuffer() -> [UInt8] {
    defer { buffer = [] }
    return buffer
  }

  /// Returns where the delimiter begins, or else how much of the buffer certainly precedes it. Looks at few bytes of
  /// the content (Source: Horspool, "Practical fast searching in strings", 1980).
  private func search() -> (found: Int?, safe: Int) {
    let (bytes, shifts) = (buffer.span, shifts.span)
    var index = start
    while index + delimiter.count <= bytes.count {
      if matchesDelimiter(at: index, partially: false) { return (index, index) }
      index += shifts[Int(bytes[index + delimiter.count - 1])]
    }
    while index < bytes.count {
      if matchesDelimiter(at: index, partially: true) { return (nil, index) }
      index += 1
    }
    return (nil, bytes.count)
  }

  /// Whether the delimiter, or as much of it as the buffer holds, is at `index`.
  private func matchesDelimiter(at index: Int, partially: Bool) -> Bool {
    let count = min(delimiter.count, buffer.count - index)
    guard partially || count == delimiter.count else { return false }
    for offset in 0..<count where buffer[index + offset] != delimiter[offset] { return false }
    return true
  }
}

/// Reads multipart/form-data from a request's body as a stream: call `nextPart`, then `read` until nil, and repeat.
package struct MultipartReader {
  private let body: RequestBody
  private var parser: MultipartParser
  private var isInPart = false

  /// Fails if the content type isn't multipart/form-data with a valid boundary.
  package init?(contentType: String, body: RequestBody, limits: MultipartLimits = MultipartLimits()) {
    guard let type = ParameterizedValue(contentType), type.value.equalsIgnoringCase("multipart/form-data"),
      let boundary = type["boundary"], (1...70).contains(boundary.utf8.count), !boundary.hasSuffix(" "),
      boundary.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F })
    else { return nil }
    self.body = body
    parser = MultipartParser(boundary: boundary, limits: limits)
  }

  /// Returns the next part, or nil after the last. Skips whatever was not read of the previous part.
  package mutating func nextPart() async throws -> MultipartPart? {
    while isInPart { _ = try await read() }
    while true {
      switch try await nextEvent() {
      case .part(let fields):
        isInPart = true
        return try Self.part(fields)
      case .ended:
        while try await body.read() != nil {}
        return nil
      case .needsInput, .content, .partEnded: continue
      }
    }
  }

  /// Returns the next piece of the current part's content, or nil at its end.
  package mutating func read() async throws -> [UInt8]? {
    guard isInPart else { return nil }
    while true {
      switch try await nextEvent() {
      case .content(let content): return content
      case .partEnded, .ended:
        isInPart = false
        return nil
      case .needsInput, .part: continue
      }
    }
  }

  private mutating func nextEvent() async throws -> MultipartParser.Event {
    while true {
      let event = try parser.next()
      guard event == .needsInput else { return event }
      guard let piece = try await body.read() else { throw MultipartError.truncated }
      parser.append(piece)
    }
  }

  private static func part(_ fields: HTTPFields) throws(MultipartError) -> MultipartPart {
    guard let field = fields["Content-Disposition"], let disposition = ParameterizedValue(field),
      disposition.value.equalsIgnoringCase("form-data"), let name = disposition["name"]
    else { throw .malformed(.disposition) }
    return MultipartPart(name: name, filename: disposition.filename, fields: fields)
  }
}
