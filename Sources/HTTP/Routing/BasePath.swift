// A service may be reached under a path of another server, such as https://example.com/audio/. The proxy there either
// forwards that prefix or strips it:
//
//   a path that begins with the prefix    is served without it; a bare `/audio` redirects to `/audio/`, so that the
//                                         relative addresses in the page resolve below it
//   any other path                        is served as is: the proxy stripped the prefix, or makes its own request
//                                         (`/healthz`)
//   Location and Link of a response,      always get the prefix, even if the request came without it, since the
//   the type of a problem                 client is in front of the proxy
//
// So responders never see or write the prefix. Other bodies that contain absolute paths use `absolute(_:)`.

/// Where a service is mounted on its server: "" for the whole server, or a path such as `/audio`.
package struct BasePath: Sendable, Equatable {
  /// The path without a trailing slash; empty for the root.
  package let text: String
  let segments: [String]

  /// The whole server.
  package static let root = BasePath(segments: [])

  private init(segments: [String]) {
    self.segments = segments
    text = segments.map { "/" + $0 }.joined()
  }

  /// Parses `/`, `/audio`, `/audio/`, or `/tools/audio`. Fails if the text doesn't begin with a slash, or if a segment
  /// is empty, a dot segment, or contains anything other than letters, digits, and `-._~`, which mean the same with and
  /// without escapes.
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

  /// Returns the path that clients in front of the proxy use for `path`, which begins with a slash.
  package func absolute(_ path: String) -> String { text + path }

  /// The first segment, which must not collide with a path of the service's own.
  package var firstSegment: String? { segments.first }
}

/// Serves another responder below a base path.
package final class BasePathResponder: HTTPResponder {
  private let base: BasePath
  private let next: any HTTPResponder

  /// Serves `next` at `base`.
  package init(_ base: BasePath, _ next: any HTTPResponder) { (self.base, self.next) = (base, next) }

  /// Returns the response of `next` to the request without the prefix.
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
  /// Returns the response as clients in front of the proxy must see it. A problem document must not be compressed yet.
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
      // Every link is `<target>; …`, and no target contains a `<` (RFC 8288 §3).
      let parts = links.split(separator: "<", omittingEmptySubsequences: false)
      response.fields["Link"] =
        parts.prefix(1).joined()
        + parts.dropFirst().map { "<" + (Self.isAbsolutePath($0) ? text : "") + $0 }.joined()
    }
    return response
  }

  /// Whether the text is a path, as opposed to an address with a host (`//host/…`).
  private static func isAbsolutePath(_ text: some StringProtocol) -> Bool {
    text.hasPrefix("/") && !text.hasPrefix("//")
  }
}

extension RequestTarget {
  /// Returns the target without these leading segments, or nil if it doesn't begin with them. Its path is empty if
  /// nothing is left, not even a slash.
  fileprivate func removing(_ prefix: [String]) -> RequestTarget? {
    guard !prefix.isEmpty, segments.starts(with: prefix) else { return nil }
    // Counts slashes, because the path is as sent, and its escaped segments may be longer than the decoded ones.
    let slashes = path.utf8.indices.filter { path.utf8[$0] == ASCII.slash }
    let rest = slashes.count > prefix.count ? path[slashes[prefix.count]...] : ""
    let left = Array(segments.dropFirst(prefix.count))
    return RequestTarget(path: String(rest), segments: left.isEmpty ? [""] : left, of: self)
  }
}

extension HTTPRequest {
  /// Returns the same request with another target.
  fileprivate func retargeted(_ target: RequestTarget) -> HTTPRequest {
    HTTPRequest(retargeting: self, to: target)
  }
}
