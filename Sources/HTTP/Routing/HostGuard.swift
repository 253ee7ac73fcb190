// A service without keys can be attacked by every web page that its user opens: under a name of the page's own that
// resolves to the service's address (DNS rebinding), or with a form that posts across sites (CSRF). The first is
// visible in Host, the second in Origin and Sec-Fetch-Site, and no page can set any of these. The address that the
// service listens on doesn't help: in a container it is 0.0.0.0, while the port is published on loopback.
//
//   Host            an IP literal, a loopback name, or a configured name; otherwise 403. Any name can be made to
//                   resolve to the service, but an address can't
//   Origin          in a request that changes something: the request's own (same host and port; the scheme may be
//                   the proxy's) or a configured one; otherwise 403
//   Sec-Fetch-Site  `cross-site` in a request that changes something: 403 unless its Origin is configured

/// Refuses requests sent to a name that isn't the service's, and changes requested by foreign pages.
package final class HostGuard: HTTPResponder {
  /// Why a request is refused.
  enum Objection {
    /// `setting`: where the name could be allowed.
    case unknownHost(String, setting: String)
    case foreignOrigin(String)
    case foreignSite
  }

  private let names: Set<String>
  private let origins: AllowedOrigins
  private let setting: String
  private let checksHost: Bool
  private let next: any HTTPResponder

  /// Creates a guard in front of `next`. `names`: names of the service besides IP literals and loopback names; a port
  /// is ignored. `origins`: foreign pages that may change things. `setting`: the setting that allows a name, quoted in
  /// the refusal. `checksHost`: whether to check names at all, which a service with keys doesn't need.
  package init(
    names: Set<String>, origins: AllowedOrigins, setting: String = "the allowed hosts", checksHost: Bool = true,
    _ next: any HTTPResponder
  ) {
    self.names = Set(names.compactMap { Authority($0, defaultPort: 80)?.host })
    self.origins = origins
    self.setting = setting
    self.checksHost = checksHost
    self.next = next
  }

  /// Whether a text is valid in a Host field.
  package static func isName(_ text: String) -> Bool { Authority(text, defaultPort: 80) != nil }

  fileprivate static func isOrigin(_ text: String, of request: HTTPRequest) -> Bool {
    (request.target.authority ?? request.fields["Host"]).map { isOwn(text, of: $0) } ?? false
  }

  /// Responds with 403 `host_not_allowed` or `origin_not_allowed`, or else with the response of `next`.
  package func respond(to request: HTTPRequest) -> HTTPAnswer {
    if let objection = objection(to: request) { .now(objection.problem.response()) } else { next.respond(to: request) }
  }

  private func objection(to request: HTTPRequest) -> Objection? {
    // The target of an absolute-form request overrides Host (RFC 9112 §3.2.2). HTTP/1.0 may omit Host; no browser uses
    // it.
    let isUsual = request.target.authority == nil && Self.isLoopback(request.fields.bytes(of: "Host"))
    if isUsual, request.method.isSafe { return nil }
    let host = request.target.authority ?? request.fields["Host"]
    guard !checksHost || host.map({ isUsual || isServed($0) }) ?? true else {
      return .unknownHost(host ?? "", setting: setting)
    }
    return request.method.isSafe ? nil : objection(toChange: request, host: host)
  }

  private func objection(toChange request: HTTPRequest, host: String?) -> Objection? {
    let origin = request.fields.contains("Origin") ? request.fields["Origin"] ?? "" : nil
    if origins == .any || origin.map(origins.contains) ?? false { return nil }
    if let origin, !(host.map { Self.isOwn(origin, of: $0) } ?? false) {
      return .foreignOrigin(origin)
    }
    return request.fields["Sec-Fetch-Site"]?.lowercased() == "cross-site" ? .foreignSite : nil
  }

  /// Recognizes the two hosts of nearly every request without parsing them.
  private static func isLoopback(_ host: ArraySlice<UInt8>?) -> Bool {
    guard let host, host.count >= 9, host.count == 9 || host[host.startIndex + 9] == ASCII.colon else { return false }
    return host.prefix(9).equals("127.0.0.1") || host.prefix(9).equals("localhost")
  }

  private func isServed(_ host: String) -> Bool {
    guard let authority = Authority(host, defaultPort: 80) else { return false }
    return authority.isAddress || authority.isLoopback || names.contains(authority.host)
  }

  /// Whether a page was served from the name and port that the request is sent to. Behind a proxy, the page's scheme is
  /// https, and a Host without a port implies that scheme's default.
  private static func isOwn(_ text: String, of host: String) -> Bool {
    guard let origin = Origin(text) else { return false }
    return origin.authority == Authority(host, defaultPort: origin.defaultPort)
  }
}

extension HTTPRequest {
  /// Whether a text is the origin of the service, as far as the request says: its host and port are those that the
  /// request was sent to, and its scheme may be the proxy's.
  package func isSent(toOrigin text: String) -> Bool { HostGuard.isOrigin(text, of: self) }
}
