import Terms

/// The settings of a server.
package struct HTTPServerConfiguration: Sendable {
  /// An address or name of this machine.
  package var host = "127.0.0.1"
  /// The port; 0 picks any free port.
  package var port: UInt16 = 8080
  /// Number of event loops; one per core by default.
  package var loopCount = ProcessLimits.processors
  /// The limits for clients.
  package var limits = HTTPLimits()
  /// What connections time out by.
  package var clock = Clock.system
  /// Returns the client that a connection from this address counts toward, or nil to exempt it from the limit per
  /// client. Called for each accepted connection, on the loop: must not block.
  package var client: @Sendable (SocketAddress) -> String? = { $0.host }
  /// Fields added to every response that lacks them.
  package var responseFields: HTTPFields = [:]
  /// Called for every request, after the last byte of its answer or when its connection broke. Runs on the loop: must
  /// not block.
  package var onCompleted: (@Sendable (RequestRecord) -> Void)?
  /// Called when an answer's content ends with an error, which its client sees as a broken connection. Runs on the
  /// loop: must not block.
  package var onBrokenOff: (@Sendable (HTTPRequest, any Error) -> Void)?
  /// Turns the server's own refusals (malformed heads, timeouts, too many connections) into responses. The fields are
  /// those of the request, as far as they were received.
  package var refusal: @Sendable (Problem, HTTPFields) -> HTTPResponse = { problem, _ in problem.response() }

  /// Creates the default configuration.
  package init() {}
}

/// A finished request, for an access log.
package struct RequestRecord: Sendable {
  let request: HTTPRequest?
  /// Nil if the client disconnected before there was an answer.
  package let status: HTTPStatus?
  /// Bytes of content received, without framing.
  package let bytesReceived: Int64
  /// All bytes sent: head, framing, and content.
  package let bytesSent: Int64
  /// From the complete head to the last byte of the answer.
  package let seconds: Double
  /// The client's address and port.
  package let peer: String
  /// The response's `X-Request-Id`.
  package let requestID: String

  /// Nil if the head was refused.
  package var method: HTTPMethod? { request?.method }
  /// The path as sent; nil if the head was refused.
  package var path: String? { request?.target.path }
  /// What responders noted about the request; nil if the head was refused.
  package var notes: RequestNotes.Content? { request?.notes.content }
  /// The request's `traceparent` (W3C Trace Context), as received.
  package var traceparent: String? { request?.fields["traceparent"] }
}

/// A server's counters, for metrics.
package struct ServerStatistics: Sendable {
  /// Number of connections open now.
  package internal(set) var openConnections = 0
  /// Connections accepted since the start.
  package internal(set) var acceptedConnections = 0
  /// Connections answered with 429 or 503, or closed unanswered, because there were too many.
  package internal(set) var refusedConnections = 0
  /// Request heads answered, including refused ones.
  package internal(set) var requests = 0
  /// Responses by the first digit of their status; index 0 counts requests whose client left before the answer.
  package internal(set) var responses = [Int](repeating: 0, count: 6)
  /// All bytes sent: heads, framing, and content.
  package internal(set) var bytesSent = 0
  /// Total time spent on requests, each from its complete head to the last byte of its answer.
  package internal(set) var requestSeconds = 0.0

  /// Creates counters at zero.
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
