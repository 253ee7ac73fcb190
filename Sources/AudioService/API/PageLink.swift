// Web Linking (RFC 8288): a page of a list links to the next page, so that a client can follow it without knowing the
// parameters:
//
//   Link: </v1/recordings?q=talk&limit=2&cursor=01a1fce5-…>; rel="next"

import HTTP
import Terms

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
    let texts = map { item -> String in URIEncoding.component(item.name) + "=" + URIEncoding.component(item.value) }
    return texts.isEmpty ? "" : "?" + texts.joined(separator: "&")
  }
}
