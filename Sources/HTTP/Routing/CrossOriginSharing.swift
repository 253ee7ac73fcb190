// Cross-origin resource sharing (Fetch standard, "HTTP CORS protocol"): which pages of other origins may read answers.
//
// Cross-Origin-Resource-Policy (Fetch standard) covers what CORS does not ask about: a page that embeds an image or a
// sound without reading it. A page names its origin only with a request in CORS mode (`<img crossorigin>`), so that one
// of the configured origins gets "cross-origin" with those, and "same-origin" like anybody else without.

/// What pages of other origins are allowed.
package struct CrossOriginPolicy: Sendable {
  /// Who.
  package var origins: AllowedOrigins
  /// Request fields that such a page may set besides the harmless ones.
  package var requestFields: [String]
  /// Response fields that it may read besides the harmless ones.
  package var exposedFields: [String]
  /// How long a browser may remember the answer to a preflight.
  package var maximumAgeSeconds = 7200

  /// A policy of these parts.
  package init(origins: AllowedOrigins, requestFields: [String], exposedFields: [String]) {
    (self.origins, self.requestFields, self.exposedFields) = (origins, requestFields, exposedFields)
  }
}

extension AllowedOrigins {
  /// Cross-Origin-Resource-Policy of a response to a request that names no origin.
  package var resourcePolicy: String { self == .any ? "cross-origin" : "same-origin" }
}

/// Adds to another responder's responses what lets pages of other origins read them, and answers their preflights.
package final class CrossOriginSharing: HTTPResponder {
  private let policy: CrossOriginPolicy
  private let next: any HTTPResponder

  /// Sharing in front of `next`.
  package init(_ policy: CrossOriginPolicy, _ next: any HTTPResponder) {
    (self.policy, self.next) = (policy, next)
  }

  /// The other's response with the fields of the protocol. A preflight is answered with what OPTIONS allows here.
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
  /// The response with the fields of the protocol, for a request that may have been refused before it was whole:
  /// `fields` are those that were read. A page that can't read a refusal can't tell it from a lost connection.
  package func sharing(
    _ shared: HTTPResponse, withRequestOf fields: HTTPFields, isPreflight: Bool = false
  ) -> HTTPResponse {
    var response = shared
    // Which page asks decides about the answer even if this request came from none: caches must tell them apart.
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
