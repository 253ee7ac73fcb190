import Contract
import Foundation
import HTTP
import Testing

@testable import AudioService

extension TestBench {
  /// Returns the body of an answer, which must have this status and conform to openapi.yaml.
  func check(
    _ method: HTTPMethod, _ target: String, body: String = "", _ status: Int
  ) async throws -> String {
    let response = try await respond(method, target, body: body)
    let bytes = Data(try await response.body.collect())
    var headers = ["X-Request-Id": "test"]
    for (name, value) in response.fields { headers[name] = value }
    let violations = try OpenAPIDocument().validate(
      method: method.rawValue, path: String(target.prefix { $0 != "?" }), status: response.status.code,
      contentType: response.fields["Content-Type"], headers: headers, body: bytes)
    #expect(violations.isEmpty, "\(violations)")
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(response.status.code == status, "\(text)")
    return text
  }
}
