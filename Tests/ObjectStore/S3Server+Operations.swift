import HTTP
import Storage

/// A request whose signature is valid.
struct StoreRequest: Sendable {
  let method: String
  let bucket: String
  /// Nil for the bucket itself.
  let key: String?
  let fields: HTTPFields
  let body: [UInt8]
  private let query: [QueryItem]

  /// The bucket is the first label of the host, or else the first segment of the path.
  init(_ request: HTTPRequest, body: [UInt8]) {
    (method, fields, query) = (request.method.rawValue, request.fields, request.target.query)
    self.body = body
    var segments = request.target.segments[...]
    let host = request.fields["Host"] ?? ""
    if let name = host.split(separator: ".").first, host.contains(".localhost") {
      bucket = String(name)
    } else {
      bucket = segments.popFirst() ?? ""
    }
    key = segments.isEmpty || segments == [""] ? nil : segments.joined(separator: "/")
  }

  func item(_ name: String) -> String? { query.first { $0.name == name }?.value }
}

/// Texts of answers.
enum StoreText {
  static func encoded(_ text: String) -> String {
    text.utf8.map { byte in
      let scalar = Unicode.Scalar(byte)
      let isUnreserved = scalar.isASCII && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil)
      if isUnreserved || "-._~".unicodeScalars.contains(scalar) { return String(Character(scalar)) }
      return "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
    }.joined()
  }

  static func xml(_ text: String) -> [UInt8] { Array("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\(text)".utf8) }
}

extension S3Server {
  /// Carries out a request.
  func perform(_ request: StoreRequest) throws -> HTTPResponse {
    try state.withLock { state in
      guard state.objects[request.bucket] != nil else { throw StoreFailure(404, "NoSuchBucket") }
      guard let key = request.key else { return try Self.list(request, state) }
      switch (request.method, request.item("uploadId")) {
      case ("PUT", nil):
        if request.fields["If-None-Match"] == "*", state.objects[request.bucket]?[key] != nil {
          throw StoreFailure(412, "PreconditionFailed")
        }
        let object = StoredObject(bytes: request.body, sha256: request.fields[Self.digestField])
        try Self.checkQuota(object.bytes.count, request.bucket, state)
        state.objects[request.bucket]?[key] = object
        return HTTPResponse(.ok, fields: ["ETag": object.entityTag])
      case ("PUT", let id?): return try Self.putPart(request, id, &state)
      case ("GET", let id?): return try Self.listParts(id, state)
      case ("GET", nil), ("HEAD", _):
        guard let object = state.objects[request.bucket]?[key] else { throw StoreFailure(404, "NoSuchKey") }
        return try Self.get(object, request)
      case ("DELETE", nil):
        state.objects[request.bucket]?[key] = nil
        return HTTPResponse(.noContent)
      case ("DELETE", let id?):
        guard state.uploads.removeValue(forKey: id) != nil else { throw StoreFailure(404, "NoSuchUpload") }
        return HTTPResponse(.noContent)
      case ("POST", nil):
        guard request.item("uploads") != nil else { throw StoreFailure(501, "NotImplemented") }
        let id = "upload/\(state.nextUpload)+"
        state.nextUpload += 1
        state.uploads[id] = PartialObject(
          bucket: request.bucket, key: key, sha256: request.fields[Self.digestField])
        return HTTPResponse(
          .ok,
          body: .bytes(
            StoreText.xml("<InitiateMultipartUploadResult><UploadId>\(id)</UploadId></InitiateMultipartUploadResult>")))
      case ("POST", let id?): return try Self.complete(request, id, &state)
      default: throw StoreFailure(405, "MethodNotAllowed")
      }
    }
  }

  /// A field that is kept with an object.
  private static let digestField = "x-amz-meta-sha256"

  private static func checkQuota(_ bytes: Int, _ bucket: String, _ state: State) throws {
    let used = state.objects[bucket]?.values.reduce(0) { $0 + $1.bytes.count } ?? 0
    guard used + bytes <= state.quotaBytes else { throw StoreFailure(403, "QuotaExceeded") }
  }

  private static func get(_ object: StoredObject, _ request: StoreRequest) throws -> HTTPResponse {
    if let tag = request.fields["If-Match"], tag != object.entityTag { throw StoreFailure(412, "PreconditionFailed") }
    var fields: HTTPFields = ["ETag": object.entityTag]
    if let sha256 = object.sha256 { fields.append(digestField, sha256) }
    for name in ["Content-Type", "Content-Disposition", "Cache-Control"] {
      if let value = request.item("response-" + name.lowercased()) { fields.append(name, value) }
    }
    guard let text = request.fields["Range"] else {
      return HTTPResponse(.ok, fields: fields, body: .bytes(object.bytes))
    }
    let bounds = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
    guard bounds.count == 2, let first = bounds[0], first < object.bytes.count else {
      throw StoreFailure(416, "InvalidRange")
    }
    let last = min(bounds[1] ?? .max, object.bytes.count - 1)
    fields.append("Content-Range", "bytes \(first)-\(last)/\(object.bytes.count)")
    return HTTPResponse(.partialContent, fields: fields, body: .bytes(Array(object.bytes[first...last])))
  }

  private static func putPart(_ request: StoreRequest, _ id: String, _ state: inout State) throws -> HTTPResponse {
    guard let upload = state.uploads[id], upload.key == request.key else { throw StoreFailure(404, "NoSuchUpload") }
    guard let number = request.item("partNumber").flatMap({ Int($0) }), (1...10_000).contains(number) else {
      throw StoreFailure(400, "InvalidArgument")
    }
    guard let source = request.fields["x-amz-copy-source"] else {
      let part = StoredObject(bytes: request.body)
      state.uploads[id]?.parts[number] = part
      return HTTPResponse(.ok, fields: ["ETag": part.entityTag])
    }
    let prefix = "/\(request.bucket)/"
    let key = state.objects[request.bucket]?.keys.first {
      prefix + $0.split(separator: "/").map { StoreText.encoded(String($0)) }.joined(separator: "/") == source
    }
    guard let key, let object = state.objects[request.bucket]?[key] else { throw StoreFailure(404, "NoSuchKey") }
    var bytes = object.bytes[...]
    if let range = request.fields["x-amz-copy-source-range"] {
      let bounds = range.dropFirst(6).split(separator: "-").compactMap { Int($0) }
      guard bounds.count == 2, bounds[0] <= bounds[1], bounds[1] < bytes.count else {
        throw StoreFailure(400, "InvalidArgument")
      }
      bytes = bytes[bounds[0]...bounds[1]]
    }
    let part = StoredObject(bytes: Array(bytes))
    state.uploads[id]?.parts[number] = part
    let tag = part.entityTag.replacing("\"", with: "&quot;")
    return HTTPResponse(
      .ok, body: .bytes(StoreText.xml("<CopyPartResult><ETag>\(tag)</ETag></CopyPartResult>")))
  }

  private static func complete(_ request: StoreRequest, _ id: String, _ state: inout State) throws -> HTTPResponse {
    guard let upload = state.uploads[id], upload.key == request.key else { throw StoreFailure(404, "NoSuchUpload") }
    var bytes: [UInt8] = []
    let named = String(decoding: request.body, as: UTF8.self).split(separator: "<PartNumber>").dropFirst()
    for (index, part) in named.enumerated() {
      guard let number = Int(part.prefix { $0 != "<" }), let stored = upload.parts[number],
        part.contains(stored.entityTag.replacing("\"", with: "&quot;"))
      else { throw StoreFailure(400, "InvalidPart") }
      guard stored.bytes.count >= 5 << 20 || index == named.count - 1 else { throw StoreFailure(400, "EntityTooSmall") }
      bytes += stored.bytes
    }
    guard !named.isEmpty else { throw StoreFailure(400, "MalformedXML") }
    try checkQuota(bytes.count, upload.bucket, state)
    state.uploads[id] = nil
    let object = StoredObject(bytes: bytes, sha256: upload.sha256)
    state.objects[upload.bucket]?[upload.key] = object
    return HTTPResponse(
      .ok,
      body: .bytes(StoreText.xml("<CompleteMultipartUploadResult><Key>x</Key></CompleteMultipartUploadResult>")))
  }

  private static func list(_ request: StoreRequest, _ state: State) throws -> HTTPResponse {
    if request.method == "GET", request.item("uploads") != nil { return listUploads(request, state) }
    guard request.method == "GET", request.item("list-type") == "2" else { throw StoreFailure(501, "NotImplemented") }
    let prefix = request.item("prefix") ?? ""
    let limit = request.item("max-keys").flatMap { Int($0) } ?? 1000
    let after = request.item("continuation-token") ?? ""
    let objects = (state.objects[request.bucket] ?? [:]).filter { $0.key.hasPrefix(prefix) && $0.key > after }
      .sorted { $0.key < $1.key }
    let page = objects.prefix(limit)
    let isEncoded = request.item("encoding-type") == "url"
    let contents = page.map { key, object in
      let shown = isEncoded ? StoreText.encoded(key).replacing("%20", with: "+").replacing("%2F", with: "/") : key
      return "<Contents><Key>\(shown)</Key><LastModified>\(object.modified.rfc3339)</LastModified>"
        + "<Size>\(object.bytes.count)</Size></Contents>"
    }
    var text = "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
    if isEncoded { text += "<EncodingType>url</EncodingType>" }
    text += "<IsTruncated>\(objects.count > limit)</IsTruncated>"
    if objects.count > limit, let last = page.last?.key {
      let token = last.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
      text += "<NextContinuationToken>\(token)</NextContinuationToken>"
    }
    return HTTPResponse(.ok, body: .bytes(StoreText.xml(text + contents.joined() + "</ListBucketResult>")))
  }

  /// All multipart uploads in progress, on one page.
  private static func listUploads(_ request: StoreRequest, _ state: State) -> HTTPResponse {
    let prefix = request.item("prefix") ?? ""
    let uploads = state.uploads.filter { $0.value.bucket == request.bucket && $0.value.key.hasPrefix(prefix) }
      .sorted { ($0.value.key, $0.key) < ($1.value.key, $1.key) }
    let contents = uploads.map { id, upload in
      let key = upload.key.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
      return "<Upload><Key>\(key)</Key><UploadId>\(id)</UploadId></Upload>"
    }
    let text = "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>\(contents.joined())"
    return HTTPResponse(.ok, body: .bytes(StoreText.xml(text + "</ListMultipartUploadsResult>")))
  }

  /// All parts of a multipart upload, on one page.
  private static func listParts(_ id: String, _ state: State) throws -> HTTPResponse {
    guard let upload = state.uploads[id] else { throw StoreFailure(404, "NoSuchUpload") }
    let parts = upload.parts.keys.sorted().map { "<Part><PartNumber>\($0)</PartNumber></Part>" }
    let text = "<ListPartsResult><IsTruncated>false</IsTruncated>\(parts.joined())</ListPartsResult>"
    return HTTPResponse(.ok, body: .bytes(StoreText.xml(text)))
  }
}
