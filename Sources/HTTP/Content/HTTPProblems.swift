// The problems that the server answers with by itself: the status, the code, the detail and the fields of each, all in
// this table. Errors carry facts; only here do they become words.

extension HTTPParseError {
  /// The response to the client.
  package var problem: Problem {
    switch self {
    case .malformed(let fault):
      Problem(.badRequest, code: "malformed_request", detail: "The request is malformed: \(fault.words).")
    case .requestLineTooLong(let limit):
      Problem(.uriTooLong, code: "uri_too_long", detail: "The request line is longer than \(limit) bytes.")
    case .headTooLarge(let limit):
      Problem(
        .headerFieldsTooLarge, code: "head_too_large", detail: "The header section is longer than \(limit) bytes.")
    case .tooManyFields(let limit):
      Problem(
        .headerFieldsTooLarge, code: "head_too_large", detail: "The request has more than \(limit) header fields.")
    case .unknownMethod(let method):
      Problem(.notImplemented, code: "unknown_method", detail: "The server doesn't know the method \(method).")
    case .unsupportedTransferCoding:
      Problem(
        .notImplemented, code: "unsupported_transfer_coding",
        detail: "The only transfer coding that is supported is chunked.")
    case .unsupportedVersion:
      Problem(.versionNotSupported, code: "unsupported_version", detail: "This server speaks HTTP/1.1.")
    case .misdirected:
      Problem(
        .misdirectedRequest, code: "misdirected_request",
        detail: "The target is an https URL, but the connection has no TLS.")
    case .unsupportedExpectation:
      Problem(
        .expectationFailed, code: "unsupported_expectation",
        detail: "The only expectation that is supported is 100-continue.")
    case .timedOut:
      Problem(.requestTimeout, code: "request_timeout", detail: "The request's head did not arrive in time.")
    }
  }
}

extension HTTPParseError.Fault {
  fileprivate var words: String {
    switch self {
    case .target: "the target is neither a path nor an http URL, or has a character that must be escaped (%XX)"
    case .escape:
      "an escape in the target is not %XX, is NUL, is not UTF-8, or is one of more than 256 combining marks in a row; "
        + "% itself is written %25"
    default: rawValue
    }
  }
}

extension RequestBodyError {
  /// The response to the client.
  package var problem: Problem {
    switch self {
    case .tooLarge(let limit):
      Problem(
        .contentTooLarge, code: "content_too_large", detail: "The body is longer than the \(limit) bytes allowed.")
    case .truncated:
      Problem(.badRequest, code: "truncated_body", detail: "The connection ended before the whole body had arrived.")
    case .malformed(let fault):
      Problem(.badRequest, code: "malformed_body", detail: "The chunked body is malformed: \(fault.rawValue).")
    case .timedOut:
      Problem(.requestTimeout, code: "request_timeout", detail: "The body did not arrive in time.")
    }
  }
}

extension MultipartError {
  /// The response to the client.
  package var problem: Problem {
    switch self {
    case .malformed(let fault):
      Problem(.badRequest, code: "malformed_multipart", detail: "The multipart body is malformed: \(fault.rawValue).")
    case .truncated:
      Problem(.badRequest, code: "malformed_multipart", detail: "The multipart body lacks its closing delimiter.")
    case .partHeadTooLarge(let limit):
      Problem(
        .badRequest, code: "malformed_multipart", detail: "A part's header section is longer than \(limit) bytes.")
    case .tooManyParts(let limit):
      Problem(.badRequest, code: "malformed_multipart", detail: "The multipart body has more than \(limit) parts.")
    }
  }
}

extension RoutingError {
  /// The response to the client.
  package var problem: Problem {
    switch self {
    case .notFound: Problem(.notFound, code: "not_found", detail: "There is nothing at this path.")
    case .methodNotAllowed(let allowed):
      Problem(
        .methodNotAllowed, code: "method_not_allowed", detail: "This path allows \(Router.list(allowed)).",
        fields: ["Allow": Router.list(allowed)])
    }
  }
}

extension HostGuard.Objection {
  var problem: Problem {
    switch self {
    case .unknownHost(let host, let setting):
      Problem(
        .forbidden, code: "host_not_allowed",
        detail: "The service doesn't accept the host name “\(host)”. Add it to \(setting), or use an IP address or "
          + "localhost, which always work.",
        parameter: "Host")
    case .foreignOrigin(let origin):
      Problem(
        .forbidden, code: "origin_not_allowed",
        detail: "Pages of “\(origin)” may not change anything here unless the service is configured to allow them.",
        parameter: "Origin")
    case .foreignSite:
      Problem(
        .forbidden, code: "origin_not_allowed",
        detail: "Pages of other sites may not change anything here unless the service is configured to allow them.",
        parameter: "Sec-Fetch-Site")
    }
  }
}

extension ConnectionTally.Refusal {
  var problem: Problem {
    switch self {
    case .serverIsFull:
      Problem(
        .serviceUnavailable, code: "too_many_connections",
        detail: "The server has as many connections open as it can serve. Try again later.",
        fields: ["Retry-After": "1"])
    case .clientIsFull(let limit):
      Problem(
        .tooManyRequests, code: "limit_connections",
        detail: "This client has \(limit) connections open, the most that one client may have. Close some, or try "
          + "again later.",
        fields: ["Retry-After": "1"])
    }
  }
}

extension Problem {
  /// A precondition such as If-Match doesn't hold.
  static let preconditionFailed = Problem(
    .preconditionFailed, code: "precondition_failed",
    detail: "The resource's current version doesn't meet the request's condition.")

  /// A handler threw, and nobody turned the error into a response.
  static let noResponse = Problem(
    .internalServerError, code: "internal_error", detail: "The server failed to produce a response.")

  /// Every range begins past the end of the content, which has this many bytes.
  static func unsatisfiableRange(length: Int64) -> Problem {
    Problem(
      .rangeNotSatisfiable, code: "range_not_satisfiable", detail: "The content has \(length) bytes.",
      parameter: "Range", fields: ["Content-Range": "bytes */\(length)"])
  }
}
