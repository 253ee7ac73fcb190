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

  private let tree: RouteTree
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
    tree = RouteTree(routes)
  }

  /// Answers a request; any error thrown becomes a response through `problem`.
  package func respond(to request: HTTPRequest) -> HTTPAnswer {
    if request.target.path == "*" { return .now(Self.options(Set(routes.map(\.method)))) }
    guard let node = tree.node(of: request.target) else {
      return attempt(request) { try unrouted(.notFound, request) }
    }
    guard let endpoint = tree.endpoint(node, request.method) else {
      let methods = Set(tree.endpoints(node).map(\.method))
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

/// Routes as a tree of path segments. The literals of all nodes are in one list, so that a search copies none.
private struct RouteTree: Sendable {
  private struct Node: Sendable {
    /// Its place among the literals of all nodes. Few and short, so a linear search beats hashing.
    var literals = 0..<0
    var parameter: Int?
  }
  private struct Literal: Sendable {
    let segment: String
    let node: Int
  }
  private var nodes: [Node] = []
  private var literals: [Literal] = []
  private var endpoints: [[Endpoint]] = []

  /// Creates a tree. No two routes may have the same method and pattern.
  init(_ routes: [Route]) {
    var literalsOfNodes: [[Literal]] = []
    func addNode() -> Int {
      nodes.append(Node())
      literalsOfNodes.append([])
      endpoints.append([])
      return nodes.count - 1
    }
    _ = addNode()
    for route in routes {
      var node = 0
      var names: [(name: String, position: Int)] = []
      let segments = route.pattern.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map(String.init)
      for (position, segment) in segments.enumerated() {
        if segment.hasPrefix("{"), segment.hasSuffix("}") {
          names.append((String(segment.dropFirst().dropLast()), position))
          let next = nodes[node].parameter ?? addNode()
          nodes[node].parameter = next
          node = next
        } else if let known = literalsOfNodes[node].first(where: { $0.segment == segment }) {
          node = known.node
        } else {
          let next = addNode()
          literalsOfNodes[node].append(Literal(segment: segment, node: next))
          node = next
        }
      }
      precondition(!endpoints[node].contains { $0.method == route.method }, "\(route.pattern) stands twice")
      endpoints[node].append(Endpoint(route, names))
    }
    for node in nodes.indices {
      nodes[node].literals = literals.count..<literals.count + literalsOfNodes[node].count
      literals += literalsOfNodes[node]
    }
  }

  /// Returns the node that matches a path; nil if none does.
  func node(of target: RequestTarget) -> Int? {
    let segments = target.segments
    return find(segments.span, 0, 0)
  }

  /// Returns the node that matches a path from a segment on. Tries a literal before a parameter, and backtracks if the
  /// literal leads nowhere.
  private func find(_ segments: Span<String>, _ index: Int, _ node: Int) -> Int? {
    guard index < segments.count else { return endpoints[node].isEmpty ? nil : node }
    let literals = literals.span
    for literal in nodes[node].literals where literals[literal].segment == segments[index] {
      if let found = find(segments, index + 1, literals[literal].node) { return found }
    }
    guard let next = nodes[node].parameter, !segments[index].isEmpty else { return nil }
    return find(segments, index + 1, next)
  }

  /// The endpoints of a node, one for each method.
  func endpoints(_ node: Int) -> [Endpoint] { endpoints[node] }

  /// Returns the endpoint of a node for a method.
  func endpoint(_ node: Int, _ method: HTTPMethod) -> Endpoint? {
    for endpoint in endpoints[node] where endpoint.method == method { return endpoint }
    return method == .head ? endpoint(node, .get) : nil
  }
}
