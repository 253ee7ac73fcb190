/// The client that a request, an upload or a job counts toward. Supports only comparison.
package struct Client: Hashable, Sendable {
  /// The key as stored in the row of a job or an upload.
  package let key: String

  /// The client of the service's own work, and of rows written before clients were recorded.
  package static let unknown = Client(key: "")

  /// Creates a client from the key in a row.
  package init(key: String) { self.key = key }
}
