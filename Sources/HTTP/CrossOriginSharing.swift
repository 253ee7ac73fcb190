// Cross-origin resource sharing (Fetch standard, "HTTP CORS protocol"): which pages of other origins may read answers.

/// What pages of other origins are allowed.
public struct CrossOriginPolicy: Sendable {
  /// Who.
  public var origins: AllowedOrigins
  /// Request fields that such a page may set besides the harmless ones.
  public var requestFields: [String]
  /// Response fields that it may read besides the harmless ones.
  public var exposedFields: [String]
  /// How long a browser may remember the answer to a preflight.
  public var maximumAgeSeconds = 7200

  /// A policy of these parts.
  public init(origins: AllowedOrigins, requestFields: [String], exposedFields: [String]) {
    (self.origins, self.requestFields, self.exposedFields) = (origins, requestFields, exposedFields)
  }
}

/// Adds to another responder's responses what lets pages of other origins read them, and answers their preflights.
public final class CrossOriginSharing: HTTPResponder {
  private let policy: CrossOriginPolicy
  private let next: any HTTPResponder

  /// Sharing in front of `next`.
  public init(_ policy: CrossOriginPolicy, _ next: any HTTPResponder) {
    (self.policy, self.next) = (policy, next)
  }

  /// The other's response with the fields of the protocol. A preflight is answered with what OPTIONS allows here.
  public func respond(to request: HTTPRequest) -> HTTPAnswer {
    switch next.respond(to: request) {
    case .now(let response): .now(sharing(response, with: request))
    case .later(let work): .later { [self] in sharing(try await work(), with: request) }
    }
  }

  private func sharing(_ shared: HTTPResponse, with request: HTTPRequest) -> HTTPResponse {
    var response = shared
    // Which page asks decides about the answer even where this request came from none: caches must tell them apart.
    if policy.origins != .any { response.fields.vary(by: "Origin") }
    guard let origin = request.fields["Origin"], policy.origins.contains(origin) else { return response }
    response.fields["Access-Control-Allow-Origin"] = policy.origins == .any ? "*" : origin
    if request.method == .options, request.fields.contains("Access-Control-Request-Method") {
      response.fields["Access-Control-Allow-Methods"] = response.fields["Allow"]
      response.fields["Access-Control-Allow-Headers"] = policy.requestFields.joined(separator: ", ")
      response.fields["Access-Control-Max-Age"] = "\(policy.maximumAgeSeconds)"
    } else {
      response.fields["Access-Control-Expose-Headers"] = policy.exposedFields.joined(separator: ", ")
    }
    return response
  }
}
