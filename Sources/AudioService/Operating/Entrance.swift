import HTTP
import Jobs

/// Answers on the service's address while the service starts, which may take a while if its catalog is large, or if its
/// database isn't there yet: health as usual, and 503 (`starting`) to everything else. `Service.start` takes its place.
package struct Entrance: Sendable {
  let server: HTTPServer
  /// The address that it listens on, for example `127.0.0.1:8080`.
  package let address: String

  /// Begins to listen. Throws if the address can't be used.
  package init(_ configuration: Configuration) throws {
    var http = HTTPServerConfiguration(configuration)
    http.loopCount = 1
    server = HTTPServer(http, responder: StartingResponder(configuration))
    address = "\(try server.start())"
  }
}

extension HTTPServerConfiguration {
  /// The server on the service's address.
  init(_ configuration: Configuration) {
    self.init()
    (host, port) = (configuration.host, configuration.port)
    limits = configuration.httpLimits
    clock = configuration.clock
    client = { [proxies = configuration.trustedProxies] peer in
      Client.connecting(from: peer.host, trusting: proxies)?.key
    }
    responseFields = [
      "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": configuration.corsOrigins.resourcePolicy,
    ]
    refusal = AudioService.refusal(configuration)
  }
}

/// Answers requests before there is a catalog.
struct StartingResponder: HTTPResponder {
  private let refuse: @Sendable (Problem, HTTPFields) -> HTTPResponse
  private let healthPaths: [String]

  init(_ configuration: Configuration) {
    refuse = refusal(configuration)
    // A proxy may strip the prefix.
    healthPaths = ["/healthz", configuration.basePath.absolute("/healthz")]
  }

  private static let health = HTTPResponse(
    .ok, fields: ["Content-Type": "application/json", "Cache-Control": "no-store"],
    body: .bytes(Array(#"{"status":"starting"}"#.utf8)))

  func respond(to request: HTTPRequest) -> HTTPAnswer {
    let asksForHealth = healthPaths.contains(request.target.path) && [.get, .head].contains(request.method)
    return .now(asksForHealth ? Self.health : refuse(startingProblem, request.fields))
  }
}
