// Cross-origin resource sharing (Fetch standard, "HTTP CORS protocol"): which pages of other origins may read
// responses.
//
// Cross-Origin-Resource-Policy (Fetch standard) covers a case that CORS doesn't: a page that embeds an image or a sound
// without reading it. A page sends its origin only with requests in CORS mode (`<img crossorigin>`). So a configured
// origin gets "cross-origin" with those, and "same-origin" like everyone else without.

/// What pages of other origins may do.
package struct CrossOriginPolicy: Sendable {
  /// The origins with access.
  package var origins: AllowedOrigins
  /// Request fields that such a page may set, besides the CORS-safelisted ones.
  package var requestFields: [String]
  /// Response fields that such a page may read, besides the CORS-safelisted ones.
  package var exposedFields: [String]
  /// How long a browser may cache the answer to a preflight.
  package var maximumAgeSeconds = 7200

  /// Creates a policy from its parts.
  package init(origins: AllowedOrigins, requestFields: [String], exposedFields: [String]) {
    (self.origins, self.requestFields, self.exposedFields) = (origins, requestFields, exposedFields)
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
    let isPreflight = request.method == .options && request.fields.contains("Access-Control-Request-Method")
    return policy.sharing(response, withRequestOf: request.fields, isPreflight: isPreflight)
  }
}

extension CrossOriginPolicy {
  /// Returns the response with the CORS fields. The request may have been refused before it was complete; `fields` are
  /// those that were read. Without these fields, a page can't distinguish a refusal from a lost connection.
  package func sharing(
    _ shared: HTTPResponse, withRequestOf fields: HTTPFields, isPreflight: Bool = false
  ) -> HTTPResponse {
    var response = shared
    // The response depends on the origin even if this request has none, so caches must distinguish them.
    if origins != .any { response.fields.vary(by: "Origin") }
    guard let origin = fields["Origin"], origins.contains(origin) else { return response }
    response.fields["Cross-Origin-Resource-Policy"] = "cross-origin"
    response.fields["Access-Control-Allow-Origin"] = origins == .any ? "*" : origin
    if isPreflight {
      response.fields["Access-Control-Allow-Methods"] = response.fields["Allow"]
      response.fields["Access-Control-Allow-Headers"] = requestFields.joined(separator: ", ")
      response.fields["Access-Control-Max-Age"] = "\(maximumAgeSeconds)"
    } else {
      response.fields["Access-Control-Expose-Headers"] = exposedFields.joined(separator: ", ")
    }
    return response
  }
}
