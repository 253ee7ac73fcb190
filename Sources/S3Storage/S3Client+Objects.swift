import Storage
import Terms

/// What a store says about an object.
package struct S3ObjectInfo: Sendable, Equatable {
  /// Length in bytes.
  package let bytes: Int64
  /// The version: changes with the content.
  package let entityTag: String
  /// The SHA-256 that the client gave when it created the object, as 64 lower-case hexadecimal digits; nil if it gave
  /// none.
  package let sha256: String?

  /// Creates what a test expects of an object.
  init(bytes: Int64, entityTag: String, sha256: String? = nil) {
    (self.bytes, self.entityTag, self.sha256) = (bytes, entityTag, sha256)
  }

  /// Reads an answer about an object of `bytes` bytes.
  init(bytes: Int64, _ fields: [String: String]) {
    let sha256 = fields[Self.digestField].flatMap { text in
      text.utf8.count == 64 && text.allSatisfy { $0.isHexDigit && !$0.isUppercase } ? text : nil
    }
    self.init(bytes: bytes, entityTag: fields["etag"] ?? "", sha256: sha256)
  }

  /// Maximum length of an object whose length nobody else has said, in bytes: by default, eight times that of an
  /// upload.
  static let lengthLimit: Int64 = 64 << 30

  /// The store keeps this field with the object, and sends it with the object's head.
  static let digestField = "x-amz-meta-sha256"
}

extension S3Client {
  /// Stores a file, or the part `range` of it, as an object. Returns once the store has acknowledged it.
  ///
  /// The store checks the content by its SHA-256. `sha256`, in hexadecimal digits, is that of the part; without it, the
  /// part is read twice.
  package func put(
    file path: String, _ range: Range<Int64>? = nil, sha256: String? = nil, as key: String
  ) throws(S3Error) {
    try put(try Self.content(of: path, range, sha256: sha256), as: key)
  }

  /// Stores bytes as an object. With `onlyIfAbsent`, throws `.changed` if it exists; not every store can do that.
  package func put(_ bytes: [UInt8], as key: String, onlyIfAbsent: Bool = false) throws(S3Error) {
    let content = S3Content.bytes(bytes, sha256: Hexadecimal.text(SHA256.digest(of: bytes)))
    try put(content, as: key, onlyIfAbsent ? [(name: "if-none-match", value: "*")] : [])
  }

  private func put(
    _ content: S3Content, as key: String, _ more: [(name: String, value: String)] = []
  ) throws(S3Error) {
    let fields = creationFields(sha256: content.sha256) + more
    let request = S3Request(method: .put, key: key, fields: fields, content: content)
    _ = try send(request)
  }

  /// Returns the fields of a request that creates an object with this SHA-256.
  func creationFields(sha256: String?) -> [(name: String, value: String)] {
    let encryption = bucket.encryption.map { [(name: "x-amz-server-side-encryption", value: $0)] } ?? []
    return encryption + (sha256.map { [(name: S3ObjectInfo.digestField, value: $0)] } ?? [])
  }

  static func content(of path: String, _ range: Range<Int64>?, sha256: String?) throws(S3Error) -> S3Content {
    let file = try TransferFile(reading: path)
    let length = try file.length()
    let range = range ?? 0..<length
    if let sha256 { return .file(file, range, sha256: sha256) }
    return .file(file, range, sha256: try file.sha256(of: range))
  }

  /// Returns the bytes `range` of an object; fewer if the object ends before, none if it ends before the range begins.
  /// `range` isn't empty. With `entityTag` or the length `bytes` of the whole, throws `.changed` if the object has
  /// another one.
  ///
  /// Throws `.noSuchKey` if there is no such object.
  package func get(
    _ key: String, _ range: Range<Int64>, entityTag: String? = nil, of bytes: Int64? = nil
  ) throws(S3Error) -> [UInt8] {
    precondition(!range.isEmpty && range.lowerBound >= 0, "a range has bytes")
    var request = S3Request(method: .get, key: key)
    request.fields = [(name: "range", value: "bytes=\(range.lowerBound)-\(range.upperBound - 1)")]
    if let entityTag { request.fields.append((name: "if-match", value: entityTag)) }
    request.answerLimit = range.count
    let response: S3Response
    do { response = try send(request, bytes: Int64(range.count)) } catch {
      if case .refused(416, _, _) = error { return [] }
      throw error
    }
    guard response.status == 206, response.body.count <= range.count,
      response.fields["content-range"]?.hasPrefix("bytes \(range.lowerBound)-") == true
    else { throw .malformedAnswer(what: "Content-Range") }
    let whole = response.fields["content-range"].flatMap { $0.split(separator: "/").last }.flatMap { Int64($0) }
    guard bytes == nil || whole == nil || whole == bytes else { throw .changed }
    return response.body
  }

  /// Writes an object to a new file at `path`; on failure there is none. If the connection breaks, the next attempt
  /// continues where it broke, provided that the object is still the same. `bytes` is the object's length if it is
  /// known, for the deadline and as a limit, and `sha256` what its content should be. `hasRoom` says if there is room
  /// for the length that the store announces.
  ///
  /// Throws `.noSuchKey`, `.tooLong` if the object has more bytes, or `.damaged` if the content has another SHA-256.
  /// The file isn't synced.
  package func get(
    _ key: String, into path: String, bytes: Int64? = nil, sha256: String? = nil,
    hasRoom: @escaping (Int64) -> Bool = { _ in true }
  ) throws(S3Error) -> S3ObjectInfo {
    let download = try S3Download(creating: path, limit: bytes ?? S3ObjectInfo.lengthLimit, hasRoom: hasRoom)
    do throws(S3Error) {
      let info = try receive(key, into: download, bytes: bytes)
      if let sha256, sha256 != download.sha256 { throw .damaged }
      return info
    } catch {
      TransferFile.remove(path)
      throw error
    }
  }

  /// Returns the length and the SHA-256 of an object, in hexadecimal digits. Receives all of it and keeps nothing.
  /// `bytes` is its length if it is known, for the deadline and as a limit.
  ///
  /// Throws `.noSuchKey` if there is no such object, and `.tooLong` if it has more bytes.
  package func digest(of key: String, bytes: Int64? = nil) throws(S3Error) -> (bytes: Int64, sha256: String) {
    let download = S3Download(limit: bytes ?? S3ObjectInfo.lengthLimit)
    let info = try receive(key, into: download, bytes: bytes)
    return (info.bytes, download.sha256)
  }

  private func receive(_ key: String, into download: S3Download, bytes: Int64?) throws(S3Error) -> S3ObjectInfo {
    let response = try send(to: .download(download), bytes: bytes ?? 0) {
      var request = S3Request(method: .get, key: key)
      if download.count > 0, let tag = download.entityTag {
        request.fields = [(name: "range", value: "bytes=\(download.count)-"), (name: "if-match", value: tag)]
      }
      return request
    }
    return S3ObjectInfo(bytes: download.count, response.fields)
  }

  /// Returns what the store says about an object; nil if the bucket has no such object.
  package func head(_ key: String) throws(S3Error) -> S3ObjectInfo? { try head(key, overNewConnection: false) }

  /// Looks at an object that rows describe. If the store says something else, asks once more over a new connection:
  /// the first answer may have been damaged on its way. Two that agree are what the store has. Throws `.damaged` if
  /// they don't.
  func head(_ key: String, expecting expected: ExpectedObject?) throws(S3Error) -> S3ObjectInfo? {
    let first = try head(key)
    guard let first, let expected, !expected.permits(first.bytes, first.sha256) else { return first }
    let second = try head(key, overNewConnection: true)
    guard let second, !expected.permits(second.bytes, second.sha256) else { return second }
    guard second == first else { throw .damaged }
    return second
  }

  private func head(_ key: String, overNewConnection isNew: Bool) throws(S3Error) -> S3ObjectInfo? {
    var failure = S3Error.noSuchKey
    // The second time if the object appears in between, or if the GET had the clock or the key put right.
    for _ in 0..<2 {
      do throws(S3Error) { return try info(key, overNewConnection: isNew) } catch {
        guard error.lacksReason else { throw error }
        failure = error
      }
      // The answer to HEAD has no content. So the bucket may be missing instead, or a proxy may have answered, and a
      // clock that is wrong or a key that has expired looks like one that may not read the object.
      do throws(S3Error) { _ = try get(key, 0..<1) } catch {
        if error == .noSuchKey { return nil }
        throw error
      }
    }
    throw failure == .noSuchKey ? S3Error.unavailable(status: 404, code: nil) : failure
  }

  private func info(_ key: String, overNewConnection isNew: Bool) throws(S3Error) -> S3ObjectInfo {
    var request = S3Request(method: .head, key: key)
    request.needsNewConnection = isNew
    let response = try send(request)
    guard let length = response.fields["content-length"].flatMap({ Int64($0) }), length >= 0 else {
      throw .malformedAnswer(what: "Content-Length")
    }
    return S3ObjectInfo(bytes: length, response.fields)
  }

  /// Deletes an object. A missing one isn't an error.
  package func delete(_ key: String) throws(S3Error) {
    do { _ = try send(S3Request(method: .delete, key: key)) } catch {
      if error != .noSuchKey { throw error }
    }
  }
}
