// A service may be reached under a path of another server's: https://example.com/audio/. Its proxy passes that prefix
// on or removes it:
//
//   a path that begins with the prefix    is served without it; a stray `/audio` goes to `/audio/`, so that the
//                                         relative addresses in the page lead below it
//   any other path                        is served as it is: the proxy has removed the prefix, or asks for itself
//                                         (`/healthz`)
//   Location and Link of a response,      begin with the prefix whether the request had it or not, since the client is
//   the type of a problem                 in front of the proxy
//
// So responders never see the prefix and never write it. Other bodies with absolute paths use `absolute(_:)`.

/// Where a service is on its server: "" for the whole server, or a path such as `/audio`.
package struct BasePath: Sendable, Equatable {
  /// Without a slash at its end; empty for the root.
  package let text: String
  let segments: [String]

  /// The whole server.
  package static let root = BasePath(segments: [])

  private init(segments: [String]) {
    self.segments = segments
    text = segments.map { "/" + $0 }.joined()
  }

  /// `/`, `/audio`, `/audio/` or `/tools/audio`: nil where the text doesn't begin with a slash, or a segment is empty,
  /// a dot segment or anything else than letters, digits and `-._~`, which mean the same with and without escapes.
  package init?(_ text: String) {
    guard text.hasPrefix("/") else { return nil }
    var segments = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    if segments.last == "" { segments.removeLast() }
    let areGood = segments.allSatisfy { segment in
      !["", ".", ".."].contains(segment)
        && segment.utf8.allSatisfy { ASCII.isLetterOrDigit($0) || "-._~".utf8.contains($0) }
    }
    guard areGood else { return nil }
    self.init(segments: segments)
  }

  /// The path that clients in front of the proxy use for `path`, which begins with a slash.
  package func absolute(_ path: String) -> String { text + path }

  /// The first segment: what the service itself must not be asked for under.
  package var firstSegment: String? { segments.first }
}

/// Serves another responder below a base path.
package final class BasePathResponder: HTTPResponder {
  private let base: BasePath
  private let next: any HTTPResponder

  /// `next`, at `base`.
  package init(_ base: BasePath, _ next: any HTTPResponder) { (self.base, self.next) = (base, next) }

  /// The other's response to the request without the prefix.
  package func respond(to request: HTTPRequest) -> HTTPAnswer {
    var inner = request
    if let target = request.target.removing(base.segments) {
      if target.path.isEmpty, request.method.isSafe {
        return .now(HTTPResponse(.permanentRedirect, fields: ["Location": base.absolute("/")]))
      }
      inner = request.retargeted(target)
    }
    switch next.respond(to: inner) {
    case .now(let response): return .now(base.prefixing(response))
    case .later(let work): return .later { [base] in base.prefixing(try await work()) }
    }
  }
}

extension BasePath {
  /// The response as clients in front of the proxy must see it. Its problem document, if it is one, is not compressed.
  package func prefixing(_ response: HTTPResponse) -> HTTPResponse {
    guard self != .root else { return response }
    var response = response
    if response.fields["Content-Type"] == Problem.contentType, case .bytes(let document) = response.body {
      response.body = .bytes(Problem.prefixingType(of: document, with: text))
    }
    if let location = response.fields["Location"], Self.isAbsolutePath(location) {
      response.fields["Location"] = absolute(location)
    }
    if let links = response.fields["Link"] {
      // Every link is `<target>; …`, and no target has a `<` of its own (RFC 8288 §3).
      let parts = links.split(separator: "<", omittingEmptySubsequences: false)
      response.fields["Link"] =
        parts.prefix(1).joined()
        + parts.dropFirst().map { "<" + (Self.isAbsolutePath($0) ? text : "") + $0 }.joined()
    }
    return response
  }

  /// Not an address with a host (`//host/…`).
  private static func isAbsolutePath(_ text: some StringProtocol) -> Bool {
    text.hasPrefix("/") && !text.hasPrefix("//")
  }
}

extension RequestTarget {
  /// The same target without these segments in front; nil where it doesn't begin with them. Its path is empty where
  /// nothing is left, not even a slash.
  fileprivate func removing(_ prefix: [String]) -> RequestTarget? {
    guard !prefix.isEmpty, segments.starts(with: prefix) else { return nil }
    // By slashes: the path is as it was sent, so its segments may be longer than they mean.
    let slashes = path.utf8.indices.filter { path.utf8[$0] == ASCII.slash }
    let rest = slashes.count > prefix.count ? path[slashes[prefix.count]...] : ""
    let left = Array(segments.dropFirst(prefix.count))
    return RequestTarget(path: String(rest), segments: left.isEmpty ? [""] : left, of: self)
  }
}

extension HTTPRequest {
  /// The same request for another target.
  fileprivate func retargeted(_ target: RequestTarget) -> HTTPRequest {
    HTTPRequest(retargeting: self, to: target)
  }
}
