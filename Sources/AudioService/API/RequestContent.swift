// What a request's head says about its content (RFC 9110 §8.3, §8.4) and about the content it accepts (§12.5.1). If the
// head announces something other than what is read, the request gets a 415 for that, rather than an error about the
// bytes.

import HTTP

extension HTTPRequest {
  /// Throws 415 if the content is announced as something other than JSON. Without a Content-Type it may be JSON.
  func requireJSON() throws {
    guard body.declaredLength != 0 else { return }
    try requireNoCoding()
    guard let text = fields["Content-Type"] else { return }
    let type = ParameterizedValue(text)?.value.lowercased() ?? ""
    guard type == "application/json" || type.hasPrefix("application/") && type.hasSuffix("+json") else {
      throw RequestError.notJSON(contentType: text)
    }
  }

  /// Throws 415 if the content is compressed or otherwise encoded.
  func requireNoCoding() throws {
    guard body.declaredLength != 0, fields.contains("Content-Encoding") else { return }
    let codings = fields.list("Content-Encoding")
    guard codings.contains(where: { $0.lowercased() != "identity" }) else { return }
    throw RequestError.encodedContent(codings)
  }

  /// Returns the type that the client prefers. Throws 406 if it excludes them all.
  func preferredType(among types: [String]) throws -> String {
    if let type = preferredType(types) { return type }
    throw RequestError.notAcceptable(types)
  }
}
