// Web Linking (RFC 8288): a page of a list links to the next page, so that a client can follow it without knowing the
// parameters:
//
//   Link: </v1/recordings?q=talk&limit=2&cursor=01a1fce5-…>; rel="next"

import HTTP

extension HTTPResponse {
  /// Responds with a page of a list, with a link to the next page if there is one.
  static func page(_ document: JSONDocument, next cursor: String?, for request: HTTPRequest) -> HTTPResponse {
    var response = changing(document, for: request)
    guard let cursor, response.status == .ok else { return response }
    let items = request.target.query.filter { $0.name != "cursor" } + [QueryItem(name: "cursor", value: cursor)]
    response.fields["Link"] = "<\(request.target.path)\(items.queryText)>; rel=\"next\""
    return response
  }
}

extension [QueryItem] {
  /// The items as a URL has them, after a question mark, with all but unreserved characters escaped; empty if there are
  /// none.
  var queryText: String {
    let texts = map { item -> String in Self.escaped(item.name) + "=" + Self.escaped(item.value) }
    return texts.isEmpty ? "" : "?" + texts.joined(separator: "&")
  }

  /// Escapes every byte except the unreserved ones (RFC 3986 §2.3) as %XX.
  private static func escaped(_ text: String) -> String {
    let hex = [UInt8]("0123456789ABCDEF".utf8)
    let bytes: [UInt8] = text.utf8.flatMap { byte -> [UInt8] in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), 0x30...0x39: [byte]
      case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): [byte]
      default: [UInt8(ascii: "%"), hex[Int(byte >> 4)], hex[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
