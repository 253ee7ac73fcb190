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
  /// 200
  package static let ok = HTTPStatus(code: 200)
  /// 201
  package static let created = HTTPStatus(code: 201)
  /// 202
  package static let accepted = HTTPStatus(code: 202)
  /// 204
  package static let noContent = HTTPStatus(code: 204)
  /// 206
  package static let partialContent = HTTPStatus(code: 206)
  /// 302
  package static let found = HTTPStatus(code: 302)
  /// 304
  package static let notModified = HTTPStatus(code: 304)
  /// 307
  package static let temporaryRedirect = HTTPStatus(code: 307)
  /// 308
  package static let permanentRedirect = HTTPStatus(code: 308)
  /// 400
  package static let badRequest = HTTPStatus(code: 400)
  /// 401
  package static let unauthorized = HTTPStatus(code: 401)
  /// 403
  package static let forbidden = HTTPStatus(code: 403)
  /// 404
  package static let notFound = HTTPStatus(code: 404)
  /// 405
  package static let methodNotAllowed = HTTPStatus(code: 405)
  /// 406
  package static let notAcceptable = HTTPStatus(code: 406)
  /// 408
  package static let requestTimeout = HTTPStatus(code: 408)
  /// 409
  package static let conflict = HTTPStatus(code: 409)
  /// 410
  package static let gone = HTTPStatus(code: 410)
  /// 412
  package static let preconditionFailed = HTTPStatus(code: 412)
  /// 413
  package static let contentTooLarge = HTTPStatus(code: 413)
  /// 414
  package static let uriTooLong = HTTPStatus(code: 414)
  /// 415
  package static let unsupportedMediaType = HTTPStatus(code: 415)
  /// 416
  package static let rangeNotSatisfiable = HTTPStatus(code: 416)
  /// 417
  package static let expectationFailed = HTTPStatus(code: 417)
  /// 421
  package static let misdirectedRequest = HTTPStatus(code: 421)
  /// 422
  package static let unprocessableContent = HTTPStatus(code: 422)
  /// 423
  package static let locked = HTTPStatus(code: 423)
  /// 429
  package static let tooManyRequests = HTTPStatus(code: 429)
  /// 431
  package static let headerFieldsTooLarge = HTTPStatus(code: 431)
  /// 460, tus: the checksum of an upload's chunk is wrong.
  package static let checksumMismatch = HTTPStatus(code: 460)
  /// 500
  package static let internalServerError = HTTPStatus(code: 500)
  /// 501
  package static let notImplemented = HTTPStatus(code: 501)
  /// 503
  package static let serviceUnavailable = HTTPStatus(code: 503)
  /// 505
  package static let versionNotSupported = HTTPStatus(code: 505)
  /// 507
  package static let insufficientStorage = HTTPStatus(code: 507)
}
