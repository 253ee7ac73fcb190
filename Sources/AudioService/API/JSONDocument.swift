import FoundationEssentials
import HTTP
import Storage

/// A JSON object of the API as sent: in UTF-8, with snake_case names.
final class JSONDocument: Sendable {
  let bytes: [UInt8]
  /// A strong tag of the bytes, for objects that change.
  let etag: String
  /// For an object that changes: always revalidated by its entity tag.
  let representation: Representation

  /// Encodes a value. Costs a few microseconds per member, so encode lists on a worker queue.
  convenience init(_ value: some Encodable) throws { self.init(bytes: try Self.encoded(value)) }

  /// Wraps encoded bytes.
  init(bytes: [UInt8]) {
    var hash = SHA256()
    hash.update(bytes.span)
    self.bytes = bytes
    let etag = "\"\(hash.hexDigest().prefix(32))\""
    self.etag = etag
    representation = Representation(
      body: .bytes(bytes), contentType: "application/json", etag: etag, cacheControl: "no-cache")
  }

  static func encoded(_ value: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return Array(try encoder.encode(value))
  }
}

extension HTTPResponse {
  /// Responds with `value` as JSON.
  static func json(_ status: HTTPStatus, _ value: some Encodable, fields: HTTPFields = [:]) throws -> HTTPResponse {
    var response = HTTPResponse(status, fields: fields, body: .bytes(try JSONDocument.encoded(value)))
    response.fields["Content-Type"] = "application/json"
    return response
  }

  /// Responds with an object that may change, honoring the request's conditions.
  static func changing(_ document: JSONDocument, for request: HTTPRequest) -> HTTPResponse {
    HTTPResponse(document.representation, for: request)
  }

  /// Responds after the request created or changed the object. Ignores the request's conditions, which referred to the
  /// previous state.
  static func changed(_ document: JSONDocument, _ status: HTTPStatus = .ok, location: String? = nil) -> HTTPResponse {
    var response = HTTPResponse(
      status, fields: ["Content-Type": "application/json", "ETag": document.etag, "Cache-Control": "no-cache"],
      body: .bytes(document.bytes))
    response.fields["Location"] = location
    return response
  }
}

extension HTTPRequest {
  /// Whether the request's conditions (RFC 9110 §13.2.1) hold for the current state of an object. Call it in the
  /// transaction that changes the object, so that nothing else can change it in between.
  func permitsChange(of value: @autoclosure () -> some Encodable) -> Bool {
    guard hasPreconditions else { return true }
    return mayChange(etag: try? JSONDocument(value()).etag)
  }
}
