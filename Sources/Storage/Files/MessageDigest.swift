import CCrypto
import Terms

/// A digest computed piece by piece, by libcrypto.
@safe package struct MessageDigest: ~Copyable {
  /// SHA-1 and SHA-256 (FIPS 180-4). SHA-1 only detects damage, not forgery.
  package enum Algorithm: String, Sendable, CaseIterable {
    case sha1, sha256

    /// Length of a digest.
    package var byteCount: Int {
      switch self {
      case .sha1: 20
      case .sha256: 32
      }
    }
  }

  private let algorithm: Algorithm
  private let context: OpaquePointer

  /// Creates a digest of no bytes.
  package init(_ algorithm: Algorithm) {
    let type = unsafe algorithm == .sha1 ? EVP_sha1() : EVP_sha256()
    guard let context = unsafe EVP_MD_CTX_new(), unsafe EVP_DigestInit_ex(context, type, nil) == 1 else {
      preconditionFailure("libcrypto has no \(algorithm.rawValue) or no memory")
    }
    self.algorithm = algorithm
    unsafe self.context = context
  }

  deinit {
    unsafe EVP_MD_CTX_free(context)
  }

  /// Adds `bytes`.
  package mutating func update(_ bytes: Span<UInt8>) {
    let done = unsafe bytes.withUnsafeBytes { unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
    precondition(done == 1, "a digest that is not finished takes any bytes")
  }

  /// Returns the digest of all bytes so far. More may follow.
  package borrowing func bytes() -> [UInt8] {
    // Finalizes a copy, because EVP's "final" ends a context.
    let copy = MessageDigest(algorithm)
    precondition(unsafe EVP_MD_CTX_copy_ex(copy.context, context) == 1, "libcrypto has no memory")
    var digest = [UInt8](repeating: 0, count: algorithm.byteCount)
    let done = unsafe digest.withUnsafeMutableBufferPointer {
      unsafe EVP_DigestFinal_ex(copy.context, $0.baseAddress, nil)
    }
    precondition(done == 1, "a digest that is not finished can be")
    return digest
  }

  /// Returns the same in lower-case hexadecimal digits.
  package borrowing func hexDigest() -> String { Hexadecimal.text(bytes()) }
}
