import Storage
import Terms
import Testing

@testable import S3Storage

/// The examples of "Authenticating Requests: Using the Authorization Header" and "… Using Query Parameters" in Amazon's
/// S3 API reference.
@Suite struct SigV4Tests {
  struct Example: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var method = "GET"
    let path: String
    var query: [(name: String, value: String)] = []
    var fields: [(name: String, value: String)] = []
    var payload = ""
    let signedNames: String
    let signature: String
  }

  private static let host = (name: "host", value: "examplebucket.s3.amazonaws.com")
  private static let region = SigV4(region: "us-east-1")
  private static let time = Timestamp(rfc3339: "2013-05-24T00:00:00Z") ?? .now

  private static let examples = [
    Example(
      testDescription: "GET Object", path: "/test.txt", fields: [host, (name: "range", value: "bytes=0-9")],
      signedNames: "host;range;x-amz-content-sha256;x-amz-date",
      signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
    Example(
      testDescription: "PUT Object", method: "PUT", path: "/test$file.text",
      fields: [
        host, (name: "date", value: "Fri, 24 May 2013 00:00:00 GMT"),
        (name: "x-amz-storage-class", value: "REDUCED_REDUNDANCY"),
      ], payload: "Welcome to Amazon S3.",
      signedNames: "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
      signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
    Example(
      testDescription: "GET Bucket Lifecycle", path: "/", query: [(name: "lifecycle", value: "")], fields: [host],
      signedNames: "host;x-amz-content-sha256;x-amz-date",
      signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    Example(
      testDescription: "Get Bucket (List Objects)", path: "/",
      query: [(name: "prefix", value: "J"), (name: "max-keys", value: "2")], fields: [host],
      signedNames: "host;x-amz-content-sha256;x-amz-date",
      signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
  ]

  private func credentials(token: String? = nil) throws -> S3Credentials {
    try #require(
      S3Credentials(
        accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", sessionToken: token))
  }

  @Test("Amazon's examples of signed requests", arguments: examples)
  func published(example: Example) throws {
    let payload = Hexadecimal.text(SHA256.digest(of: Array(example.payload.utf8)))
    let target = SigV4.Target(
      method: example.method, path: example.path, query: example.query, fields: example.fields)
    let fields = Self.region.signed(target, payloadSHA256: payload, by: try credentials(), at: Self.time)
    #expect(
      fields.last?.value
        == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        + "SignedHeaders=\(example.signedNames),Signature=\(example.signature)")
    #expect(fields.contains { $0 == ("x-amz-date", "20130524T000000Z") })
    #expect(fields.contains { $0 == ("x-amz-content-sha256", payload) })
  }

  @Test("Amazon's example of a presigned URL")
  func presigned() throws {
    let target = SigV4.Target(method: "GET", path: "/test.txt", fields: [Self.host])
    let query = Self.region.presignedQuery(target, by: try credentials(), at: Self.time, seconds: 86_400)
    #expect(
      query
        == "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2F"
        + "aws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature="
        + "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
  }

  @Test("a session token is a signed field, or an item of a presigned query")
  func sessionToken() throws {
    let target = SigV4.Target(method: "GET", path: "/", fields: [Self.host])
    let temporary = try credentials(token: "token/=")
    let fields = Self.region.signed(target, payloadSHA256: SigV4.emptyPayload, by: temporary, at: Self.time)
    #expect(fields.contains { $0 == ("x-amz-security-token", "token/=") })
    #expect(fields.last?.value.contains(";x-amz-security-token,") == true)
    let query = Self.region.presignedQuery(target, by: temporary, at: Self.time, seconds: 1)
    #expect(query.contains("&X-Amz-Security-Token=token%2F%3D&"))
  }

  @Test("the canonical request encodes each byte but the unreserved ones, once, and sorts by encoded bytes")
  func canonicalRequest() {
    let target = SigV4.Target(
      method: "GET", path: "/a b/../ü+%41~", query: [("b", "2"), ("a-b", "x"), ("a", "/ &=+"), ("a", "")],
      fields: [("host", "h"), ("x-a", "  1   2 ")])
    #expect(
      SigV4.canonicalRequest(target, payloadSHA256: "P") == """
        GET
        /a%20b/../%C3%BC%2B%2541~
        a=&a=%2F%20%26%3D%2B&a-b=x&b=2
        host:h
        x-a:1 2

        host;x-a
        P
        """)
  }
}
