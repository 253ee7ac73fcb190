/// A SHA-256 digest computed piece by piece.
package struct SHA256: ~Copyable {
  private var digest = MessageDigest(.sha256)

  /// Creates a digest of no bytes.
  package init() {}

  /// Adds `bytes`.
  package mutating func update(_ bytes: Span<UInt8>) { digest.update(bytes) }

  /// Returns the digest of all bytes so far as 64 lower-case hexadecimal digits. More may follow.
  package borrowing func hexDigest() -> String { digest.hexDigest() }
}
