/// Content with the metadata needed to evaluate conditions and ranges.
package struct Representation: Sendable {
  /// The bytes, file, or stream. A stream without `part` is always sent whole.
  package var body: ResponseBody
  /// Returns a part of the stream in `body`; nil for other bodies, which can be sliced anyway.
  package var part: (@Sendable (Range<Int64>) -> ResponseBody)?
  fileprivate let head: Head

  /// All fields of the whole content.
  package var fields: HTTPFields { head.fields }

  /// Metadata of the content. Built once and shared, because objects that are polled keep their representation.
  fileprivate final class Head: Sendable {
    let acceptsRanges: Bool
    /// All fields of the whole content.
    let fields: HTTPFields
    /// The compressed forms of content in memory.
    let forms: CodedForms

    init(_ fields: HTTPFields, acceptsRanges: Bool = false, isPermanent: Bool = false) {
      (self.fields, self.acceptsRanges, forms) = (fields, acceptsRanges, CodedForms(isPermanent: isPermanent))
    }

    convenience init(
      _ contentType: String, _ etag: String?, _ cacheControl: String, _ fields: HTTPFields, _ acceptsRanges: Bool,
      _ isPermanent: Bool
    ) {
      var fields = fields
      var own = [("Cache-Control", cacheControl), ("Content-Type", contentType)]
      if let etag { own.append(("ETag", etag)) }
      if acceptsRanges { own.append(("Accept-Ranges", "bytes")) }
      for (name, _) in own { fields.remove(name) }
      fields.append(own)
      if ContentCoding.isWorthwhile(contentType) { fields.vary(by: "Accept-Encoding") }
      self.init(fields, acceptsRanges: acceptsRanges, isPermanent: isPermanent)
    }

    // Read from the fields, because most requests need none of them.
    var contentType: String { fields["Content-Type"] ?? "" }
    var etag: String? { fields["ETag"] }
    var lastModified: HTTPDate? { fields["Last-Modified"].flatMap(HTTPDate.init) }

    /// The fields that a 304 carries too (RFC 9110 §15.4.5).
    var metadata: HTTPFields {
      var metadata = fields
      metadata.remove("Content-Type")
      return metadata
    }
  }

  /// Creates a representation from its parts.
  ///
  /// `etag`: with its quotes, and with `W/` if it is weak; nil for none. `fields`: additional fields, such as `Vary`,
  /// `Content-Disposition`, or `Last-Modified`. `acceptsRanges`: whether ranges are served.
  /// `isPermanent`: whether the content stays the same while the process runs, so that compressing it well pays.
  package init(
    body: ResponseBody, contentType: String, etag: String?, cacheControl: String, fields: HTTPFields = [:],
    acceptsRanges: Bool = false, isPermanent: Bool = false
  ) {
    self.body = body
    head = Head(contentType, etag, cacheControl, fields, acceptsRanges, isPermanent)
  }

  /// Creates a representation that is always sent whole. `fields`: all fields of the response, with `Cache-Control`,
  /// `Content-Type`, and, if they apply, `ETag` and `Vary`.
  package init(body: ResponseBody, allFields fields: HTTPFields) {
    self.body = body
    head = Head(fields)
  }
}

extension HTTPResponse {
  /// Creates the response if the request's conditions make the content unnecessary: 304 or 412. Fails if the content
  /// must be sent. If the content is expensive to make, try this first.
  package init?(sparing representation: Representation, for request: HTTPRequest) {
    if request.isPlain { return nil }
    switch Precondition(request, etag: representation.head.etag, lastModified: representation.head.lastModified) {
    case .notModified:
      self.init(.notModified, fields: representation.head.metadata)
      if let etag = representation.head.etag { fields["ETag"] = Precondition.tagHeld(by: request, of: etag) }
    case .failed:
      self = Problem.preconditionFailed.response()
    case .proceed: return nil
    }
  }

  /// Creates the response to a request for a representation: 200, 206, 304, 412, or 416, depending on its conditions
  /// and ranges.
  package init(_ representation: Representation, for request: HTTPRequest) {
    if request.isPlain {
      self.init(.ok, fields: representation.head.fields, body: representation.body)
      return
    }
    if let spared = HTTPResponse(sparing: representation, for: request) {
      self = spared
      return
    }
    var fields = representation.head.fields
    guard representation.head.acceptsRanges, request.method == .get, let length = representation.body.length,
      representation.body.canBeSliced || representation.part != nil,
      Precondition.allowsRange(request, etag: representation.head.etag, lastModified: representation.head.lastModified)
    else {
      self.init(.ok, fields: fields, body: representation.body)
      forms = representation.head.forms
      return
    }
    switch ByteRangeRequest(request.fields["Range"], length: length) {
    case .whole:
      self.init(.ok, fields: fields, body: representation.body)
      forms = representation.head.forms
    case .unsatisfiable:
      self = Problem.unsatisfiableRange(length: length).response()
    case .ranges(let ranges) where ranges.count == 1:
      fields["Content-Range"] = Self.contentRange(ranges[0], length)
      let part = representation.part?(ranges[0]) ?? representation.body.slice(ranges[0])
      self.init(.partialContent, fields: fields, body: part)
    case .ranges where representation.part != nil:
      // Several streams can't be joined; the whole content is allowed instead (RFC 9110 §14.2).
      self.init(.ok, fields: fields, body: representation.body)
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
        "\r\n--\(boundary)\r\nContent-Type: \(representation.head.contentType)\r\n"
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
