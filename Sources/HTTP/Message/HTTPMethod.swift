/// A request method (RFC 9110 §9), compared by its exact, case-sensitive name.
package struct HTTPMethod: RawRepresentable, Hashable, Sendable {
  /// The name as in the request line.
  package let rawValue: String

  /// Creates a method from any token. `isKnown` says whether the server serves it.
  package init(rawValue: String) {
    self.rawValue = rawValue
  }

  /// Transfer a representation.
  package static let get = HTTPMethod(rawValue: "GET")
  /// GET without the content.
  package static let head = HTTPMethod(rawValue: "HEAD")
  /// Process the enclosed content.
  package static let post = HTTPMethod(rawValue: "POST")
  /// Replace the resource.
  package static let put = HTTPMethod(rawValue: "PUT")
  /// Change part of the resource (RFC 5789).
  package static let patch = HTTPMethod(rawValue: "PATCH")
  /// Remove the resource.
  package static let delete = HTTPMethod(rawValue: "DELETE")
  /// Describe the available methods.
  package static let options = HTTPMethod(rawValue: "OPTIONS")
  /// A safe request with content. Known, so that it gets a 405; no route serves it.
  package static let query = HTTPMethod(rawValue: "QUERY")
  /// Known, so that it gets a 405; no route serves it.
  package static let trace = HTTPMethod(rawValue: "TRACE")

  /// Whether a request with this method asks for no change (RFC 9110 §9.2.1).
  package var isSafe: Bool {
    switch rawValue {
    case "GET", "HEAD", "OPTIONS", "QUERY", "TRACE": true
    default: false
    }
  }

  /// Whether the method is one of those above. All others, including CONNECT, get a 501.
  package var isKnown: Bool {
    switch rawValue {
    case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY", "TRACE": true
    default: false
    }
  }
}

/// The protocol version of a request. The server always answers with HTTP/1.1.
package enum HTTPVersion: Sendable {
  /// HTTP/1.0: closes by default and supports neither chunks nor 100 (Continue).
  case http10
  /// HTTP/1.1, and any later minor version, which is treated as 1.1.
  case http11
}
