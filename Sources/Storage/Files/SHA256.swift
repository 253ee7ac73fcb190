import CCrypto

/// A SHA-256 digest computed piece by piece.
@safe package struct SHA256: ~Copyable {
  private var digest = MessageDigest(.sha256)

  /// Creates a digest of no bytes.
  package init() {}

  /// Adds `bytes`.
  package mutating func update(_ bytes: Span<UInt8>) { digest.update(bytes) }

  /// Returns the digest of all bytes so far as 64 lower-case hexadecimal digits. More may follow.
  package borrowing func hexDigest() -> String { digest.hexDigest() }

  /// libcrypto's implementation, looked up once. libcrypto looks `EVP_sha256()` up for each digest, which takes longer
  /// than the digest of a short text. Nothing writes to it, so threads can share it.
  private nonisolated(unsafe) static let implementation: OpaquePointer? = unsafe EVP_MD_fetch(nil, "SHA256", nil)

  /// Returns the digest of a whole text, as 32 bytes. For 43 bytes, libcrypto takes a third of the time that it needs
  /// piece by piece (117 instead of 366 ns).
  package static func digest(of bytes: [UInt8]) -> [UInt8] { digest(of: bytes.span) }

  /// Returns the digest of a whole text.
  package static func digest(of bytes: Span<UInt8>) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    let done = unsafe digest.withUnsafeMutableBufferPointer { digest in
      unsafe bytes.withUnsafeBufferPointer {
        unsafe EVP_Digest($0.baseAddress, $0.count, digest.baseAddress, nil, implementation, nil)
      }
    }
    precondition(done == 1, "libcrypto has no SHA-256 or no memory")
    return digest
  }
}
