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
      throw RequestError.notJSON(contentType: text)
    }
  }

  /// Throws 415 if the content is compressed or otherwise coded.
  func requireNoCoding() throws {
    guard body.declaredLength != 0, fields.contains("Content-Encoding") else { return }
    let codings = fields.list("Content-Encoding")
    guard codings.contains(where: { $0.lowercased() != "identity" }) else { return }
    throw RequestError.encodedContent(codings)
  }

  /// The type that the client would rather have. Throws 406 if it excludes them all.
  func preferredType(among types: [String]) throws -> String {
    if let type = preferredType(types) { return type }
    throw RequestError.notAcceptable(types)
  }
}
