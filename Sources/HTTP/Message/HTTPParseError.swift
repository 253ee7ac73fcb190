/// Why a request's head was refused. Each is answered with its `status` and the connection is closed: after a head
/// that is not understood nothing on the connection can be trusted to start where it seems to.
package enum HTTPParseError: Error, Equatable, Sendable {
  /// A rule of the grammar is broken → 400.
  case malformed(Fault)
  /// → 414
  case requestLineTooLong(limit: Int)
  /// → 431
  case headTooLarge(limit: Int)
  /// → 431
  case tooManyFields(limit: Int)
  /// A method this server does not know → 501.
  case unknownMethod(String)
  /// A major version other than 1 → 505.
  case unsupportedVersion
  /// A target of https, which belongs on a connection with TLS (RFC 9110 §7.4) → 421.
  case misdirected
  /// A transfer coding in front of chunked → 501.
  case unsupportedTransferCoding
  /// An expectation other than 100-continue → 417.
  case unsupportedExpectation
  /// The head did not arrive in time → 408.
  case timedOut

  /// What was wrong in a malformed head.
  package enum Fault: String, Sendable {
    /// Not `METHOD SP target SP HTTP/d.d`.
    case requestLine = "request line"
    /// No valid target.
    case target = "the target is neither a path nor an http URL, or has what must be escaped (%XX) in them"
    /// A broken or NUL escape in a target, or one of what is not UTF-8.
    case escape = "an escape in the target is not %XX, is NUL or not UTF-8; % itself is written %25"
    /// A line that does not end in CRLF.
    case lineEnd = "line end"
    /// An empty name, a byte that is no token, a blank before the colon, or no colon.
    case fieldName = "field name"
    /// A control byte in a value.
    case fieldValue = "field value"
    /// A line that begins with a blank.
    case obsoleteFolding = "obsolete line folding"
    /// None, several, or an invalid one.
    case host = "Host"
    /// Not one plain number, or one too large to count.
    case contentLength = "Content-Length"
    /// More than one.
    case contentType = "Content-Type"
    /// Not exactly `chunked`, or in HTTP/1.0, or beside Content-Length.
    case transferEncoding = "Transfer-Encoding"
  }

  /// The status it is answered with.
  package var status: HTTPStatus {
    switch self {
    case .malformed: .badRequest
    case .requestLineTooLong: .uriTooLong
    case .headTooLarge, .tooManyFields: .headerFieldsTooLarge
    case .unknownMethod, .unsupportedTransferCoding: .notImplemented
    case .unsupportedVersion: .versionNotSupported
    case .misdirected: .misdirectedRequest
    case .unsupportedExpectation: .expectationFailed
    case .timedOut: .requestTimeout
    }
  }

  /// The answer for the client.
  package var problem: Problem {
    switch self {
    case .malformed(let fault):
      Problem(status, code: "malformed_request", detail: "The request is malformed: \(fault.rawValue).")
    case .requestLineTooLong(let limit):
      Problem(status, code: "uri_too_long", detail: "The request line is longer than \(limit) bytes.")
    case .headTooLarge(let limit):
      Problem(status, code: "head_too_large", detail: "The header section is longer than \(limit) bytes.")
    case .tooManyFields(let limit):
      Problem(status, code: "head_too_large", detail: "The request has more than \(limit) header fields.")
    case .unknownMethod(let method):
      Problem(status, code: "unknown_method", detail: "The method \(method) is not known here.")
    case .unsupportedTransferCoding:
      Problem(status, code: "unsupported_transfer_coding", detail: "The one transfer coding understood is chunked.")
    case .unsupportedVersion:
      Problem(status, code: "unsupported_version", detail: "This server speaks HTTP/1.1.")
    case .misdirected:
      Problem(status, code: "misdirected_request", detail: "What https names is not served over plain HTTP.")
    case .unsupportedExpectation:
      Problem(status, code: "unsupported_expectation", detail: "The one expectation met is 100-continue.")
    case .timedOut:
      Problem(status, code: "request_timeout", detail: "The request's head did not arrive in time.")
    }
  }
}
