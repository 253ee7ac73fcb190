/// A status code with its reason phrase (RFC 9110 §15).
package struct HTTPStatus: Hashable, Sendable, CustomStringConvertible {
  /// A three-digit code, 100 … 599.
  package let code: Int

  /// Creates a status from any code from 100 to 599.
  package init(code: Int) {
    precondition((100...599).contains(code), "a status code has three digits")
    self.code = code
  }

  /// The registered reason phrase, or an empty string if there is none.
  package var reason: String { Self.reasons[code] ?? "" }

  /// The code and phrase: `404 Not Found`.
  package var description: String { "\(code) \(reason)" }

  /// Whether a response with this status never has content (RFC 9112 §6.3).
  var forbidsContent: Bool { code < 200 || code == 204 || code == 304 }

  /// The status line, `HTTP/1.1 200 OK CRLF`, precomputed for each registered code.
  var statusLine: [UInt8] {
    Self.statusLines[code - 100] ?? Array("HTTP/1.1 \(code) \r\n".utf8)
  }

  private static let statusLines: [[UInt8]?] = (100...599).map { code in
    reasons[code].map { Array("HTTP/1.1 \(code) \($0)\r\n".utf8) }
  }

  private static let reasons: [Int: String] = [
    100: "Continue", 200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 206: "Partial Content",
    301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 307: "Temporary Redirect",
    308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable", 408: "Request Timeout", 409: "Conflict", 410: "Gone",
    411: "Length Required", 412: "Precondition Failed", 413: "Content Too Large", 414: "URI Too Long",
    415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed",
    421: "Misdirected Request", 422: "Unprocessable Content", 423: "Locked", 428: "Precondition Required",
    429: "Too Many Requests", 431: "Request Header Fields Too Large", 460: "Checksum Mismatch",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
    504: "Gateway Timeout", 505: "HTTP Version Not Supported", 507: "Insufficient Storage",
  ]
}

extension HTTPStatus {
  /// 200, 201, 202, 204
  package static let (ok, created, accepted, noContent) = (
    Self(code: 200), Self(code: 201), Self(code: 202), Self(code: 204)
  )
  /// 206
  package static let partialContent = Self(code: 206)
  /// 302, 304, 307, 308
  package static let (found, notModified, temporaryRedirect, permanentRedirect) = (
    Self(code: 302), Self(code: 304), Self(code: 307), Self(code: 308)
  )
  /// 400, 401, 403, 404
  package static let (badRequest, unauthorized, forbidden, notFound) = (
    Self(code: 400), Self(code: 401), Self(code: 403), Self(code: 404)
  )
  /// 405, 406, 408, 409
  package static let (methodNotAllowed, notAcceptable, requestTimeout, conflict) = (
    Self(code: 405), Self(code: 406), Self(code: 408), Self(code: 409)
  )
  /// 410, 412, 413, 414
  package static let (gone, preconditionFailed, contentTooLarge, uriTooLong) = (
    Self(code: 410), Self(code: 412), Self(code: 413), Self(code: 414)
  )
  /// 415, 416, 417, 421
  package static let (unsupportedMediaType, rangeNotSatisfiable, expectationFailed, misdirectedRequest) = (
    Self(code: 415), Self(code: 416), Self(code: 417), Self(code: 421)
  )
  /// 422, 423, 429, 431
  package static let (unprocessableContent, locked, tooManyRequests, headerFieldsTooLarge) = (
    Self(code: 422), Self(code: 423), Self(code: 429), Self(code: 431)
  )
  /// 460
  package static let checksumMismatch = Self(code: 460)
  /// 500, 501, 503, 505
  package static let (internalServerError, notImplemented, serviceUnavailable, versionNotSupported) = (
    Self(code: 500), Self(code: 501), Self(code: 503), Self(code: 505)
  )
  /// 507
  package static let insufficientStorage = Self(code: 507)
}
