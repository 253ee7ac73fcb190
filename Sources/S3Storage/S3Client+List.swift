import Storage
import Terms

/// An object in a listing.
package struct S3ListedObject: Sendable, Equatable {
  /// The key, without the bucket's prefix.
  package let key: String
  /// Length in bytes.
  package let bytes: Int64
  /// When it was created, by the store's clock.
  package let modified: Timestamp?
}

/// A part of a listing.
package struct S3Page: Sendable, Equatable {
  /// The objects, in the order of their keys' bytes.
  package let objects: [S3ListedObject]
  /// What continues the listing; nil at the end.
  package let next: String?
  /// The bytes of the last key, after which the listing goes on; nil if there was none.
  let lastKey: [UInt8]?
}

extension S3Client {
  /// Returns up to `limit` objects (at most 1,000) whose keys begin with `prefix`. `token` is the `next` of the page
  /// before and `last` its last key. Throws `.malformedAnswer` unless all keys ascend: otherwise, a listing might never
  /// end.
  package func list(
    prefix: String = "", token: String? = nil, after last: [UInt8]? = nil, limit: Int = 1000
  ) throws(S3Error) -> S3Page {
    var request = S3Request(method: .get)
    request.query = [
      (name: "list-type", value: "2"), (name: "encoding-type", value: "url"),
      (name: "max-keys", value: "\(min(max(limit, 1), 1000))"), (name: "prefix", value: bucket.prefix + prefix),
    ]
    if let token { request.query.append((name: "continuation-token", value: token)) }
    // A key has up to 1,024 bytes, which may be escaped.
    request.answerLimit = 8 << 20
    let response = try send(request)
    guard let document = XMLElement(parsing: response.body), document.name == "ListBucketResult" else {
      throw .malformedAnswer(what: "ListBucketResult")
    }
    let isEncoded = document["EncodingType"]?.text == "url"
    var objects: [S3ListedObject] = []
    var last = last
    for entry in document.all("Contents") {
      let text = entry["Key"]?.text ?? ""
      // Whoever else writes into the bucket may use any bytes. What can't be decoded stays as it came.
      let bytesOfKey = (isEncoded ? URIEncoding.bytes(text.replacing("+", with: "%20")) : nil) ?? Array(text.utf8)
      let key = String(validating: bytesOfKey, as: UTF8.self) ?? text
      guard key.utf8.starts(with: bucket.prefix.utf8), let bytes = entry["Size"].flatMap({ Int64($0.text) }), bytes >= 0
      else { throw .malformedAnswer(what: "Contents") }
      guard last.map({ $0.lexicographicallyPrecedes(bytesOfKey) }) ?? true else {
        throw .malformedAnswer(what: "order of keys")
      }
      last = bytesOfKey
      objects.append(
        S3ListedObject(
          key: String(decoding: key.utf8.dropFirst(bucket.prefix.utf8.count), as: UTF8.self), bytes: bytes,
          modified: entry["LastModified"].flatMap { Timestamp(rfc3339: $0.text) }))
    }
    guard document["IsTruncated"]?.text == "true" else {
      return S3Page(objects: objects, next: nil, lastKey: last)
    }
    guard let next = document["NextContinuationToken"]?.text, next != token, !next.isEmpty else {
      throw .malformedAnswer(what: "NextContinuationToken")
    }
    return S3Page(objects: objects, next: next, lastKey: last)
  }
}
