import CCrypto

/// A digest that is fed piece by piece, by libcrypto.
@safe package struct MessageDigest: ~Copyable {
  /// SHA-1 and SHA-256 (FIPS 180-4). SHA-1 tells damage from whole, and no more.
  package enum Algorithm: String, Sendable, CaseIterable {
    case sha1, sha256

    /// How long a digest is.
    package var byteCount: Int {
      switch self {
      case .sha1: 20
      case .sha256: 32
      }
    }
  }

  private let algorithm: Algorithm
  private let context: OpaquePointer

  /// The digest of nothing yet.
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

  /// Takes in `bytes`, after all that came before.
  package mutating func update(_ bytes: Span<UInt8>) {
    let done = unsafe bytes.withUnsafeBytes { unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
    precondition(done == 1, "a digest that is not finished takes any bytes")
  }

  /// The digest of all bytes so far. More may follow.
  package borrowing func bytes() -> [UInt8] {
    // EVP's "final" ends a context, so a copy is ended.
    let copy = MessageDigest(algorithm)
    precondition(unsafe EVP_MD_CTX_copy_ex(copy.context, context) == 1, "libcrypto has no memory")
    var digest = [UInt8](repeating: 0, count: algorithm.byteCount)
    let done = unsafe digest.withUnsafeMutableBufferPointer {
      unsafe EVP_DigestFinal_ex(copy.context, $0.baseAddress, nil)
    }
    precondition(done == 1, "a digest that is not finished can be")
    return digest
  }

  /// The same in lower-case hexadecimal digits.
  package borrowing func hexDigest() -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes().flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] }, as: UTF8.self)
  }
}
