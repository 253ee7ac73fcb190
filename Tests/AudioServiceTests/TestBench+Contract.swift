import Contract
import Foundation
import HTTP
import Testing

@testable import AudioService

extension TestBench {
  /// Sends a request, whose answer must have this status and conform to openapi.yaml. Returns the answer's fields and
  /// body.
  @discardableResult
  func send(
    _ method: HTTPMethod, _ target: String, fields: HTTPFields = [:], body: String = "", _ status: Int,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> (fields: HTTPFields, text: String) {
    let response = try await respond(method, target, fields: fields, body: body)
    let bytes = Data(try await response.body.collect())
    var headers = ["X-Request-Id": "test"]
    for (name, value) in response.fields { headers[name] = value }
    let violations = try OpenAPIDocument.shared.get().validate(
      method: method.rawValue, path: String(target.prefix { $0 != "?" }), status: response.status.code,
      contentType: response.fields["Content-Type"], headers: headers, body: bytes)
    #expect(violations == [], sourceLocation: sourceLocation)
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(response.status.code == status, "\(text)", sourceLocation: sourceLocation)
    return (response.fields, text)
  }

  /// Sends a request like `send` and returns the body of the answer.
  func check(
    _ method: HTTPMethod, _ target: String, body: String = "", _ status: Int,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> String {
    try await send(method, target, body: body, status, sourceLocation: sourceLocation).text
  }
}

extension OpenAPIDocument {
  /// The document, parsed once.
  static let shared = Result { try OpenAPIDocument() }
}
