import Synchronization

// Content codings (RFC 9110 §8.4, §12.5.3). One is offered: gzip, for text of more than 1 KiB, where the client accepts
// it. The coded form has bytes of its own and therefore a strong tag of its own: "tag-gzip" beside "tag". Conditions
// accept either for the same state of a resource; only If-Range does not, because ranges are those of the plain form.

/// Codes the responses of another responder as its clients accept.
package final class ContentCoder: HTTPResponder {
  private let next: any HTTPResponder

  /// A coder in front of `next`.
  package init(_ next: any HTTPResponder) { self.next = next }

  /// The other's response, coded where that is worth while.
  package func respond(to request: HTTPRequest) -> HTTPAnswer {
    let answer = next.respond(to: request)
    // What a cache may keep is a representation, which has said already what it varies by.
    if request.isPlain { return answer }
    switch answer {
    case .now(let response): return .now(response.coded(for: request))
    case .later(let work): return .later { try await work().coded(for: request) }
    }
  }
}

enum ContentCoding {
  /// Shorter content gains nothing that the reader would notice.
  static let leastBytes: Int64 = 1024
  /// Content of this length is coded at once, in half a millisecond at the most; more is coded as the client takes it.
  static let mostBytesAtOnce: Int64 = 64 * 1024
  private static let tagSuffix = "-gzip\""

  /// Whether content of a media type gets smaller by coding.
  static func isWorthwhile(_ contentType: String) -> Bool {
    // Most answers are this; taking a media type apart costs as much as parsing a head.
    if contentType == "application/json" { return true }
    let type = contentType.split(separator: ";").first?.trimmingBlanks().lowercased() ?? ""
    // Events are sent as they come; a coder would hold them back until it has a block of them.
    if type == "text/event-stream" { return false }
    return type.hasPrefix("text/") || type.hasSuffix("+json") || type.hasSuffix("+xml")
      || ["application/json", "application/yaml", "application/javascript"].contains(type)
  }

  /// Whether so many bytes in memory are coded in one go.
  static func isCodedAtOnce(_ count: Int64) -> Bool { count > leastBytes && count <= mostBytesAtOnce }

  /// The tag of the coded form; weak ones say nothing about bytes and stay.
  static func tag(_ etag: String) -> String {
    etag.hasPrefix("W/") || etag.hasSuffix(tagSuffix) ? etag : etag.dropLast() + tagSuffix
  }

  /// Whether a request takes gzip, and not rather the plain form.
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
  /// Adds a name to `Vary` that is not there yet.
  mutating func vary(by name: String) {
    guard !list("Vary", contains: name) else { return }
    self["Vary"] = self["Vary"].map { "\($0), \(name)" } ?? name
  }
}

extension HTTPResponse {
  /// The response with its content coded, where the request accepts it and it is worth while.
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
  /// Nil for content that is not in memory: files of a disk are sent as they are.
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

/// The state of a stream that is coded: its one producer asks for one piece at a time.
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
