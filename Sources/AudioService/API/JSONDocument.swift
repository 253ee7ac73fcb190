import FoundationEssentials
import HTTP
import Storage

/// An object of the API as it goes over the wire: JSON with snake_case names, in UTF-8.
final class JSONDocument: Sendable {
  let bytes: [UInt8]
  /// A strong tag over the bytes, for objects that change.
  let etag: String
  /// As a changing object: always revalidated, by its entity tag.
  let representation: Representation

  /// Costs some microseconds a member: lists are encoded on a worker queue.
  convenience init(_ value: some Encodable) throws { self.init(bytes: try Self.encoded(value)) }

  /// What was encoded before.
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
  /// `value` as JSON.
  static func json(_ status: HTTPStatus, _ value: some Encodable, fields: HTTPFields = [:]) throws -> HTTPResponse {
    var response = HTTPResponse(status, fields: fields, body: .bytes(try JSONDocument.encoded(value)))
    response.fields["Content-Type"] = "application/json"
    return response
  }

  /// A changing object.
  static func changing(_ document: JSONDocument, for request: HTTPRequest) -> HTTPResponse {
    HTTPResponse(document.representation, for: request)
  }

  /// The same after the request has made or changed the object: its conditions were about what was there before.
  static func changed(_ document: JSONDocument, _ status: HTTPStatus = .ok, location: String? = nil) -> HTTPResponse {
    var response = HTTPResponse(
      status, fields: ["Content-Type": "application/json", "ETag": document.etag, "Cache-Control": "no-cache"],
      body: .bytes(document.bytes))
    response.fields["Location"] = location
    return response
  }
}

extension HTTPRequest {
  /// Whether the request's conditions (RFC 9110 §13.2.1) hold for an object as it is now; called in the transaction
  /// that changes the object, so that nobody else can in between.
  func permitsChange(of value: @autoclosure () -> some Encodable) -> Bool {
    guard hasPreconditions else { return true }
    return mayChange(etag: try? JSONDocument(value()).etag)
  }
}
