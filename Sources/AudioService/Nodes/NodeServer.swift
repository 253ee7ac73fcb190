// A node's port for the other nodes. To those that have the cluster's secret (NodeSecret), it serves the routes that
// show a waveform, for recordings whose waveform a job on this node writes. Any other request gets 403 without content,
// or 404 if it is signed.

import HTTP
import Jobs
import Storage

/// Serves the waveforms that jobs on this node write to the other nodes.
struct NodeServer: Sendable {
  private let server: HTTPServer
  private let settings: NodeSettings

  /// The maximum number of connections.
  static let connectionLimit = 256

  /// Returns nil if no other node is to reach this one.
  init?(_ context: Context) {
    let cluster = context.configuration.cluster
    guard let secret = cluster.nodes.secret, let listen = cluster.nodes.listen, cluster.role.runsJobs else {
      return nil
    }
    settings = cluster.nodes
    var http = HTTPServerConfiguration()
    (http.host, http.port, http.loopCount) = (listen.host, listen.port, 1)
    http.limits.connectionCount = Self.connectionLimit
    http.refusal = { problem, _ in HTTPResponse(problem.status) }
    server = HTTPServer(http, responder: NodeResponder(secret: secret, context: context))
  }

  /// Starts to listen. Returns the address by which other nodes find it, `HOST:PORT`, and whether it is one that only
  /// this machine can reach. Throws `HTTPServerError`.
  func start() throws(HTTPServerError) -> (address: String, isLocal: Bool)? {
    let bound = try server.start()
    guard let address = settings.announced(port: bound.port) else { return nil }
    // A name may stand for an address of this machine.
    return (address, NodeSettings.isLocal(settings.address?.host ?? bound.host))
  }

  /// Stops, and ends what hasn't been sent after a second.
  func stop() async { await server.stop(within: 1) }
}

/// What the port of the other nodes serves.
struct NodeResponder: HTTPResponder {
  private let secret: NodeSecret
  private let time: @Sendable () -> Timestamp
  private let router: Router

  init(secret: NodeSecret, context: Context) {
    (self.secret, time) = (secret, { context.time })
    let shown = routes(context).filter(\.showsWaveform).map { route in
      Route(
        .get, route.pattern,
        atOnce: { request, parameters in
          let id = parameters["id"]
          guard let recording = RecordingID(id), let job = context.runner.live.job(writing: recording),
            job.writer != nil, job.address == nil
          else { throw ServiceError.noSuchRecording(id) }
          // The node that asks has checked that its client may read the recording.
          return try route.handler(request, parameters, Caller(of: job.tenant, request, context))
        })
    }
    router = Router(routes: shown) { error, _ in
      error is RoutingError ? HTTPResponse(.notFound) : problem(for: error).response()
    }
  }

  func respond(to request: HTTPRequest) -> HTTPAnswer {
    guard secret.permits(request, at: time()) else { return .now(HTTPResponse(.forbidden)) }
    return router.respond(to: request)
  }
}
