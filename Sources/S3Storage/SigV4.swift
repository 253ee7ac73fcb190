// AWS Signature Version 4 for S3. Source: "Authenticating Requests (AWS Signature Version 4)" in Amazon's S3 API
// reference; the tests hold its published examples.
//
//   canonical request   method LF path LF query LF fields LF signed-names LF payload-hash
//     path              each byte but A-Z a-z 0-9 - . _ ~ and / as %XX; encoded once, and "." and ".." stay as they are
//     query             name=value, both encoded (also the /), sorted by their encoded bytes, joined by &
//     fields            name:value LF for each signed field, names in lower case, sorted, values trimmed
//     signed-names      these names joined by ;
//     payload-hash      SHA-256 of the content in hexadecimal digits, the value of x-amz-content-sha256
//   string to sign      "AWS4-HMAC-SHA256" LF time LF scope LF hex(SHA-256(canonical request))
//     time              20130524T000000Z, the value of x-amz-date
//     scope             20130524/region/s3/aws4_request
//   signing key         HMAC(HMAC(HMAC(HMAC("AWS4" + secret, date), region), "s3"), "aws4_request")
//   signature           hex(HMAC(signing key, string to sign))
//
// In a presigned URL, the time, the scope, the names and the signature are items of the query, the payload-hash is
// UNSIGNED-PAYLOAD, and only `host` is signed.

import Storage
import Terms

/// Signs requests to a store in one region. Pure: has neither a clock nor a network.
struct SigV4: Sendable {
  let region: String

  /// What is signed of a request.
  struct Target: Sendable {
    let method: String
    /// The path, not yet encoded, from the first slash.
    let path: String
    /// The items of the query, not yet encoded, in any order.
    var query: [(name: String, value: String)] = []
    /// The fields, names in lower case, in any order. `host` is one of them.
    var fields: [(name: String, value: String)] = []
  }

  /// The payload-hash of a presigned URL.
  static let unsignedPayload = "UNSIGNED-PAYLOAD"
  /// The payload-hash of a request without content.
  static let emptyPayload = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  /// The longest time for which a presigned URL can be valid, in seconds.
  static let longestPresignedSeconds = 604_800

  private static let algorithm = "AWS4-HMAC-SHA256"

  /// Returns the request's fields with those that sign it: `x-amz-date`, `x-amz-content-sha256`, for temporary
  /// credentials `x-amz-security-token`, and `authorization`.
  func signed(
    _ target: Target, payloadSHA256: String, by credentials: S3Credentials, at time: Timestamp
  ) -> [(name: String, value: String)] {
    var target = target
    target.fields.append((name: "x-amz-date", value: Self.text(of: time)))
    target.fields.append((name: "x-amz-content-sha256", value: payloadSHA256))
    if let token = credentials.sessionToken { target.fields.append((name: "x-amz-security-token", value: token)) }
    let signature = signature(of: target, payloadSHA256, credentials, time)
    let value =
      "\(Self.algorithm) Credential=\(credentials.accessKey)/\(scope(time)),"
      + "SignedHeaders=\(Self.signedNames(target)),Signature=\(signature)"
    return target.fields + [(name: "authorization", value: value)]
  }

  /// Returns the encoded query of a URL that anyone can use for `seconds`, at most `longestPresignedSeconds`.
  func presignedQuery(
    _ target: Target, by credentials: S3Credentials, at time: Timestamp, seconds: Int
  ) -> String {
    precondition((1...Self.longestPresignedSeconds).contains(seconds), "a presigned URL is valid for a week at most")
    var target = target
    target.query += [
      (name: "X-Amz-Algorithm", value: Self.algorithm),
      (name: "X-Amz-Credential", value: "\(credentials.accessKey)/\(scope(time))"),
      (name: "X-Amz-Date", value: Self.text(of: time)), (name: "X-Amz-Expires", value: "\(seconds)"),
      (name: "X-Amz-SignedHeaders", value: Self.signedNames(target)),
    ]
    if let token = credentials.sessionToken { target.query.append((name: "X-Amz-Security-Token", value: token)) }
    let signature = signature(of: target, Self.unsignedPayload, credentials, time)
    return "\(Self.canonicalQuery(target.query))&X-Amz-Signature=\(signature)"
  }

  // MARK: The steps

  static func canonicalRequest(_ target: Target, payloadSHA256: String) -> String {
    let fields = sortedFields(target).map { "\($0.name):\(trimmed($0.value))\n" }.joined()
    return """
      \(target.method)
      \(URIEncoding.path(target.path))
      \(canonicalQuery(target.query))
      \(fields)
      \(signedNames(target))
      \(payloadSHA256)
      """
  }

  static func canonicalQuery(_ query: [(name: String, value: String)]) -> String {
    query.map { (name: URIEncoding.component($0.name), value: URIEncoding.component($0.value)) }
      .sorted {
        Array($0.name.utf8).lexicographicallyPrecedes($1.name.utf8) || $0.name == $1.name && $0.value < $1.value
      }
      .map { "\($0.name)=\($0.value)" }.joined(separator: "&")
  }

  private func signature(
    of target: Target, _ payloadSHA256: String, _ credentials: S3Credentials, _ time: Timestamp
  ) -> String {
    let request = Self.canonicalRequest(target, payloadSHA256: payloadSHA256)
    let text = """
      \(Self.algorithm)
      \(Self.text(of: time))
      \(scope(time))
      \(Hexadecimal.text(SHA256.digest(of: Array(request.utf8))))
      """
    var key = Array("AWS4\(credentials.secretKey)".utf8)
    for part in [Self.date(of: time), region, "s3", "aws4_request"] {
      key = HMACSHA256.digest(of: Array(part.utf8), key: key)
    }
    return HMACSHA256.hexDigest(of: Array(text.utf8), key: key)
  }

  private func scope(_ time: Timestamp) -> String { "\(Self.date(of: time))/\(region)/s3/aws4_request" }

  /// 20130524T000000Z
  static func text(of time: Timestamp) -> String {
    String(time.rfc3339.prefix(19).filter { $0 != "-" && $0 != ":" }) + "Z"
  }

  private static func date(of time: Timestamp) -> String { String(text(of: time).prefix(8)) }

  private static func sortedFields(_ target: Target) -> [(name: String, value: String)] {
    target.fields.sorted { $0.name < $1.name }
  }

  private static func signedNames(_ target: Target) -> String {
    sortedFields(target).map(\.name).joined(separator: ";")
  }

  /// Without spaces at the ends, and with one space where there are several.
  private static func trimmed(_ value: String) -> String {
    value.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
  }
}
