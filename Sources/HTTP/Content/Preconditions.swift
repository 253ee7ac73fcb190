// Conditional requests (RFC 9110 §13). In this order, §13.2.2:
//
//   1. If-Match             strong; fails → 412
//   2. If-Unmodified-Since  only without 1; fails → 412
//   3. If-None-Match        weak; matches → 304 for GET and HEAD, else 412
//   4. If-Modified-Since    only without 3, GET and HEAD; not modified → 304
//   5. If-Range             strong; only with Range, GET; fails → the whole

/// What follows from comparing a representation's validators with a request's conditions.
enum Precondition: Equatable {
  case proceed
  case notModified
  case failed

  /// Evaluates conditions 1 to 4.
  init(_ request: HTTPRequest, etag: String?, lastModified: HTTPDate?) {
    let fields = request.fields
    let isRead = request.method == .get || request.method == .head
    if fields.contains("If-Match") {
      guard Self.matches(Self.tags(fields, "If-Match"), etag, strong: true) else {
        self = .failed
        return
      }
    } else if let since = fields["If-Unmodified-Since"].flatMap(HTTPDate.init), let lastModified, lastModified > since {
      self = .failed
      return
    }
    if fields.contains("If-None-Match") {
      let matches = Self.matches(Self.tags(fields, "If-None-Match"), etag, strong: false)
      self = matches ? (isRead ? .notModified : .failed) : .proceed
    } else if isRead, let since = fields["If-Modified-Since"].flatMap(HTTPDate.init), let lastModified,
      lastModified <= since
    {
      self = .notModified
    } else {
      self = .proceed
    }
  }

  /// Whether a range may be served. True without If-Range.
  static func allowsRange(_ request: HTTPRequest, etag: String?, lastModified: HTTPDate?) -> Bool {
    guard let condition = request.fields["If-Range"] else { return true }
    // Ranges refer to the plain form, so the tag of the coded form doesn't match here.
    if condition.hasSuffix("\"") { return condition == etag && !condition.hasPrefix("W/") }
    return lastModified != nil && HTTPDate(condition) == lastModified
  }

  /// Parses `*` or a comma-separated list of tags; a comma inside the quotes belongs to the tag (§8.8.3).
  private static func tags(_ fields: HTTPFields, _ name: String) -> [String] {
    var tags: [String] = []
    for value in fields.values(of: name) {
      var isQuoted = false
      let parts = value.utf8.split(omittingEmptySubsequences: true) { byte in
        if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
        return byte == UInt8(ascii: ",") && !isQuoted
      }
      tags += parts.map { String(decoding: Array($0)[...].trimmingBlanks(), as: UTF8.self) }
    }
    return tags.filter { $0 == "*" || isTag($0) }
  }

  /// Whether the text is `[ "W/" ] DQUOTE *etagc DQUOTE`. Anything else is ignored.
  private static func isTag(_ text: String) -> Bool {
    let bytes = Array(opaque(text).utf8)
    return bytes.count >= 2 && bytes.first == ASCII.quote && bytes.last == ASCII.quote
      && bytes.dropFirst().dropLast().allSatisfy { $0 > 0x20 && $0 != ASCII.quote && $0 != 0x7F }
  }

  /// The tags of the coded and the plain form name the same state of the resource.
  private static func matches(_ tags: [String], _ etag: String?, strong: Bool) -> Bool {
    if tags == ["*"] { return true }
    guard let etag else { return false }
    let names = [etag] + ContentCoding.allCases.map { $0.tag(etag) }
    if strong { return !etag.hasPrefix("W/") && tags.contains(where: names.contains) }
    return tags.contains { tag in names.contains { opaque($0) == opaque(tag) } }
  }

  /// Returns the tag to put in a 304: that of the form the client holds.
  static func tagHeld(by request: HTTPRequest, of etag: String) -> String {
    let held = tags(request.fields, "If-None-Match").map(opaque)
    if held.contains(opaque(etag)) { return etag }
    return ContentCoding.allCases.map { $0.tag(etag) }.first { held.contains(opaque($0)) } ?? etag
  }

  private static func opaque(_ tag: String) -> Substring { tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...] }
}

extension HTTPRequest {
  /// Whether the request has conditions that guard a change.
  package var hasPreconditions: Bool {
    ["If-Match", "If-None-Match", "If-Unmodified-Since"].contains { fields.contains($0) }
  }

  /// Whether `If-Match` permits changing a resource with this current tag (nil: it doesn't exist). True if the request
  /// has no such condition.
  package func mayChange(etag: String?) -> Bool {
    Precondition(self, etag: etag, lastModified: nil) != .failed
  }
}
