// Verifies AWS Signature Version 4 from what arrived. Shares no code with the client but the digests.

import HTTP
import Storage

/// The signature of a request, in `Authorization` or in the query.
struct SignatureCheck {
  private let request: HTTPRequest
  private let keys: [S3Server.Key]
  private let region: String
  private let now: Int64

  init(_ request: HTTPRequest, _ store: S3Server) {
    self.request = request
    region = store.region
    (keys, now) = store.state.withLock { ($0.keys, Timestamp.now.milliseconds / 1000 + $0.clockOffsetSeconds) }
  }

  /// Throws the failure that a store reports.
  func verify() throws {
    let isPresigned = item("X-Amz-Signature") != nil
    let parts = isPresigned ? presignedParts : headerParts
    guard let credential = parts["Credential"]?.split(separator: "/").map(String.init), credential.count == 5,
      let names = parts["SignedHeaders"]?.split(separator: ";").map(String.init), let signature = parts["Signature"],
      let time = isPresigned ? item("X-Amz-Date") : request.fields["x-amz-date"], time.count == 16,
      let instant = Timestamp(rfc3339: Self.rfc3339(time)), names.contains("host")
    else { throw StoreFailure(403, "AccessDenied") }
    guard let key = keys.first(where: { $0.accessKey == credential[0] }) else {
      throw StoreFailure(403, "InvalidAccessKeyId")
    }
    guard credential[1] == time.prefix(8), credential[3...] == ["s3", "aws4_request"] else {
      throw StoreFailure(400, "AuthorizationHeaderMalformed")
    }
    guard credential[2] == region else {
      throw StoreFailure(400, "AuthorizationHeaderMalformed", [(name: "Region", value: region)])
    }
    let age = now - instant.milliseconds / 1000
    let limit = isPresigned ? Int64(item("X-Amz-Expires") ?? "") ?? 0 : 900
    guard age <= limit, age >= -900 else {
      throw StoreFailure(
        403, isPresigned ? "AccessDenied" : "RequestTimeTooSkewed",
        [(name: "ServerTime", value: Timestamp(milliseconds: now * 1000).rfc3339)])
    }
    guard !key.hasExpired else { throw StoreFailure(400, "ExpiredToken") }
    let token = isPresigned ? item("X-Amz-Security-Token") : request.fields["x-amz-security-token"]
    guard token == key.sessionToken else { throw StoreFailure(400, "InvalidToken") }
    let amazons = request.fields.map { $0.name.lowercased() }.filter { $0.hasPrefix("x-amz-") }
    guard amazons.allSatisfy(names.contains) else { throw StoreFailure(403, "AccessDenied") }
    guard signature == expected(time: time, names: names, secretKey: key.secretKey, isPresigned: isPresigned) else {
      throw StoreFailure(403, "SignatureDoesNotMatch")
    }
  }

  /// Throws if the content isn't the one that was signed.
  static func verify(_ body: [UInt8], of request: HTTPRequest) throws {
    let signed = request.fields["x-amz-content-sha256"]
    guard signed == nil || signed == "UNSIGNED-PAYLOAD" || signed == hexadecimal(SHA256.digest(of: body)) else {
      throw StoreFailure(400, "XAmzContentSHA256Mismatch")
    }
  }

  private func item(_ name: String) -> String? { request.target.query.first { $0.name == name }?.value }

  private var presignedParts: [String: String] {
    var parts: [String: String] = [:]
    for name in ["Credential", "SignedHeaders", "Signature"] { parts[name] = item("X-Amz-" + name) }
    return parts
  }

  private var headerParts: [String: String] {
    var parts: [String: String] = [:]
    let value = request.fields["Authorization"] ?? ""
    guard value.hasPrefix("AWS4-HMAC-SHA256 ") else { return [:] }
    for part in value.dropFirst(17).split(separator: ",") {
      let pair = part.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
      if pair.count == 2 { parts[String(pair[0])] = String(pair[1]) }
    }
    return parts
  }

  private func expected(time: String, names: [String], secretKey: String, isPresigned: Bool) -> String {
    let query = request.target.query.filter { $0.name != "X-Amz-Signature" }
      .map { StoreText.encoded($0.name) + "=" + StoreText.encoded($0.value) }.sorted().joined(separator: "&")
    let path = request.target.segments.map { StoreText.encoded($0) }.joined(separator: "/")
    let fields = names.map { "\($0):\(request.fields[$0] ?? "")\n" }.joined()
    let payload = isPresigned ? "UNSIGNED-PAYLOAD" : request.fields["x-amz-content-sha256"] ?? ""
    let canonical = [
      request.method.rawValue, "/" + path, query, fields, names.joined(separator: ";"), payload,
    ].joined(separator: "\n")
    let scope = [String(time.prefix(8)), region, "s3", "aws4_request"]
    let text = [
      "AWS4-HMAC-SHA256", time, scope.joined(separator: "/"),
      Self.hexadecimal(SHA256.digest(of: Array(canonical.utf8))),
    ].joined(separator: "\n")
    let key = scope.reduce(Array("AWS4\(secretKey)".utf8)) { HMACSHA256.digest(of: Array($1.utf8), key: $0) }
    return HMACSHA256.hexDigest(of: Array(text.utf8), key: key)
  }

  /// 20130524T000000Z as 2013-05-24T00:00:00Z.
  private static func rfc3339(_ time: String) -> String {
    var text = Array(time)
    for (index, mark) in [(13, ":"), (11, ":"), (6, "-"), (4, "-")] as [(Int, Character)] {
      text.insert(mark, at: index)
    }
    return String(text)
  }

  private static func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
