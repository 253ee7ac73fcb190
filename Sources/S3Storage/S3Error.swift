import Storage

/// What can go wrong with a store. None of the cases contains a secret.
package enum S3Error: Error, Equatable, Sendable {
  /// The address of the bucket can't be used.
  case invalidAddress(S3Bucket.Fault)
  /// libcurl can't be loaded.
  case libraryMissing
  /// There are no credentials: in a file, or, if `file` is nil, in the environment.
  case noCredentials(file: String?)

  /// The store doesn't know the key, or the signature is wrong, or temporary credentials have expired. `code` is the
  /// store's, such as `SignatureDoesNotMatch`.
  case badCredentials(code: String)
  /// The key may not do this.
  case accessDenied
  /// The bucket is in another region; nil if the store doesn't say in which.
  case wrongRegion(expected: String?)
  /// This machine's clock differs from the store's by more than it accepts, which is usually 15 minutes.
  case clockSkew(serverTime: Timestamp?)
  /// There is no such bucket.
  case noSuchBucket
  /// There is no such object.
  case noSuchKey
  /// There is no such multipart upload: it was completed or aborted.
  case noSuchUpload
  /// The object isn't the one that was expected (`If-Match`).
  case changed
  /// The bucket or its owner has no space left.
  case quotaExceeded
  /// The bytes that arrived are not those that were sent.
  case damaged

  /// No connection, or it was lost. `reason` is libcurl's.
  case unreachable(reason: String)
  /// The store didn't answer in time.
  case timedOut
  /// The store can't do it now, for example 503 SlowDown.
  case unavailable(status: Int, code: String?)
  /// Any other answer that isn't a success.
  case refused(status: Int, code: String?, message: String?)
  /// An answer that breaks the protocol. `what` names the part.
  case malformedAnswer(what: String)
  /// A file on this machine can't be read or written.
  case file(operation: String, path: String, errno: Int32)

  /// Whether the same request may succeed later.
  package var isTransient: Bool {
    switch self {
    case .unreachable, .timedOut, .unavailable, .damaged: true
    default: false
    }
  }

  /// Whether other credentials may make the same request succeed.
  var isAboutCredentials: Bool { if case .badCredentials = self { true } else { false } }
}
