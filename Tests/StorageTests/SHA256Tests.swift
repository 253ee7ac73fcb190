import Storage
import Testing

@Suite struct SHA256Tests {
  // The examples of FIPS 180-4, as published by NIST.
  @Test(
    "NIST's vectors",
    arguments: [
      ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
      (
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
      ),
      (
        String(repeating: "a", count: 1_000_000),
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
      ),
    ])
  func vectors(text: String, digest: String) {
    var hash = SHA256()
    hash.update(Array(text.utf8).span)
    #expect(hash.hexDigest() == digest)
    let whole = SHA256.digest(of: Array(text.utf8)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    #expect(whole == digest)
  }

  @Test("the sizes of the pieces make no difference")
  func pieces() {
    let bytes = (0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    var whole = SHA256()
    whole.update(bytes.span)
    for size in [1, 63, 64, 65, 4999] {
      var parts = SHA256()
      for start in stride(from: 0, to: bytes.count, by: size) {
        parts.update(bytes[start..<min(start + size, bytes.count)].span)
      }
      #expect(parts.hexDigest() == whole.hexDigest())
    }
  }

  @Test("reading the digest does not end it")
  func digestTwice() {
    var hash = SHA256()
    hash.update(Array("a".utf8).span)
    #expect(hash.hexDigest() == hash.hexDigest())
    hash.update(Array("bc".utf8).span)
    #expect(hash.hexDigest() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
  }
}
