import Synchronization

// Content codings (RFC 9110 §8.4, §12.5.3). The only one offered is gzip, for text of more than 1 KiB, if the client
// accepts it. The coded form has different bytes and so needs its own strong tag: "tag-gzip" besides "tag". Conditions
// accept either tag for the same state of a resource, except If-Range, because ranges refer to the plain form.

/// Compresses the responses of another responder if the client accepts it.
package final class ContentCoder: HTTPResponder {
  private let next: any HTTPResponder

  /// Creates a coder for the responses of `next`.
  package init(_ next: any HTTPResponder) { self.next = next }

  /// Returns the response of `next`, compressed if that is worthwhile.
  package func respond(to request: HTTPRequest) -> HTTPAnswer {
    let answer = next.respond(to: request)
    // A request without conditions or codings gets the response as is; a cacheable response already carries its `Vary`.
    if request.isPlain { return answer }
    switch answer {
    case .now(let response): return .now(response.coded(for: request))
    case .later(let work): return .later { try await work().coded(for: request) }
    }
  }
}

enum ContentCoding {
  /// Shorter content gains nothing noticeable.
  static let leastBytes: Int64 = 1024
  /// Content up to this length is compressed at once, in at most half a millisecond; longer content as the client reads
  /// it.
  static let mostBytesAtOnce: Int64 = 64 * 1024
  private static let tagSuffix = "-gzip\""

  /// Whether compression makes content of this media type smaller.
  static func isWorthwhile(_ contentType: String) -> Bool {
    // The most common type first: parsing a media type costs as much as parsing a head.
    if contentType == "application/json" { return true }
    let type = contentType.split(separator: ";").first?.trimmingBlanks().lowercased() ?? ""
    // Events must be sent as they happen; a coder would hold them back until it has a full block.
    if type == "text/event-stream" { return false }
    return type.hasPrefix("text/") || type.hasSuffix("+json") || type.hasSuffix("+xml")
      || ["application/json", "application/yaml", "application/javascript"].contains(type)
  }

  /// Whether content of this length in memory is compressed in one go.
  static func isCodedAtOnce(_ count: Int64) -> Bool { count > leastBytes && count <= mostBytesAtOnce }

  /// Returns the tag of the coded form. Weak tags stay the same, because they don't identify exact bytes.
  static func tag(_ etag: String) -> String {
    etag.hasPrefix("W/") || etag.hasSuffix(tagSuffix) ? etag : etag.dropLast() + tagSuffix
  }

  /// Whether a request accepts gzip and doesn't prefer the plain form.
  static func acceptsGzip(_ request: HTTPRequest) -> Bool {
    guard request.fields.contains("Accept-Encoding") else { return false }
    var (gzip, any, identity): (Int?, Int?, Int?)
    for element in request.fields.list("Accept-Encoding").map(WeightedName.init) {
      switch element.name {
      case "gzip", "x-gzip": gzip = element.weight
      case "*": any = element.weight
      case "identity": identity = element.weight
      default: break
      }
    }
    let wanted = gzip ?? any ?? 0
    return wanted > 0 && wanted >= identity ?? 0
  }
}

extension HTTPFields {
  /// Adds a name to `Vary` unless it is already there.
  mutating func vary(by name: String) {
    guard !list("Vary", contains: name) else { return }
    self["Vary"] = self["Vary"].map { "\($0), \(name)" } ?? name
  }
}

extension HTTPResponse {
  /// Returns the response with its content compressed, if the request accepts that and it is worthwhile.
  func coded(for request: HTTPRequest) -> HTTPResponse {
    guard request.fields.contains("Accept-Encoding") else { return self }
    if let length = body.length, length <= ContentCoding.leastBytes { return self }
    guard !status.forbidsContent, !fields.contains("Content-Encoding"), !fields.contains("Content-Range"),
      let type = fields["Content-Type"], ContentCoding.isWorthwhile(type)
    else { return self }
    var response = self
    response.fields.vary(by: "Accept-Encoding")
    guard ContentCoding.acceptsGzip(request), let coded = body.gzipped() else { return response }
    response.body = coded
    response.fields["Content-Encoding"] = "gzip"
    if let etag = fields["ETag"] { response.fields["ETag"] = ContentCoding.tag(etag) }
    return response
  }
}

extension ResponseBody {
  /// Returns nil for content that isn't in memory: files on disk are sent as they are.
  fileprivate func gzipped() -> ResponseBody? {
    if case .stream(_, let next) = self { return Self.gzipped(next) }
    guard let bytes = bytesAtHand else { return nil }
    guard bytes.count > ContentCoding.mostBytesAtOnce else {
      var stream = GzipStream()
      return .bytes(stream.compress(bytes, isLast: true))
    }
    let rest = Mutex(bytes[...])
    return Self.gzipped {
      rest.withLock { rest in
        let piece = Array(rest.prefix(16 * 1024))
        rest = rest.dropFirst(piece.count)
        return piece.isEmpty ? nil : piece
      }
    }
  }

  private static func gzipped(_ next: @escaping @Sendable () async throws -> [UInt8]?) -> ResponseBody {
    let coder = StreamCoder()
    return .stream(length: nil) {
      while !coder.hasEnded {
        let coded = coder.code(try await next())
        if !coded.isEmpty { return coded }
      }
      return nil
    }
  }
}

/// The state of a compressed stream. A single producer asks for one piece at a time.
private final class StreamCoder: Sendable {
  private struct State: ~Copyable {
    var stream = GzipStream()
    var hasEnded = false
  }
  private let state = Mutex(State())

  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  func code(_ piece: [UInt8]?) -> [UInt8] {
    state.withLock { state in
      state.hasEnded = piece == nil
      return state.stream.compress(piece ?? [], isLast: piece == nil)
    }
  }
}
