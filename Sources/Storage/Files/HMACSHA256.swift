import CCrypto
import Terms

/// A keyed digest (RFC 2104) with SHA-256, computed by libcrypto.
package enum HMACSHA256 {
  /// Returns the digest of `message` under `key`, both of any length, as 64 lower-case hexadecimal digits.
  package static func hexDigest(of message: [UInt8], key: [UInt8]) -> String {
    Hexadecimal.text(digest(of: message, key: key))
  }

  /// Returns the 32 bytes of the same digest.
  package static func digest(of message: [UInt8], key: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    // libcrypto treats a missing key as "the same as before".
    let key = key.isEmpty ? [0] : key
    let done = unsafe digest.withUnsafeMutableBufferPointer { digest in
      unsafe HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, digest.baseAddress, nil) != nil
    }
    precondition(done, "libcrypto has no SHA-256 or no memory")
    return digest
  }
}
