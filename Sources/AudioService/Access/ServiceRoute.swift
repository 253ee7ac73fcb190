import HTTP

/// Serves one route of the API for a caller whom the route's rule has admitted.
typealias ServiceHandler = @Sendable (HTTPRequest, PathParameters, Caller) throws -> HTTPAnswer

/// A row of the service's table: a route together with the rule that decides who may use it. A handler gets the catalog
/// only from its caller, so neither a route without a rule nor a query without a tenant compiles.
struct ServiceRoute: Sendable {
  let method: HTTPMethod
  /// The path pattern, such as `/v1/recordings/{id}/audio`.
  let pattern: String
  let rule: AccessRule
  let handler: ServiceHandler

  /// Creates a row whose handler may have its response immediately.
  init(_ method: HTTPMethod, _ pattern: String, _ rule: AccessRule, atOnce handler: @escaping ServiceHandler) {
    (self.method, self.pattern, self.rule, self.handler) = (method, pattern, rule, handler)
  }

  /// Creates a row whose handler is always asynchronous.
  init(
    _ method: HTTPMethod, _ pattern: String, _ rule: AccessRule,
    _ handler: @escaping @Sendable (HTTPRequest, PathParameters, Caller) async throws -> HTTPResponse
  ) {
    self.init(method, pattern, rule) { request, parameters, caller in
      .later { try await handler(request, parameters, caller) }
    }
  }

  /// Creates a row for everyone, whose handler can't touch anything that belongs to a tenant.
  init(
    _ method: HTTPMethod, _ pattern: String,
    open handler: @escaping @Sendable (HTTPRequest, PathParameters) throws -> HTTPAnswer
  ) {
    self.init(method, pattern, .everyone) { request, parameters, _ in try handler(request, parameters) }
  }

  /// Creates a row for operators, whose handler can't touch anything that belongs to a tenant.
  init(
    _ method: HTTPMethod, _ pattern: String,
    operators handler: @escaping @Sendable (HTTPRequest, PathParameters) async throws -> HTTPResponse
  ) {
    self.init(method, pattern, .operators) { request, parameters, _ in try await handler(request, parameters) }
  }

  /// Returns the same row with its handler wrapped.
  func wrapping(_ wrap: (@escaping ServiceHandler) -> ServiceHandler) -> ServiceRoute {
    ServiceRoute(method, pattern, rule, atOnce: wrap(handler))
  }
}
