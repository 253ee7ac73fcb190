// Which pages of other origins may read responses (Fetch standard, "HTTP CORS protocol"), and which may embed them
// without reading them, as `<img>` and `<audio>` do (Cross-Origin-Resource-Policy).
//
//   a configured origin   every response, read and embedded. A page sends its origin only with requests in CORS mode;
//                         without it, the origin of Referer decides about embedding. No page can set either
//   any origin            responses to GET and HEAD with `?token=`, including refusals. Nothing but the address grants
//                         access (there are no cookies), so a page that has it may use it. The response is the same for
//                         everyone, so caches may keep one. For the same reason any page may ask for permission to send
//                         GET and HEAD, with the fields that players set
//
// Tokens exist only with keys. Without keys, every request is served, so a token in the address means nothing and
// shares nothing.

/// What pages of other origins may do.
package struct CrossOriginPolicy: Sendable {
  /// The origins with access.
  package var origins: AllowedOrigins
  /// Whether every page has access to responses to GET and HEAD with `?token=`.
  package var sharesTokens = false
  /// Request fields that a page may set with a token, besides the CORS-safelisted ones.
  package var tokenFields = ["Range", "If-None-Match", "If-Range"]
  /// Request fields that such a page may set, besides the CORS-safelisted ones.
  package var requestFields: [String]
  /// Response fields that such a page may read, besides the CORS-safelisted ones.
  package var exposedFields: [String]
  /// How long a browser may cache the answer to a preflight.
  package var maximumAgeSeconds = 7200

  /// Creates a policy from its parts.
  package init(
    origins: AllowedOrigins, sharesTokens: Bool = false, requestFields: [String], exposedFields: [String]
  ) {
    (self.origins, self.sharesTokens) = (origins, sharesTokens)
    (self.requestFields, self.exposedFields) = (requestFields, exposedFields)
  }
}

extension AllowedOrigins {
  /// The Cross-Origin-Resource-Policy for a request without an origin.
  package var resourcePolicy: String { self == .any ? "cross-origin" : "same-origin" }
}

/// Adds the CORS fields to another responder's responses and answers preflights.
package final class CrossOriginSharing: HTTPResponder {
  private let policy: CrossOriginPolicy
  private let next: any HTTPResponder

  /// Wraps `next`.
  package init(_ policy: CrossOriginPolicy, _ next: any HTTPResponder) {
    (self.policy, self.next) = (policy, next)
  }

  /// Returns the response of `next` with the CORS fields. A preflight is answered with what OPTIONS allows here.
  package func respond(to request: HTTPRequest) -> HTTPAnswer {
    switch next.respond(to: request) {
    case .now(let response): .now(sharing(response, with: request))
    case .later(let work): .later { [self] in sharing(try await work(), with: request) }
    }
  }

  private func sharing(_ response: HTTPResponse, with request: HTTPRequest) -> HTTPResponse {
    let isReading = request.method == .get || request.method == .head
    if policy.sharesTokens, isReading, request.target.query.contains(where: { $0.name == "token" }) {
      return policy.sharingWithAll(response)
    }
    let wanted = request.method == .options ? request.fields["Access-Control-Request-Method"] : nil
    return policy.sharing(response, withRequestOf: request.fields, toSend: wanted)
  }
}

extension CrossOriginPolicy {
  /// Returns the response with the CORS fields. The request may have been refused before it was complete; `fields` are
  /// those that were read. Without these fields, a page can't distinguish a refusal from a lost connection. `wanted`:
  /// the method that a preflight asks for.
  package func sharing(
    _ shared: HTTPResponse, withRequestOf fields: HTTPFields, toSend wanted: String? = nil
  ) -> HTTPResponse {
    var response = shared
    // The response depends on the page even if this request has none, so caches must distinguish them.
    if origins != .any, origins != .only([]) {
      for name in ["Origin", "Referer"] { response.fields.vary(by: name) }
    }
    let origin = fields["Origin"]
    guard origins == .any || origins.contains(origin ?? "") else {
      if origin == nil, origins.contains(embedderOf: fields) {
        response.fields["Cross-Origin-Resource-Policy"] = "cross-origin"
      }
      return permittingTokens(response, toSend: wanted)
    }
    response = sharingWithAll(response)
    if origins != .any { response.fields["Access-Control-Allow-Origin"] = origin }
    return wanted == nil
      ? response : permitting(response.fields["Allow"] ?? "", requestFields, in: response)
  }

  /// Returns the response as one that every page may read and embed.
  fileprivate func sharingWithAll(_ shared: HTTPResponse) -> HTTPResponse {
    var response = shared
    response.fields["Access-Control-Allow-Origin"] = "*"
    response.fields["Cross-Origin-Resource-Policy"] = "cross-origin"
    response.fields["Access-Control-Expose-Headers"] = exposedFields.joined(separator: ", ")
    return response
  }

  /// Lets any page send GET and HEAD, which it can't read without a token.
  private func permittingTokens(_ shared: HTTPResponse, toSend wanted: String?) -> HTTPResponse {
    guard sharesTokens, wanted == "GET" || wanted == "HEAD" else { return shared }
    var response = shared
    response.fields["Access-Control-Allow-Origin"] = "*"
    return permitting("GET, HEAD", tokenFields, in: response)
  }

  private func permitting(_ methods: String, _ names: [String], in shared: HTTPResponse) -> HTTPResponse {
    var response = shared
    response.fields["Access-Control-Allow-Methods"] = methods
    response.fields["Access-Control-Allow-Headers"] = names.joined(separator: ", ")
    response.fields["Access-Control-Max-Age"] = "\(maximumAgeSeconds)"
    response.fields["Access-Control-Expose-Headers"] = nil
    return response
  }
}

extension AllowedOrigins {
  /// Whether the page that Referer names has one of these origins. Pages send the whole address or only the origin and
  /// a slash.
  fileprivate func contains(embedderOf fields: HTTPFields) -> Bool {
    guard let referrer = fields["Referer"], let scheme = referrer.firstRange(of: "://") else { return false }
    return contains(String(referrer[..<(referrer[scheme.upperBound...].firstIndex(of: "/") ?? referrer.endIndex)]))
  }
}
