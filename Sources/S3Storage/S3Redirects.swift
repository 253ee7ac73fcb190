import Storage

/// How clients are sent to the bucket itself: by URLs that anyone can use for a while.
package struct S3Redirects: Sendable {
  /// How long a URL can be used, in seconds.
  package let seconds: Int
  /// The bucket, by the address that clients reach it at.
  let bucket: S3Bucket

  /// The longest time for which a URL can be used: a week, in seconds.
  package static let longestSeconds = SigV4.longestPresignedSeconds

  /// `bucket` has the address that clients reach it at. `seconds` is at least 1 and at most `longestSeconds`.
  package init(to bucket: S3Bucket, seconds: Int) { (self.bucket, self.seconds) = (bucket, seconds) }

  /// The origin of the URLs, such as `https://store.example.com`.
  package var origin: String { "\(bucket.scheme)://\(bucket.host)" }
}

extension BucketStore {
  /// Returns a URL by which anyone can GET an object for `seconds`, at most those of `redirects`; nil if the store
  /// fails, or doesn't have the object with this length. `fields` are of the store's answer, such as `content-type`,
  /// and replace those that it would have. Blocks; costs a request unless the cache has the whole object.
  package func url(
    of key: ObjectKey, bytes: Int64, by redirects: S3Redirects, seconds: Int,
    answering fields: [(name: String, value: String)]
  ) -> String? {
    guard !client.isFailing, look(at: key) == .present(bytes: bytes) else { return nil }
    let url = try? client.presignedURL(
      key.description, in: redirects.bucket, from: catalog.time, seconds: max(1, min(seconds, redirects.seconds)),
      answering: fields)
    if url != nil { client.figures.addRedirect() }
    return url
  }
}
