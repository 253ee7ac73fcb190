// What a request's head says of its content (RFC 9110 §8.3, §8.4) and of the content it wants (§12.5.1). A head that
// says something else than what is read is refused for that, with 415, and not for what the bytes then look like.

import HTTP

extension HTTPRequest {
  /// Throws 415 if the content is sent as something else than JSON. A request without a Content-Type may be JSON.
  func requireJSON() throws {
    guard body.declaredLength != 0 else { return }
    try requireNoCoding()
    guard let text = fields["Content-Type"] else { return }
    let type = ParameterizedValue(text)?.value.lowercased() ?? ""
    guard type == "application/json" || type.hasPrefix("application/") && type.hasSuffix("+json") else {
      throw Problem(
        .unsupportedMediaType, code: "unsupported_content_type",
        detail: "The body is sent as “\(text)”; it must be JSON, with “Content-Type: application/json”.",
        parameter: "Content-Type", fields: ["Accept": "application/json"])
    }
  }

  /// Throws 415 if the content is compressed or otherwise coded.
  func requireNoCoding() throws {
    guard body.declaredLength != 0, fields.contains("Content-Encoding") else { return }
    let codings = fields.list("Content-Encoding")
    guard codings.contains(where: { $0.lowercased() != "identity" }) else { return }
    throw Problem(
      .unsupportedMediaType, code: "unsupported_content_encoding",
      detail: "The body is sent with “Content-Encoding: \(codings.joined(separator: ", "))”; it must be sent without.",
      parameter: "Content-Encoding", fields: ["Accept-Encoding": "identity"])
  }

  /// The type that the client would rather have. Throws 406 if it excludes them all.
  func preferredType(among types: [String]) throws -> String {
    if let type = preferredType(types) { return type }
    throw Problem(
      .notAcceptable, code: "not_acceptable",
      detail: "“Accept” excludes all that can be answered here: \(types.joined(separator: ", ")).", parameter: "Accept",
      fields: ["Vary": "Accept"])
  }
}
