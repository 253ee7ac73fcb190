// application/problem+json (RFC 9457), with members of our own: `code`, `parameter`, and for text in the request's
// content `fault`, `line` and `column`:
//
//   {"type":"/problems/not_found","title":"Not Found","status":404,"detail":"…","code":"not_found","parameter":"scale"}

import Terms

/// An error as the client sees it. Handlers can throw it.
package struct Problem: Sendable, Error {
  /// The status of the response.
  package var status: HTTPStatus
  /// A stable identifier for programs, in snake_case.
  package var code: String
  /// A short title for the kind of problem: the status's reason phrase.
  package var title: String { status.reason }
  /// What was wrong with this request, and what would be right.
  package var detail: String
  /// The offending parameter, if there is one.
  package var parameter: String?
  /// What is wrong in the text that was sent, and where, if that is the problem.
  package var text: TextFault?
  /// Additional header fields, such as `Retry-After` or `Allow`.
  package var fields: HTTPFields
  /// The page on which the service explains the code.
  package var type: String { Self.page(of: code) }

  /// Creates a problem from its parts.
  package init(
    _ status: HTTPStatus, code: String, detail: String, parameter: String? = nil, text: TextFault? = nil,
    fields: HTTPFields = [:]
  ) {
    (self.status, self.code, self.detail) = (status, code, detail)
    (self.parameter, self.text, self.fields) = (parameter, text, fields)
  }

  /// What is wrong at a place in a text.
  package struct TextFault: Sendable, Equatable {
    /// A stable identifier for programs, in snake_case.
    package var fault: String
    /// Counted from 1; the column in characters (code points).
    package var line, column: Int

    /// Creates a fault from its parts.
    package init(_ fault: String, line: Int, column: Int) {
      (self.fault, self.line, self.column) = (fault, line, column)
    }
  }

  /// Returns the path of the page that explains a code, relative to the service's own address (RFC 9457 §3.1.1).
  package static func page(of code: String) -> String { "/problems/\(code)" }

  static let contentType = "application/problem+json"

  /// Inserts `prefix` before the type's page in a problem document made by `json()`. Returns other documents unchanged.
  static func prefixingType(of document: [UInt8], with prefix: String) -> [UInt8] {
    guard document.starts(with: "\(typeMember)/".utf8) else { return document }
    return Array(typeMember.utf8) + Array(prefix.utf8) + document.dropFirst(typeMember.utf8.count)
  }

  private static let typeMember = "{\"type\":\""

  /// Returns the problem as a response that caches never store.
  package func response() -> HTTPResponse {
    var fields = fields
    fields["Content-Type"] = Self.contentType
    if !fields.contains("Cache-Control") { fields["Cache-Control"] = "no-store" }
    return HTTPResponse(status, fields: fields, body: .bytes(json()))
  }

  /// Returns the problem document in UTF-8.
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
    if let text {
      json.append(contentsOf: ",\"fault\":".utf8)
      Self.append(quoted: text.fault, to: &json)
      json.append(contentsOf: ",\"line\":\(text.line),\"column\":\(text.column)".utf8)
    }
    json.append(contentsOf: "}\n".utf8)
    return json
  }

  /// Appends a JSON string (RFC 8259 §7).
  private static func append(quoted text: String, to json: inout [UInt8]) {
    json.append(0x22)
    for byte in text.utf8 {
      switch byte {
      case 0x22, 0x5C: json.append(contentsOf: [0x5C, byte])
      case 0..<0x20: json.append(contentsOf: "\\u00\(Hexadecimal.text([byte]))".utf8)
      default: json.append(byte)
      }
    }
    json.append(0x22)
  }
}
