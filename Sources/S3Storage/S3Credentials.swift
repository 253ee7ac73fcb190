/// A key of a store. Its descriptions don't show the secrets.
package struct S3Credentials: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
  /// The name of the key.
  package let accessKey: String
  let secretKey: String
  /// Sent with each request that temporary credentials sign.
  let sessionToken: String?

  /// Creates credentials. Returns nil if a part is empty or has a character that can't be sent in a header field.
  package init?(accessKey: String, secretKey: String, sessionToken: String? = nil) {
    let parts = [accessKey, secretKey] + (sessionToken.map { [$0] } ?? [])
    guard parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x21...0x7E).contains($0) } }) else { return nil }
    (self.accessKey, self.secretKey, self.sessionToken) = (accessKey, secretKey, sessionToken)
  }

  /// The name of the key, without the secrets.
  package var description: String { accessKey }
  /// Empty, so that the secrets don't appear in dumps.
  package var customMirror: Mirror { Mirror(self, children: []) }
}
