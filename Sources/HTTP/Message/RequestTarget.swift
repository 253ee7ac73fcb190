// request-target = origin-form | absolute-form | asterisk-form        (RFC 9112 §3.2)
//   origin-form    "/" path [ "?" query ]
//   absolute-form  "http://" authority [ path ] [ "?" query ]
//   asterisk-form  "*", for OPTIONS alone
// authority-form belongs to CONNECT, which is not supported. A fragment is never sent, so "#" is rejected.

/// One `name=value` of a query, decoded.
package struct QueryItem: Sendable, Equatable {
  /// The decoded name; `+` becomes a space.
  package let name: String
  /// The decoded value; empty if there was no `=`.
  package let value: String

  /// Creates an item from decoded text.
  package init(name: String, value: String) {
    self.name = name
    self.value = value
  }
}

/// The path and query of a request's target, with escapes decoded exactly once. It is a class because every responder
/// reads it.
package final class RequestTarget: Sendable {
  /// The path as sent, with its escapes; `*` for `OPTIONS *`.
  package let path: String
  /// The decoded segments: `/v1/a%2Fb` has two, `v1` and `a/b`; `/` has one, which is empty.
  package let segments: [String]
  /// The query items in the order sent, including repeats.
  package let query: [QueryItem]
  /// The host and port of an absolute target.
  let authority: String?

  /// Creates a target with a path that is already split, and with the query and authority of `other`.
  init(path: String, segments: [String], of other: RequestTarget) {
    (self.path, self.segments, query, authority) = (path, segments, other.query, other.authority)
  }

  /// Validates and parses a target. `last`: one whose path is likely to be the same, which then isn't parsed again.
  init(
    parsing target: ArraySlice<UInt8>, method: HTTPMethod, after last: RequestTarget? = nil
  ) throws(HTTPParseError) {
    guard Self.isVisible(target.span) else { throw .malformed(.target) }
    if target.count == 1, target.first == 0x2A {
      guard method == .options else { throw .malformed(.target) }
      (path, segments, query, authority) = ("*", [], [], nil)
      return
    }
    var origin = target
    if target.first == ASCII.slash {
      authority = nil
    } else {
      let (host, rest) = try Self.absolute(target)
      (authority, origin) = (String(decoding: host, as: UTF8.self), rest)
    }
    let mark = origin.firstIndex(of: ASCII.question)
    let pathBytes = origin[..<(mark ?? origin.endIndex)]
    if let last, last.hasPath(pathBytes) {
      (path, segments) = (last.path, last.segments)
      query = try Self.query(origin, after: mark)
      return
    }
    // A backslash isn't allowed in a URI, and browsers treat it as a slash (WHATWG URL).
    guard !pathBytes.contains(ASCII.backslash) else { throw .malformed(.target) }
    path = pathBytes.isEmpty ? "/" : String(decoding: pathBytes, as: UTF8.self)
    segments = try Self.segments(pathBytes)
    query = try Self.query(origin, after: mark)
  }

  /// Whether all bytes are visible ASCII characters, and none begins a fragment. Looks at every byte without stopping,
  /// so that the compiler can look at several at once.
  private static func isVisible(_ target: Span<UInt8>) -> Bool {
    var isVisible = true
    for index in target.indices {
      let byte = target[index]
      isVisible = (byte > 0x20) && (byte < 0x7F) && (byte != 0x23) && isVisible
    }
    return isVisible
  }

  private func hasPath(_ bytes: ArraySlice<UInt8>) -> Bool {
    let (own, bytes) = (path.utf8.span, bytes.span)
    guard own.count == bytes.count else { return false }
    for index in own.indices where own[index] != bytes[index] { return false }
    return true
  }

  private static func absolute(
    _ target: ArraySlice<UInt8>
  ) throws(HTTPParseError) -> (authority: ArraySlice<UInt8>, origin: ArraySlice<UInt8>) {
    if target.prefix(8).equalsIgnoringCase("https://") { throw .misdirected }
    guard target.prefix(7).equalsIgnoringCase("http://") else { throw .malformed(.target) }
    let rest = target.dropFirst(7)
    let end = rest.firstIndex { $0 == ASCII.slash || $0 == ASCII.question } ?? rest.endIndex
    guard RequestHead.isHost(rest[..<end]) else { throw .malformed(.target) }
    return (rest[..<end], rest[end...])
  }

  private static func segments(_ path: ArraySlice<UInt8>) throws(HTTPParseError) -> [String] {
    var segments: [String] = []
    segments.reserveCapacity(6)
    var start = path.startIndex + (path.isEmpty ? 0 : 1)
    while true {
      let end = path[start...].firstIndex(of: ASCII.slash) ?? path.endIndex
      guard let segment = ASCII.percentDecoded(path[start..<end]) else { throw .malformed(.escape) }
      segments.append(segment)
      if end == path.endIndex { return segments }
      start = end + 1
    }
  }

  /// `mark`: the index of the question mark; nil if there is none.
  private static func query(_ target: ArraySlice<UInt8>, after mark: Int?) throws(HTTPParseError) -> [QueryItem] {
    guard let mark else { return [] }
    var items: [QueryItem] = []
    items.reserveCapacity(8)
    var rest = target[(mark + 1)...]
    while !rest.isEmpty {
      let end = rest.firstIndex(of: UInt8(ascii: "&")) ?? rest.endIndex
      let pair = rest[..<end]
      rest = rest[end...].dropFirst()
      if pair.isEmpty { continue }
      let equals = pair.firstIndex(of: UInt8(ascii: "="))
      let value = equals.map { pair[($0 + 1)...] } ?? pair[pair.endIndex...]
      guard let name = ASCII.percentDecoded(pair[..<(equals ?? pair.endIndex)], plusIsSpace: true),
        let value = ASCII.percentDecoded(value, plusIsSpace: true)
      else { throw .malformed(.escape) }
      items.append(QueryItem(name: name, value: value))
    }
    return items
  }
}
