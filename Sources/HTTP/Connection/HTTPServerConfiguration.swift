/// How a server is set up.
package struct HTTPServerConfiguration: Sendable {
  /// An address or a name of this machine.
  package var host = "127.0.0.1"
  /// 0 takes any free port.
  package var port: UInt16 = 8080
  /// Event loops: one per core.
  package var loopCount = ProcessLimits.processors
  /// What a client is allowed.
  package var limits = HTTPLimits()
  /// Which client a connection from an address counts toward; nil exempts it from the limit of each client's
  /// connections. Runs for each connection, where it is accepted: must not block.
  package var client: @Sendable (SocketAddress) -> String? = { $0.host }
  /// Added to every response that lacks a field of that name.
  package var responseFields: HTTPFields = [:]
  /// Told of every request, after the last byte of its answer or when its connection broke. Runs on the loop: must not
  /// block.
  package var onCompleted: (@Sendable (RequestRecord) -> Void)?
  /// Gives the server's own refusals (malformed heads, timeouts, too many connections) their final form. The fields are
  /// the request's, as far as they have come.
  package var refusal: @Sendable (Problem, HTTPFields) -> HTTPResponse = { problem, _ in problem.response() }

  /// The defaults.
  package init() {}
}

/// What an access log says of a request.
package struct RequestRecord: Sendable {
  let request: HTTPRequest?
  /// Nil where the client went away before there was an answer.
  package let status: HTTPStatus?
  /// Content, without framing.
  package let bytesReceived: Int64
  /// Everything sent: head, framing and content.
  package let bytesSent: Int64
  /// From the whole head to the last byte of the answer.
  package let seconds: Double
  /// Address and port.
  package let peer: String
  /// As in the response's `X-Request-Id`.
  package let requestID: String

  /// Nil where the head was refused.
  package var method: HTTPMethod? { request?.method }
  /// As it was sent; nil where the head was refused.
  package var path: String? { request?.target.path }
  /// The request's `traceparent` (W3C Trace Context), as it came.
  package var traceparent: String? { request?.fields["traceparent"] }
}

/// Counters of a server, for metrics.
package struct ServerStatistics: Sendable {
  /// Open now.
  public internal(set) var openConnections = 0
  /// Since the start.
  public internal(set) var acceptedConnections = 0
  /// Answered 429 or 503, or hung up on, because there were too many.
  public internal(set) var refusedConnections = 0
  /// Heads answered, refused ones included.
  public internal(set) var requests = 0
  /// Responses by the first digit of their status; at 0 those that there was nobody left to take.
  public internal(set) var responses = [Int](repeating: 0, count: 6)
  /// Everything sent: heads, framing and content.
  public internal(set) var bytesSent = 0
  /// Spent on requests, each from its whole head to the last byte of its answer.
  public internal(set) var requestSeconds = 0.0

  /// Those of a server that has done nothing.
  package init() {}
}

/// Why a server could not start.
package enum HTTPServerError: Error, Equatable, Sendable {
  /// The name does not resolve.
  case unknownHost(String)
  /// `bind` or `listen` failed with this errno.
  case cannotListen(host: String, port: UInt16, errno: Int32)
  /// No descriptors for the loops.
  case outOfDescriptors(errno: Int32)
  /// `start` was called before.
  case alreadyStarted
}
