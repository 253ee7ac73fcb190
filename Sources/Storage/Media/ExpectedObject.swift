/// What rows say that an object must be, as far as they do.
package struct ExpectedObject: Sendable, Equatable {
  /// The key: `recordings/<id>/<name>`.
  package let key: ObjectKey
  /// The length in bytes; nil if no row has it.
  package let bytes: Int64?
  /// The SHA-256 as 64 lower-case hexadecimal digits; nil if no row has it.
  package let sha256: String?

  /// Describes an object.
  package init(key: ObjectKey, bytes: Int64?, sha256: String?) {
    (self.key, self.bytes, self.sha256) = (key, bytes, sha256)
  }

  /// Whether content of this length and SHA-256, if that is known, is what is expected.
  package func permits(_ bytes: Int64, _ sha256: String?) -> Bool {
    fault(of: FoundObject(bytes: bytes, sha256: sha256)) == nil
  }
}
