/// Why a request's head was refused. The server responds with `problem` and closes the connection: after a head that it
/// can't parse, it can't know where the next request begins.
package enum HTTPParseError: Error, Equatable, Sendable {
  /// The head violates the grammar → 400.
  case malformed(Fault)
  /// → 414
  case requestLineTooLong(limit: Int)
  /// → 431
  case headTooLarge(limit: Int)
  /// → 431
  case tooManyFields(limit: Int)
  /// The server doesn't know the method → 501.
  case unknownMethod(String)
  /// A major version other than 1 → 505.
  case unsupportedVersion
  /// An https target, which belongs on a TLS connection (RFC 9110 §7.4) → 421.
  case misdirected
  /// A transfer coding other than chunked → 501.
  case unsupportedTransferCoding
  /// An expectation other than 100-continue → 417.
  case unsupportedExpectation
  /// The head did not arrive in time → 408.
  case timedOut

  /// What is wrong in a malformed head.
  package enum Fault: String, Sendable {
    /// Not `METHOD SP target SP HTTP/d.d`.
    case requestLine = "request line"
    /// The target is neither a path nor an http URL, or contains bytes that must be escaped.
    case target
    /// An escape in the target is malformed or NUL, or doesn't decode to UTF-8.
    case escape
    /// A line that does not end in CRLF.
    case lineEnd = "line end"
    /// The name is empty or not a token, a blank precedes the colon, or there is no colon.
    case fieldName = "field name"
    /// A value contains a control byte.
    case fieldValue = "field value"
    /// A line begins with a blank.
    case obsoleteFolding = "obsolete line folding"
    /// `Host` is missing, repeated, or invalid.
    case host = "Host"
    /// `Content-Length` isn't a single number, or overflows.
    case contentLength = "Content-Length"
    /// There is more than one `Content-Type`.
    case contentType = "Content-Type"
    /// `Transfer-Encoding` isn't exactly `chunked`, or comes with HTTP/1.0 or a Content-Length.
    case transferEncoding = "Transfer-Encoding"
  }
}
