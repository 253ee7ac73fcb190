// A service on loopback is within reach of every web page that its user opens: by a name of the page's own that
// resolves to 127.0.0.1 (DNS rebinding), or by a form that posts across sites (CSRF). The first shows in Host, the second
// in Origin, and no page can set either.

/// Refuses requests that were sent to another name than the service's, and changes that a foreign page asks for.
public final class HostGuard: HTTPResponder {
  private let names: Set<String>
  private let origins: AllowedOrigins
  private let next: any HTTPResponder

  /// A guard in front of `next`. `names`: what the service is called besides the loopback names; a port with one is
  /// ignored. `origins`: pages that may change things though they come from elsewhere.
  public init(names: Set<String>, origins: AllowedOrigins, _ next: any HTTPResponder) {
    self.names = Set(names.compactMap { Authority($0, defaultPort: 80)?.host })
    self.origins = origins
    self.next = next
  }

  /// Whether a text can stand in a Host field.
  public static func isName(_ text: String) -> Bool { Authority(text, defaultPort: 80) != nil }

  /// Whether an address to listen on is reached from this machine alone.
  public static func isLoopback(_ host: String) -> Bool {
    Authority(host.contains(":") ? "[\(host)]" : host, defaultPort: 80)?.isLoopback ?? false
  }

  /// 403 `host_not_allowed` or `origin_not_allowed`, or else the other's response.
  public func respond(to request: HTTPRequest) -> HTTPAnswer {
    if let problem = objection(to: request) { .now(problem.response()) } else { next.respond(to: request) }
  }

  private func objection(to request: HTTPRequest) -> Problem? {
    // In absolute form the target names the host, whatever Host says (RFC 9112 §3.2.2). HTTP/1.0 may name none: no
    // browser speaks it.
    let isUsual = request.target.authority == nil && Self.isLoopback(request.fields.bytes(of: "Host"))
    if isUsual, request.method.isSafe { return nil }
    let host = request.target.authority ?? request.fields["Host"]
    guard host.map({ isUsual || isOwn($0) }) ?? true else {
      return Problem(
        .forbidden, code: "host_not_allowed",
        detail:
          "This service is not called “\(host ?? "")”; loopback names are served, and those it was configured with.",
        parameter: "Host")
    }
    guard !request.method.isSafe, request.fields.contains("Origin") else { return nil }
    let origin = request.fields["Origin"] ?? ""
    guard !origins.contains(origin), !(host.map { isOwn(origin, to: $0) } ?? false) else { return nil }
    return Problem(
      .forbidden, code: "origin_not_allowed",
      detail: "Pages of “\(origin)” may not change anything here; an origin must be configured to be let in.",
      parameter: "Origin")
  }

  /// The two names of nearly every request, known without taking them apart.
  private static func isLoopback(_ host: ArraySlice<UInt8>?) -> Bool {
    guard let name = host?.prefix(while: { $0 != ASCII.colon }) else { return false }
    return name.elementsEqual("127.0.0.1".utf8) || name.elementsEqual("localhost".utf8)
  }

  private func isOwn(_ host: String) -> Bool { Authority(host, defaultPort: 80).map(isOwn) ?? false }

  private func isOwn(_ authority: Authority) -> Bool { authority.isLoopback || names.contains(authority.host) }

  /// Whether a page was served by this service itself: under the name that the request is sent to, or under another of
  /// its names at the same port.
  private func isOwn(_ text: String, to host: String) -> Bool {
    guard let origin = Origin(text), let authority = Authority(host, defaultPort: origin.defaultPort) else {
      return false
    }
    return isOwn(origin.authority) && origin.authority.port == authority.port
  }
}
