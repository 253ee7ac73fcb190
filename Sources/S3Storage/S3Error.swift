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
  /// The key reaches another bucket than the catalog describes, for example that of another tenant.
  case otherBucket(name: String)
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
  /// The object has `bytes` bytes according to the store, more than it should have.
  case tooLong(bytes: Int64, limit: Int64)

  /// No connection, or it was lost. `reason` is mostly libcurl's.
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

  /// Whether other requests to the bucket may fail for the same reason. The answer to a HEAD has no code, so an invalid
  /// key looks like one that may not read the object.
  var isGeneral: Bool {
    switch self {
    case .noCredentials, .badCredentials, .accessDenied, .wrongRegion, .clockSkew, .noSuchBucket, .otherBucket,
      .libraryMissing:
      true
    case .damaged: false
    default: isTransient
    }
  }

  /// Whether temporary credentials have expired.
  var isAboutExpiry: Bool { self == .badCredentials(code: "ExpiredToken") }

  /// Whether the same request as a GET may get the reason: the answer to a HEAD has no content, and so no code.
  var lacksReason: Bool {
    switch self {
    case .noSuchKey, .accessDenied, .refused(400, nil, _): true
    default: false
    }
  }

  /// Whether other credentials may make the same request succeed.
  var isAboutCredentials: Bool { if case .badCredentials = self { true } else { false } }
}

extension S3Error: CustomStringConvertible {
  /// What happened, for operators.
  package var description: String {
    switch self {
    case .invalidAddress(let fault): "the address can't be used (\(fault))"
    case .libraryMissing: "libcurl can't be loaded: install the package libcurl4"
    case .noCredentials(let file): file.map { "the file \($0) has no key" } ?? "there is no key in the environment"
    case .badCredentials(let code): "the key is refused (\(code))"
    case .accessDenied: "the key may not do this"
    case .wrongRegion(let expected): "the bucket is in another region" + (expected.map { ": \($0)" } ?? "")
    case .clockSkew(let time):
      "this machine's clock differs too much from the store's" + (time.map { ", which says \($0.rfc3339)" } ?? "")
    case .noSuchBucket: "there is no such bucket"
    case .otherBucket(let name): "\(name) is another bucket than the catalog describes"
    case .noSuchKey: "there is no such object"
    case .noSuchUpload: "there is no such multipart upload"
    case .changed: "the object was replaced"
    case .quotaExceeded: "the bucket is full"
    case .damaged: "other bytes have arrived than were sent"
    case .tooLong(let bytes, let limit): "the object has \(bytes) bytes, more than the \(limit) that it may have"
    case .unreachable(let reason): "no connection (\(reason))"
    case .timedOut: "no answer in time"
    case .unavailable(let status, let code): "it can't do this now (\(status)\(code.map { " " + $0 } ?? ""))"
    case .refused(let status, let code, let message):
      ["it answered \(status)", code, message].compactMap { $0 }.joined(separator: ", ")
    case .malformedAnswer(let what): "its answer has no valid \(what)"
    case .file(let operation, let path, let number): "\(path): \(operation) failed with errno \(number)"
    }
  }
}
