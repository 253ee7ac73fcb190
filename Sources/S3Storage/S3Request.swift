import Storage

/// The content of a request.
enum S3Content: Sendable {
  case bytes([UInt8], sha256: String)
  /// A part of a file.
  case file(TransferFile, Range<Int64>, sha256: String)

  /// Nothing, with Content-Length: 0.
  static let empty = S3Content.bytes([], sha256: SigV4.emptyPayload)

  var length: Int64 {
    switch self {
    case .bytes(let bytes, _): Int64(bytes.count)
    case .file(_, let range, _): range.upperBound - range.lowerBound
    }
  }

  var sha256: String {
    switch self {
    case .bytes(_, let sha256), .file(_, _, let sha256): sha256
    }
  }
}

/// A request that isn't signed yet.
struct S3Request: Sendable {
  enum Method: String, Sendable { case get = "GET", head = "HEAD", put = "PUT", post = "POST", delete = "DELETE" }

  let method: Method
  /// The object, without the bucket's prefix; nil for the bucket.
  var key: String?
  var query: [(name: String, value: String)] = []
  /// Further fields, names in lower case.
  var fields: [(name: String, value: String)] = []
  /// The content of a PUT or POST.
  var content: S3Content?
  /// Maximum length of the answer's content in memory, in bytes.
  var answerLimit = 64 << 10
  /// The name of the document in a successful answer, if it must be checked: operations that take long send 200 before
  /// they know how they end, and then maybe an error.
  var resultName: String?

  /// How many bytes the store copies or joins before it answers.
  var bytesInStore: Int64 = 0
  /// Whether it goes over a connection of its own: because libcurl must not resend it when a reused one turns out to be
  /// closed, although the store may have carried it out, or because the last one may damage what it carries.
  var needsNewConnection = false

  /// Whether it sends or fetches what may take long, rather than having the store do so.
  var transfersMuch: Bool { method == .get || content?.length ?? 0 > 1 << 20 }

  /// The error of an answer; nil if it is a success.
  func error(in response: S3Response) -> S3Error? {
    // `S3Client.head` asks again in a way that shows what is missing.
    if method == .head, response.status == 404 { return .noSuchKey }
    guard response.isSuccess else { return S3Error(response) }
    guard let resultName else { return nil }
    switch XMLElement(parsing: response.body)?.name {
    case resultName: return nil
    case "Error": return S3Error(response)
    default: return .malformedAnswer(what: resultName)
    }
  }
}

/// An answer.
struct S3Response: Sendable {
  let status: Int
  /// The fields, names in lower case; of repeated ones the last.
  let fields: [String: String]
  /// The content, if it wasn't written to a file.
  let body: [UInt8]

  var isSuccess: Bool { (200..<300).contains(status) }
}

extension S3Error {
  /// The error that an answer reports. `body` is XML, or empty after HEAD.
  init(_ response: S3Response) {
    let document = XMLElement(parsing: response.body)
    let error = document?.name == "Error" ? document : document?["Error"]
    let region = error?["Region"]?.text ?? response.fields["x-amz-bucket-region"]
    // Ceph has no such element, but every store sends the field.
    let serverTime =
      error?["ServerTime"].flatMap { Timestamp(rfc3339: $0.text) } ?? response.fields["date"].flatMap(Self.time)
    self = Self.about(
      error?["Code"]?.text ?? "", status: response.status, region: region, serverTime: serverTime,
      message: error?["Message"]?.text)
  }

  /// Parses a date in the format IMF-fixdate (RFC 9110, section 5.6.7), such as "Thu, 26 Nov 2026 19:00:27 GMT".
  private static func time(_ text: String) -> Timestamp? {
    let parts = text.split(separator: " ")
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    guard parts.count == 6, parts[5] == "GMT", let month = months.firstIndex(of: String(parts[2])) else { return nil }
    return Timestamp(rfc3339: "\(parts[3])-\(month < 9 ? "0" : "")\(month + 1)-\(parts[1])T\(parts[4])Z")
  }

  private static func about(
    _ code: String, status: Int, region: String?, serverTime: Timestamp?, message: String?
  ) -> S3Error {
    switch code {
    case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
      return .badCredentials(code: code)
    case "AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect", "IllegalLocationConstraintException":
      // A malformed field that isn't about the region names none.
      if code == "AuthorizationHeaderMalformed", region == nil { break }
      return .wrongRegion(expected: region)
    case "RequestTimeTooSkewed", "RequestExpired": return .clockSkew(serverTime: serverTime)
    case "NoSuchBucket": return .noSuchBucket
    case "NoSuchKey": return .noSuchKey
    case "NoSuchUpload": return .noSuchUpload
    // OpenStack Swift says that an object is too large if it exceeds the bucket's quota; ours never are otherwise.
    case "QuotaExceeded", "EntityTooLarge": return .quotaExceeded
    case "XAmzContentSHA256Mismatch", "BadDigest": return .damaged
    // The store waited for content that was late.
    case "RequestTimeout", "InternalError", "SlowDown", "ServiceUnavailable":
      return .unavailable(status: status, code: code)
    default: break
    }
    let code = code.isEmpty ? nil : code
    switch status {
    case 301, 307: return .wrongRegion(expected: region)
    case 403: return .accessDenied
    // Only a code says that it is the object that is missing: without one, a proxy may have answered.
    case 404: return .unavailable(status: status, code: code)
    case 412: return .changed
    case 507: return .quotaExceeded
    case 429, 500, 502, 503, 504: return .unavailable(status: status, code: code)
    default: return .refused(status: status, code: code, message: message)
    }
  }
}
