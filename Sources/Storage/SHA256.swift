import CCrypto

/// A SHA-256 that is fed piece by piece (FIPS 180-4), by libcrypto.
@safe public struct SHA256: ~Copyable {
  private let context: OpaquePointer

  /// The digest of nothing yet.
  public init() {
    guard let context = unsafe EVP_MD_CTX_new(), unsafe EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
      preconditionFailure("libcrypto has no SHA-256 or no memory")
    }
    unsafe self.context = context
  }

  deinit {
    unsafe EVP_MD_CTX_free(context)
  }

  /// Takes in `bytes`, after all that came before.
  public mutating func update(_ bytes: Span<UInt8>) {
    let done = unsafe bytes.withUnsafeBytes { unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
    precondition(done == 1, "a SHA-256 that is not finished takes any bytes")
  }

  /// The digest of all bytes so far, 64 lower-case hexadecimal digits. More may follow.
  public borrowing func hexDigest() -> String {
    // EVP's "final" ends a context, so a copy is ended.
    let copy = SHA256()
    precondition(unsafe EVP_MD_CTX_copy_ex(copy.context, context) == 1, "libcrypto has no memory")
    var digest = [UInt8](repeating: 0, count: 32)
    let done = unsafe digest.withUnsafeMutableBufferPointer {
      unsafe EVP_DigestFinal_ex(copy.context, $0.baseAddress, nil)
    }
    precondition(done == 1, "a SHA-256 that is not finished can be")
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] }, as: UTF8.self)
  }
}
