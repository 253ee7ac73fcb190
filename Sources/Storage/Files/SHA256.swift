/// A SHA-256 that is fed piece by piece.
package struct SHA256: ~Copyable {
  private var digest = MessageDigest(.sha256)

  /// The digest of nothing yet.
  package init() {}

  /// Takes in `bytes`, after all that came before.
  package mutating func update(_ bytes: Span<UInt8>) { digest.update(bytes) }

  /// The digest of all bytes so far, 64 lower-case hexadecimal digits. More may follow.
  package borrowing func hexDigest() -> String { digest.hexDigest() }
}
