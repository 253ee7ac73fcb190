/// How a server is set up.
public struct HTTPServerConfiguration: Sendable {
  /// An address or a name of this machine.
  public var host = "127.0.0.1"
  /// 0 takes any free port.
  public var port: UInt16 = 8080
  /// Event loops: one per core.
  public var loopCount = ProcessLimits.processors
  /// What a client is allowed.
  public var limits = HTTPLimits()
  /// Which client a connection from an address counts toward; nil exempts it from the limit of each client's
  /// connections. Runs for each connection, where it is accepted: must not block.
  public var client: @Sendable (SocketAddress) -> String? = { $0.host }
  /// Added to every response that lacks a field of that name.
  public var responseFields: HTTPFields = [:]
  /// Told of every request, after the last byte of its answer or when its connection broke. Runs on the loop: must not
  /// block.
  public var onCompleted: (@Sendable (RequestRecord) -> Void)?
  /// Gives the server's own refusals (malformed heads, timeouts, too many connections) their final form. The fields are
  /// the request's, as far as they have come.
  public var refusal: @Sendable (Problem, HTTPFields) -> HTTPResponse = { problem, _ in problem.response() }

  /// The defaults.
  public init() {}
}

/// What an access log says of a request.
public struct RequestRecord: Sendable {
  let request: HTTPRequest?
  /// Nil where the client went away before there was an answer.
  public let status: HTTPStatus?
  /// Content, without framing.
  public let bytesReceived: Int64
  /// Everything sent: head, framing and content.
  public let bytesSent: Int64
  /// From the whole head to the last byte of the answer.
  public let seconds: Double
  /// Address and port.
  public let peer: String
  /// As in the response's `X-Request-Id`.
  public let requestID: String

  /// Nil where the head was refused.
  public var method: HTTPMethod? { request?.method }
  /// As it was sent; nil where the head was refused.
  public var path: String? { request?.target.path }
  /// The request's `traceparent` (W3C Trace Context), as it came.
  public var traceparent: String? { request?.fields["traceparent"] }
}

/// Counters of a server, for metrics.
public struct ServerStatistics: Sendable {
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
  public init() {}
}

/// Why a server could not start.
public enum HTTPServerError: Error, Equatable, Sendable {
  /// The name does not resolve.
  case unknownHost(String)
  /// `bind` or `listen` failed with this errno.
  case cannotListen(host: String, port: UInt16, errno: Int32)
  /// No descriptors for the loops.
  case outOfDescriptors(errno: Int32)
  /// `start` was called before.
  case alreadyStarted
}
