/// Content with what is needed to answer conditions and ranges about it.
public struct Representation: Sendable {
  /// Bytes or a file; a stream is always answered whole.
  public var body: ResponseBody
  /// The media type.
  public var contentType: String
  /// With its quotes, `W/` in front where it is weak; nil where there is none.
  public var etag: String?
  /// The Cache-Control value.
  public var cacheControl: String
  /// Further fields, such as `Vary`, `Content-Disposition` or `Last-Modified`.
  public var fields: HTTPFields
  /// Whether parts of it are served.
  public var acceptsRanges: Bool

  /// A representation of these parts.
  public init(
    body: ResponseBody, contentType: String, etag: String?, cacheControl: String, fields: HTTPFields = [:],
    acceptsRanges: Bool = false
  ) {
    (self.body, self.contentType, self.etag) = (body, contentType, etag)
    (self.cacheControl, self.fields, self.acceptsRanges) = (cacheControl, fields, acceptsRanges)
  }

  /// What a 304 has too (RFC 9110 §15.4.5).
  fileprivate var metadata: HTTPFields {
    var fields = fields
    if let etag { fields["ETag"] = etag }
    fields["Cache-Control"] = cacheControl
    if acceptsRanges { fields["Accept-Ranges"] = "bytes" }
    return fields
  }
}

extension HTTPResponse {
  /// Answers a request for a representation: 200, 206, 304, 412 or 416, as its conditions and ranges ask.
  public init(_ representation: Representation, for request: HTTPRequest) {
    let lastModified = representation.fields["Last-Modified"].flatMap(HTTPDate.init)
    switch Precondition(request, etag: representation.etag, lastModified: lastModified) {
    case .notModified:
      self.init(.notModified, fields: representation.metadata)
      return
    case .failed:
      self =
        Problem(.preconditionFailed, code: "precondition_failed", detail: "What is here has another version.")
        .response()
      return
    case .proceed: break
    }
    var fields = representation.metadata
    fields["Content-Type"] = representation.contentType
    guard representation.acceptsRanges, request.method == .get, let length = representation.body.length,
      representation.body.canBeSliced,
      Precondition.allowsRange(request, etag: representation.etag, lastModified: lastModified)
    else {
      self.init(.ok, fields: fields, body: representation.body)
      return
    }
    switch ByteRangeRequest(request.fields["Range"], length: length) {
    case .whole: self.init(.ok, fields: fields, body: representation.body)
    case .unsatisfiable:
      self =
        Problem(
          .rangeNotSatisfiable, code: "range_not_satisfiable", detail: "The content has \(length) bytes.",
          parameter: "Range", fields: ["Content-Range": "bytes */\(length)"]
        ).response()
    case .ranges(let ranges) where ranges.count == 1:
      fields["Content-Range"] = Self.contentRange(ranges[0], length)
      self.init(.partialContent, fields: fields, body: representation.body.slice(ranges[0]))
    case .ranges(let ranges):
      self = Self.multipart(ranges, of: representation, length, fields)
    }
  }

  /// multipart/byteranges (RFC 9110 §14.6).
  private static func multipart(
    _ ranges: [Range<Int64>], of representation: Representation, _ length: Int64, _ fields: HTTPFields
  ) -> HTTPResponse {
    let boundary =
      RequestIdentifier.make(.random(in: .min ... .max)) + RequestIdentifier.make(.random(in: .min ... .max))
    var parts: [ResponseBody] = []
    for range in ranges {
      let head =
        "\r\n--\(boundary)\r\nContent-Type: \(representation.contentType)\r\n"
        + "Content-Range: \(contentRange(range, length))\r\n\r\n"
      parts.append(.bytes(Array(head.utf8)))
      parts.append(representation.body.slice(range))
    }
    parts.append(.bytes(Array("\r\n--\(boundary)--\r\n".utf8)))
    var fields = fields
    fields["Content-Type"] = "multipart/byteranges; boundary=\(boundary)"
    return HTTPResponse(.partialContent, fields: fields, body: .sequence(parts))
  }

  private static func contentRange(_ range: Range<Int64>, _ length: Int64) -> String {
    "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"
  }
}

extension ResponseBody {
  fileprivate var canBeSliced: Bool {
    switch self {
    case .empty, .bytes, .file: true
    case .sequence, .stream: false
    }
  }

  fileprivate func slice(_ range: Range<Int64>) -> ResponseBody {
    switch self {
    case .bytes(let bytes): .bytes(Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
    case .file(let file): .file(file.slice(range))
    case .empty, .sequence, .stream: self
    }
  }
}
