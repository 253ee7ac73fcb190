import Storage
import Testing

@Suite struct HMACSHA256Tests {
  struct Vector: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let key, message: [UInt8]
    let digest: String
  }

  // RFC 4231 §4.2 to §4.8, except §4.6, which covers a truncated digest.
  private static let vectors = [
    Vector(
      testDescription: "1", key: Array(repeating: 0x0b, count: 20), message: Array("Hi There".utf8),
      digest: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
    Vector(
      testDescription: "2, a key shorter than the digest", key: Array("Jefe".utf8),
      message: Array("what do ya want for nothing?".utf8),
      digest: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    Vector(
      testDescription: "3", key: Array(repeating: 0xaa, count: 20), message: Array(repeating: 0xdd, count: 50),
      digest: "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
    Vector(
      testDescription: "4", key: Array(1...25), message: Array(repeating: 0xcd, count: 50),
      digest: "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
    Vector(
      testDescription: "6, a key longer than a block", key: Array(repeating: 0xaa, count: 131),
      message: Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
      digest: "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
    Vector(
      testDescription: "7, key and message longer than a block", key: Array(repeating: 0xaa, count: 131),
      message: Array(
        ("This is a test using a larger than block-size key and a larger than block-size data. "
          + "The key needs to be hashed before being used by the HMAC algorithm.").utf8),
      digest: "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"),
  ]

  @Test("RFC 4231's vectors", arguments: vectors)
  func rfc4231(vector: Vector) {
    #expect(HMACSHA256.hexDigest(of: vector.message, key: vector.key) == vector.digest)
  }

  @Test("an empty key equals a key of zeros, because of the padding")
  func emptyKey() {
    let message = Array("x".utf8)
    #expect(HMACSHA256.hexDigest(of: message, key: []) == HMACSHA256.hexDigest(of: message, key: [0, 0]))
  }
}
