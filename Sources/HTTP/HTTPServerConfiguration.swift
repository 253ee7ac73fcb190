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
  /// Added to every response that lacks a field of that name.
  public var responseFields: HTTPFields = [:]
  /// Told of every request, after the last byte of its answer or when its connection broke. Runs on the loop: must not
  /// block.
  public var onCompleted: (@Sendable (RequestRecord) -> Void)?
  /// Gives the server's own refusals (malformed heads, timeouts, too many connections) their final form.
  public var problem: @Sendable (Problem) -> Problem = { $0 }

  /// The defaults.
  public init() {}
}

/// What an access log says of a request.
public struct RequestRecord: Sendable {
  /// Nil where the head was refused.
  public let method: HTTPMethod?
  /// As it was sent; nil where the head was refused.
  public let path: String?
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
  /// The request's `traceparent` (W3C Trace Context), as it came.
  public let traceparent: String?
}

/// Counters of a server, for metrics.
public struct ServerStatistics: Sendable {
  /// Open now.
  public let openConnections: Int
  /// Since the start.
  public let acceptedConnections: Int
  /// Answered 503, or hung up on, because there were too many.
  public let refusedConnections: Int
  /// Heads answered, refused ones included.
  public let requests: Int

  init(openConnections: Int, acceptedConnections: Int, refusedConnections: Int, requests: Int) {
    self.openConnections = openConnections
    self.acceptedConnections = acceptedConnections
    self.refusedConnections = refusedConnections
    self.requests = requests
  }

  /// Those of a server that has done nothing.
  public init() { self.init(openConnections: 0, acceptedConnections: 0, refusedConnections: 0, requests: 0) }
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
