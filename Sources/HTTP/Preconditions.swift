// Conditional requests (RFC 9110 §13). In this order, §13.2.2:
//
//   1. If-Match             strong; fails → 412
//   2. If-Unmodified-Since  only without 1; fails → 412
//   3. If-None-Match        weak; matches → 304 for GET and HEAD, else 412
//   4. If-Modified-Since    only without 3, GET and HEAD; not modified → 304
//   5. If-Range             strong; only with Range, GET; fails → the whole

/// What a representation's validators say to a request's conditions.
enum Precondition: Equatable {
  case proceed
  case notModified
  case failed

  /// Judges conditions 1 to 4.
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

  /// Whether a Range may be served: true without If-Range.
  static func allowsRange(_ request: HTTPRequest, etag: String?, lastModified: HTTPDate?) -> Bool {
    guard let condition = request.fields["If-Range"] else { return true }
    if condition.hasSuffix("\"") { return matches([condition], etag, strong: true) }
    return lastModified != nil && HTTPDate(condition) == lastModified
  }

  /// `*`, or tags by comma; a comma inside the quotes belongs to the tag (§8.8.3).
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
    return tags.filter { !$0.isEmpty }
  }

  private static func matches(_ tags: [String], _ etag: String?, strong: Bool) -> Bool {
    if tags == ["*"] { return true }
    guard let etag else { return false }
    if strong { return !etag.hasPrefix("W/") && tags.contains(etag) }
    return tags.contains { opaque($0) == opaque(etag) }
  }

  private static func opaque(_ tag: String) -> Substring { tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...] }
}

extension HTTPRequest {
  /// Whether `If-Match` forbids a change of what has this tag now (nil: nothing is there). True where the request has
  /// no such condition.
  public func mayChange(etag: String?) -> Bool {
    Precondition(self, etag: etag, lastModified: nil) != .failed
  }
}
