// application/problem+json (RFC 9457), with `code` and `parameter` as members of our own:
//
//   {"type":"/problems/not_found","title":"Not Found","status":404,"detail":"…","code":"not_found","parameter":"scale"}

/// An error as the client sees it. Throw it from a handler, or make one from an error.
package struct Problem: Sendable, Error {
  /// The status it is answered with.
  package var status: HTTPStatus
  /// Stable, in snake_case: what programs go by.
  package var code: String
  /// A few words for the kind of problem; the status's phrase by default.
  package var title: String
  /// What was wrong this time, and what would be right.
  package var detail: String
  /// The parameter to blame, where there is one.
  package var parameter: String?
  /// Further header fields, such as `Retry-After` or `Allow`.
  package var fields: HTTPFields
  /// Where the service explains the code.
  package var type: String { Self.page(of: code) }

  /// A problem of these parts.
  package init(
    _ status: HTTPStatus, code: String, title: String? = nil, detail: String, parameter: String? = nil,
    fields: HTTPFields = [:]
  ) {
    (self.status, self.code, self.title) = (status, code, title ?? status.reason)
    (self.detail, self.parameter, self.fields) = (detail, parameter, fields)
  }

  /// The path of the page that explains a code. A reference that is relative to the service's own address (RFC 9457
  /// §3.1.1).
  package static func page(of code: String) -> String { "/problems/\(code)" }

  static let contentType = "application/problem+json"

  /// A problem document as `json()` makes it, with its type's page below `prefix`; any other document unchanged.
  static func prefixingType(of document: [UInt8], with prefix: String) -> [UInt8] {
    guard document.starts(with: "\(typeMember)/".utf8) else { return document }
    return Array(typeMember.utf8) + Array(prefix.utf8) + document.dropFirst(typeMember.utf8.count)
  }

  private static let typeMember = "{\"type\":\""

  /// The response, never stored by a cache.
  package func response() -> HTTPResponse {
    var fields = fields
    fields["Content-Type"] = Self.contentType
    if !fields.contains("Cache-Control") { fields["Cache-Control"] = "no-store" }
    return HTTPResponse(status, fields: fields, body: .bytes(json()))
  }

  /// The problem document, UTF-8.
  package func json() -> [UInt8] {
    var json: [UInt8] = []
    json.append(contentsOf: "{\"type\":".utf8)
    Self.append(quoted: type, to: &json)
    json.append(contentsOf: ",\"title\":".utf8)
    Self.append(quoted: title, to: &json)
    json.append(contentsOf: ",\"status\":\(status.code),\"detail\":".utf8)
    Self.append(quoted: detail, to: &json)
    json.append(contentsOf: ",\"code\":".utf8)
    Self.append(quoted: code, to: &json)
    if let parameter {
      json.append(contentsOf: ",\"parameter\":".utf8)
      Self.append(quoted: parameter, to: &json)
    }
    json.append(contentsOf: "}\n".utf8)
    return json
  }

  /// A JSON string (RFC 8259 §7).
  private static func append(quoted text: String, to json: inout [UInt8]) {
    let hex = Array("0123456789abcdef".utf8)
    json.append(0x22)
    for byte in text.utf8 {
      switch byte {
      case 0x22, 0x5C: json.append(contentsOf: [0x5C, byte])
      case 0..<0x20: json.append(contentsOf: Array("\\u00".utf8) + [hex[Int(byte >> 4)], hex[Int(byte & 15)]])
      default: json.append(byte)
      }
    }
    json.append(0x22)
  }
}
