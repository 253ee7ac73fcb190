// A request's head (RFC 9112 §2 to §5), parsed strictly:
//
//   [ CRLF ]  method SP target SP "HTTP/" DIGIT "." DIGIT CRLF  *( name ":" OWS value OWS CRLF )  CRLF
//
// Lines must end in CRLF. A bare LF, a bare CR, NUL, or any other control byte is an error, and so is a line that
// continues the previous one. One empty line before the request is allowed (§2.2).

import Glibc

/// Parses heads from the bytes of a connection, which may arrive in pieces of any size.
///
/// Lines that are complete in the input are parsed in place; only a line cut off by the end of the input is copied. The
/// limits bound what is kept between calls.
///
/// The last head of ordinary size is kept with its bytes: a client that polls or pages sends the same one again and
/// again, and comparing it costs a twentieth of parsing it. Most others differ only in the request line, and there only
/// in the query; then the fields and the path are only compared.
struct RequestParser {
  private let limits: HTTPLimits
  private var partialLine: [UInt8] = []
  private var requestLine: (method: HTTPMethod, target: RequestTarget, version: HTTPVersion)?
  private var fields = FieldSection()
  private var fieldBytes = 0
  private var mayStartEmpty = true
  private var last: (bytes: [UInt8], fieldsStart: Int, head: RequestHead)?
  /// Whether the head being read, or the refused one, belongs to a HEAD request, which is answered without content even
  /// if the head is malformed (RFC 9110 §9.3.2).
  private(set) var isHead = false

  /// Longer heads are not kept, because an idle connection should use little memory.
  private static let longestKept = 1024

  init(limits: HTTPLimits) {
    self.limits = limits
  }

  /// Whether anything of a head has arrived, other than the empty line allowed before it.
  var hasBegun: Bool {
    requestLine != nil || !partialLine.isEmpty && !(mayStartEmpty && partialLine == [ASCII.carriageReturn])
  }

  /// Consumes as much of `input[start..<end]` as needed. `head` is nil until it is complete; `next` is the first byte
  /// not consumed. After a head, the parser is ready for the next one.
  mutating func consume(_ input: [UInt8], from start: Int, to end: Int) throws(HTTPParseError)
    -> (head: RequestHead?, next: Int)
  {
    let isAtStart = requestLine == nil && partialLine.isEmpty && mayStartEmpty
    if isAtStart, let last, Self.begins(input, from: start, to: end, with: last.bytes[...]) {
      last.head.isRepeated.store(true, ordering: .relaxed)
      return (last.head, start + last.bytes.count)
    }
    var fieldsStart = start
    var position = start
    while let lineFeed = Self.lineFeed(in: input, position, end) {
      noteMethod(input[position...lineFeed])
      try checkLength(input[position...lineFeed])
      var head: RequestHead?
      if partialLine.isEmpty {
        head = try parse(input[position...lineFeed])
      } else {
        partialLine.append(contentsOf: input[position...lineFeed])
        let line = partialLine
        partialLine = []
        head = try parse(line[...])
      }
      position = lineFeed + 1
      if isAtStart, fieldsStart == start, requestLine != nil {
        fieldsStart = position
        if let last {
          let fields = last.bytes[last.fieldsStart...]
          head = headWithFields(of: last.head, fields, input, from: position, to: end)
          if head != nil { position += fields.count }
        }
      }
      if let head {
        if isAtStart, position - start <= Self.longestKept {
          last = (Array(input[start..<position]), fieldsStart - start, head)
        }
        return (head, position)
      }
    }
    noteMethod(input[position..<end])
    try checkLength(input[position..<end])
    partialLine.append(contentsOf: input[position..<end])
    return (nil, end)
  }

  /// Returns the fields of a refused head, as many as were received. If its request line was at fault, nothing after
  /// that line has been parsed, so this parses `rest`, the input of the last call.
  func refusedFields(in rest: ArraySlice<UInt8> = []) -> HTTPFields {
    var fields = fields
    if requestLine == nil {
      let lines = rest.split(separator: ASCII.lineFeed, omittingEmptySubsequences: false)
      let behindFirst = lines.drop { $0.elementsEqual(CollectionOfOne(ASCII.carriageReturn)) }.dropFirst()
      for line in behindFirst {
        guard line.last == ASCII.carriageReturn, line.count > 1 else { break }
        // Skips a line that isn't a field; it isn't the reason for the refusal.
        try? FieldLine.parse(line.dropLast(), into: &fields)
      }
    }
    return HTTPFields(fields)
  }

  /// Checks the start of a request line, which is in `partialLine` followed by `rest`.
  private mutating func noteMethod(_ rest: ArraySlice<UInt8>) {
    guard requestLine == nil else { return }
    isHead = (partialLine.isEmpty ? rest : partialLine.prefix(5) + rest.prefix(5)).starts(with: "HEAD ".utf8)
  }

  /// Returns the head that the request line begins if it's followed by the fields of `other`, which are `bytes` with
  /// the empty line. An authority in a target overrides Host, so such a head has fields of its own.
  private mutating func headWithFields(
    of other: RequestHead, _ bytes: ArraySlice<UInt8>, _ input: [UInt8], from start: Int, to end: Int
  ) -> RequestHead? {
    guard let line = requestLine, line.version == other.version, line.target.authority == nil,
      other.target.authority == nil, Self.begins(input, from: start, to: end, with: bytes)
    else { return nil }
    (requestLine, mayStartEmpty) = (nil, true)
    return RequestHead(other, method: line.method, target: line.target)
  }

  private static func begins(_ input: [UInt8], from start: Int, to end: Int, with bytes: ArraySlice<UInt8>) -> Bool {
    guard end - start >= bytes.count else { return false }
    return unsafe input.withUnsafeBytes { input in
      unsafe bytes.withUnsafeBytes { bytes in
        guard let kept = bytes.baseAddress, let given = input.baseAddress else { return false }
        return unsafe memcmp(given + start, kept, bytes.count) == 0
      }
    }
  }

  private static func lineFeed(in input: [UInt8], _ start: Int, _ end: Int) -> Int? {
    precondition(start >= 0 && end <= input.count, "the range is in the input")
    guard start < end else { return nil }
    return unsafe input.withUnsafeBytes { input in
      guard let first = input.baseAddress else { return nil }
      let found = unsafe memchr(first + start, Int32(ASCII.lineFeed), end - start)
      return unsafe found.map { unsafe UnsafeRawPointer($0) - first }
    }
  }

  /// Checks the length of the line that begins in `partialLine` and continues with `rest`.
  private func checkLength(_ rest: ArraySlice<UInt8>) throws(HTTPParseError) {
    let length = partialLine.count + rest.count
    if requestLine == nil {
      guard length > limits.requestLineBytes + 2 else { return }
      // 414 means that the target is too long. Without a space so far, there is no target.
      let limit = limits.requestLineBytes
      let more = max(0, limit - partialLine.count)
      guard partialLine.prefix(limit).contains(ASCII.space) || rest.prefix(more).contains(ASCII.space) else {
        throw .malformed(.requestLine)
      }
      throw .requestLineTooLong(limit: limits.requestLineBytes)
    } else {
      guard fieldBytes + length <= limits.headBytes + 2 else { throw .headTooLarge(limit: limits.headBytes) }
    }
  }

  /// Parses one line, including its CRLF. Returns the head at the empty line.
  private mutating func parse(_ lineAndEnd: ArraySlice<UInt8>) throws(HTTPParseError) -> RequestHead? {
    let line = lineAndEnd.dropLast(2)
    guard lineAndEnd.count >= 2, lineAndEnd[lineAndEnd.endIndex - 2] == ASCII.carriageReturn else {
      throw .malformed(.lineEnd)
    }
    guard let start = requestLine else {
      if line.isEmpty, mayStartEmpty {
        mayStartEmpty = false
      } else {
        requestLine = try Self.parseRequestLine(line, after: last?.head.target)
      }
      return nil
    }
    guard line.isEmpty else {
      fieldBytes += lineAndEnd.count
      guard fields.count < limits.fieldCount else { throw .tooManyFields(limit: limits.fieldCount) }
      try FieldLine.parse(line, into: &fields)
      return nil
    }
    let head = try RequestHead(
      method: start.method, target: start.target, version: start.version, fields: HTTPFields(fields))
    (requestLine, fields, fieldBytes, mayStartEmpty) = (nil, FieldSection(), 0, true)
    return head
  }

  private static func parseRequestLine(
    _ line: ArraySlice<UInt8>, after last: RequestTarget?
  ) throws(HTTPParseError) -> (HTTPMethod, RequestTarget, HTTPVersion) {
    guard let firstSpace = line.firstIndex(of: ASCII.space), firstSpace > line.startIndex,
      let secondSpace = line[(firstSpace + 1)...].firstIndex(of: ASCII.space), secondSpace > firstSpace + 1,
      line[..<firstSpace].allSatisfy(ASCII.isTokenByte)
    else { throw .malformed(.requestLine) }
    let version = try version(line[(secondSpace + 1)...])
    let method = HTTPMethod(rawValue: String(decoding: line[..<firstSpace], as: UTF8.self))
    guard method.isKnown else { throw .unknownMethod(method.rawValue) }
    let target = try RequestTarget(parsing: line[(firstSpace + 1)..<secondSpace], method: method, after: last)
    return (method, target, version)
  }

  private static func version(_ text: ArraySlice<UInt8>) throws(HTTPParseError) -> HTTPVersion {
    let start = text.startIndex
    guard text.count == 8, text.prefix(5).elementsEqual("HTTP/".utf8), text[start + 6] == UInt8(ascii: "."),
      ASCII.isDigit(text[start + 5]), ASCII.isDigit(text[start + 7])
    else { throw .malformed(.requestLine) }
    guard text[start + 5] == UInt8(ascii: "1") else { throw .unsupportedVersion }
    return text[start + 7] == UInt8(ascii: "0") ? .http10 : .http11
  }
}
