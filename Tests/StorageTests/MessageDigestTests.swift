import Testing

@testable import Storage

@Suite struct MessageDigestTests {
  /// The examples of FIPS 180-4.
  @Test(
    "digests match the standard",
    arguments: [
      (MessageDigest.Algorithm.sha1, "", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
      (.sha1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
      (.sha256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      (.sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ])
  func examples(algorithm: MessageDigest.Algorithm, text: String, expected: String) {
    var digest = MessageDigest(algorithm)
    for byte in text.utf8 { digest.update([byte].span) }
    #expect(digest.hexDigest() == expected)
    #expect(digest.bytes().count == algorithm.byteCount)
  }
}
