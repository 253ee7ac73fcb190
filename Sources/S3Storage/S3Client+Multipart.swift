// A multipart upload makes one object of parts that were sent or copied separately. All parts but the last have at
// least 5 MiB, and there are at most 10,000. Until it is completed, the object doesn't exist.

import Storage
import Terms

/// A multipart upload in progress.
package struct S3Multipart: Sendable, Equatable {
  /// The object that it will be.
  package let key: String
  /// The store's name for it.
  package let id: String
}

/// A part that the store has.
package struct S3Part: Sendable, Equatable {
  /// 1 to 10,000: the order of the parts.
  package let number: Int
  /// The version of its content.
  package let entityTag: String
}

extension S3Client {
  /// The least length of a part but the last, in bytes.
  package static let leastPartBytes: Int64 = 5 << 20

  /// Begins a multipart upload. Isn't repeated if the store may have begun one: nothing would abort it. `sha256` is
  /// that of the whole object, if it is known already; it is kept with the object.
  package func beginMultipart(_ key: String, sha256: String? = nil) throws(S3Error) -> S3Multipart {
    var request = S3Request(
      method: .post, key: key, query: [(name: "uploads", value: "")], fields: creationFields(sha256: sha256),
      content: .empty)
    request.needsNewConnection = true
    let response = try send(request, retry: .ifNothingHappened)
    guard let id = XMLElement(parsing: response.body)?["UploadId"]?.text, !id.isEmpty else {
      throw .malformedAnswer(what: "UploadId")
    }
    return S3Multipart(key: key, id: id)
  }

  /// Sends a file, or the part `range` of it; see `put`. A part that is sent again replaces the one with its number.
  package func putPart(
    _ number: Int, of upload: S3Multipart, file path: String, _ range: Range<Int64>? = nil, sha256: String? = nil
  ) throws(S3Error) -> S3Part {
    let content = try Self.content(of: path, range, sha256: sha256)
    let response = try send(
      S3Request(method: .put, key: upload.key, query: Self.query(number, of: upload), content: content))
    guard let tag = response.fields["etag"], !tag.isEmpty else { throw .malformedAnswer(what: "ETag") }
    return S3Part(number: number, entityTag: tag)
  }

  /// Copies an object, or the bytes `range` of it, within the bucket. Nothing passes through this machine.
  ///
  /// `bytes` is the length, for the deadline. Throws `.noSuchKey` if there is no such object.
  package func copyPart(
    _ number: Int, of upload: S3Multipart, from key: String, _ range: Range<Int64>? = nil, bytes: Int64 = 0
  ) throws(S3Error) -> S3Part {
    let source = URIEncoding.path("/\(bucket.name)/\(bucket.prefix)\(key)")
    var request = S3Request(method: .put, key: upload.key, query: Self.query(number, of: upload), content: .empty)
    request.fields = [(name: "x-amz-copy-source", value: source)]
    if let range {
      request.fields.append(
        (name: "x-amz-copy-source-range", value: "bytes=\(range.lowerBound)-\(range.upperBound - 1)"))
    }
    request.resultName = "CopyPartResult"
    request.bytesInStore = range.map { Int64($0.count) } ?? bytes
    let response = try send(request)
    guard let tag = XMLElement(parsing: response.body)?["ETag"]?.text, !tag.isEmpty else {
      throw .malformedAnswer(what: "ETag")
    }
    return S3Part(number: number, entityTag: tag)
  }

  /// Makes the object of its parts, in the order of their numbers. If the answer is lost, the request is repeated;
  /// `.noSuchUpload` then means that it is complete, provided that the object exists with `bytes` bytes.
  package func complete(_ upload: S3Multipart, _ parts: [S3Part], bytes: Int64) throws(S3Error) {
    let list = parts.sorted { $0.number < $1.number }.map {
      "<Part><PartNumber>\($0.number)</PartNumber><ETag>\(Self.escaped($0.entityTag))</ETag></Part>"
    }
    let body = Array("<CompleteMultipartUpload>\(list.joined())</CompleteMultipartUpload>".utf8)
    let content = S3Content.bytes(body, sha256: Hexadecimal.text(SHA256.digest(of: body)))
    var request = S3Request(
      method: .post, key: upload.key, query: [(name: "uploadId", value: upload.id)], content: content,
      resultName: "CompleteMultipartUploadResult")
    request.bytesInStore = bytes
    do throws(S3Error) { _ = try send(request) } catch {
      guard error == .noSuchUpload, try head(upload.key)?.bytes == bytes else { throw error }
    }
  }

  /// Discards the parts of an upload. One that is gone isn't an error.
  package func abort(_ upload: S3Multipart) throws(S3Error) {
    do throws(S3Error) {
      _ = try send(S3Request(method: .delete, key: upload.key, query: [(name: "uploadId", value: upload.id)]))
    } catch {
      guard error == .noSuchUpload || error == .noSuchKey else { throw error }
    }
  }

  private static func query(_ number: Int, of upload: S3Multipart) -> [(name: String, value: String)] {
    precondition((1...10_000).contains(number), "parts are numbered from 1 to 10,000")
    return [(name: "partNumber", value: "\(number)"), (name: "uploadId", value: upload.id)]
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing("\"", with: "&quot;")
  }
}
