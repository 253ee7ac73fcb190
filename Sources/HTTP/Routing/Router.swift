/// Serves one route.
package typealias Handler = @Sendable (HTTPRequest, PathParameters) throws -> HTTPAnswer

/// The decoded values of a pattern's `{names}` in a path.
package struct PathParameters: Sendable {
  fileprivate let endpoint: Endpoint
  fileprivate let target: RequestTarget

  /// The value of a name in the route's pattern. Any other name is a programming error.
  package subscript(_ name: String) -> String {
    guard let position = endpoint.position(of: name) else { preconditionFailure("the pattern has no {\(name)}") }
    return target.segments[position]
  }
}

/// A handler with the positions of its pattern's names in a path.
private final class Endpoint: Sendable {
  let method: HTTPMethod
  let handler: Handler
  private let names: [(name: String, position: Int)]

  init(_ route: Route, _ names: [(name: String, position: Int)]) {
    (method, handler, self.names) = (route.method, route.handler, names)
  }

  func position(of name: String) -> Int? { names.first { $0.name == name }?.position }
}

/// A row of a router's table.
package struct Route: Sendable {
  /// The method served.
  package let method: HTTPMethod
  /// The path pattern, such as `/v1/recordings/{id}/audio`: literal segments, and names that match one segment each.
  package let pattern: String
  let handler: Handler

  /// Creates a row whose handler may have its response immediately.
  package init(_ method: HTTPMethod, _ pattern: String, atOnce handler: @escaping Handler) {
    precondition(pattern.hasPrefix("/"), "a pattern begins with a slash")
    (self.method, self.pattern, self.handler) = (method, pattern, handler)
  }

  /// Creates a row whose handler is always asynchronous.
  package init(
    _ method: HTTPMethod, _ pattern: String,
    _ handler: @escaping @Sendable (HTTPRequest, PathParameters) async throws -> HTTPResponse
  ) {
    self.init(method, pattern, atOnce: { request, parameters in .later { try await handler(request, parameters) } })
  }
}

extension Route {
  /// Returns the same row with its handler wrapped.
  package func wrapping(_ wrap: (@escaping Handler) -> Handler) -> Route {
    Route(method, pattern, atOnce: wrap(handler))
  }
}

/// Why no route serves a request.
package enum RoutingError: Error, Equatable, Sendable {
  /// No pattern matches the path → 404.
  case notFound
  /// The path exists, but only for these methods → 405 with `Allow`.
  case methodNotAllowed(allowed: [HTTPMethod])
}

/// Finds the handler for a request in a tree of path segments. A literal segment takes precedence over a `{name}`; a
/// name never matches an empty segment. GET's handler serves HEAD unless HEAD has its own row; OPTIONS without a row is
/// answered with the allowed methods.
package final class Router: HTTPResponder {
  /// The table, in its original order.
  package let routes: [Route]

  private struct Node: Sendable {
    /// Few and short, so a linear search beats hashing.
    var literals: [(segment: String, node: Int)] = []
    var parameter: Int?
    var endpoints: [Endpoint] = []
  }
  private let nodes: [Node]
  private let unrouted: @Sendable (RoutingError, HTTPRequest) throws -> HTTPAnswer
  private let problem: @Sendable (any Error, HTTPRequest) -> HTTPResponse

  /// Creates a router. `unrouted` answers requests for which there is no route; `problem` turns the error of a handler,
  /// or of `unrouted`, into the response.
  package init(
    routes: [Route],
    unrouted: @escaping @Sendable (RoutingError, HTTPRequest) throws -> HTTPAnswer = { error, _ in throw error },
    problem: @escaping @Sendable (any Error, HTTPRequest) -> HTTPResponse
  ) {
    (self.routes, self.unrouted, self.problem) = (routes, unrouted, problem)
    var nodes = [Node()]
    for route in routes { Self.add(route, to: &nodes) }
    self.nodes = nodes
  }

  private static func add(_ route: Route, to nodes: inout [Node]) {
    var node = 0
    var names: [(name: String, position: Int)] = []
    let segments = route.pattern.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    for (position, segment) in segments.enumerated() {
      let isParameter = segment.hasPrefix("{") && segment.hasSuffix("}")
      let known =
        isParameter ? nodes[node].parameter : nodes[node].literals.first { $0.segment == segment }?.node
      if isParameter { names.append((String(segment.dropFirst().dropLast()), position)) }
      if known == nil {
        nodes.append(Node())
        if isParameter {
          nodes[node].parameter = nodes.count - 1
        } else {
          nodes[node].literals.append((segment, nodes.count - 1))
        }
      }
      node = known ?? nodes.count - 1
    }
    precondition(!nodes[node].endpoints.contains { $0.method == route.method }, "\(route.pattern) stands twice")
    nodes[node].endpoints.append(Endpoint(route, names))
  }

  /// Answers a request; any error thrown becomes a response through `problem`.
  package func respond(to request: HTTPRequest) -> HTTPAnswer {
    if request.target.path == "*" { return .now(Self.options(Set(routes.map(\.method)))) }
    guard let node = find(request.target, 0, 0) else {
      return attempt(request) { try unrouted(.notFound, request) }
    }
    guard let endpoint = endpoint(node, request.method) else {
      let methods = Set(nodes[node].endpoints.map(\.method))
      if request.method == .options { return .now(Self.options(methods)) }
      return attempt(request) { try unrouted(.methodNotAllowed(allowed: Self.allowed(methods)), request) }
    }
    return attempt(request) {
      try endpoint.handler(request, PathParameters(endpoint: endpoint, target: request.target))
    }
  }

  private func attempt(_ request: HTTPRequest, _ body: () throws -> HTTPAnswer) -> HTTPAnswer {
    do {
      let answer = try body()
      guard case .later(let work) = answer else { return answer }
      return .later { [problem] in await Self.finish(work, request, problem) }
    } catch {
      return .now(problem(error, request))
    }
  }

  private static func finish(
    _ work: @Sendable () async throws -> HTTPResponse, _ request: HTTPRequest,
    _ problem: @Sendable (any Error, HTTPRequest) -> HTTPResponse
  ) async -> HTTPResponse {
    do { return try await work() } catch { return problem(error, request) }
  }

  private func endpoint(_ node: Int, _ method: HTTPMethod) -> Endpoint? {
    for endpoint in nodes[node].endpoints where endpoint.method == method { return endpoint }
    return method == .head ? endpoint(node, .get) : nil
  }

  /// Returns the node that matches a path from a segment on. Tries a literal before a parameter, and backtracks if the
  /// literal leads nowhere.
  private func find(_ target: RequestTarget, _ index: Int, _ node: Int) -> Int? {
    guard index < target.segments.count else { return nodes[node].endpoints.isEmpty ? nil : node }
    for literal in nodes[node].literals.indices
    where nodes[node].literals[literal].segment == target.segments[index] {
      if let found = find(target, index + 1, nodes[node].literals[literal].node) { return found }
    }
    guard let next = nodes[node].parameter, !target.segments[index].isEmpty else { return nil }
    return find(target, index + 1, next)
  }

  private static func options(_ methods: Set<HTTPMethod>) -> HTTPResponse {
    HTTPResponse(.noContent, fields: ["Allow": list(allowed(methods))])
  }

  private static func allowed(_ methods: Set<HTTPMethod>) -> [HTTPMethod] {
    var all = methods
    if all.contains(.get) { all.insert(.head) }
    all.insert(.options)
    return all.sorted { $0.rawValue < $1.rawValue }
  }

  static func list(_ methods: [HTTPMethod]) -> String { methods.map(\.rawValue).joined(separator: ", ") }
}
