import Storage

/// What a client says the bytes of one request come to.
struct UploadChecksum: Sendable, Equatable {
  let algorithm: MessageDigest.Algorithm
  let bytes: [UInt8]
}

// @unchecked Sendable: the digest is touched on the session's queue alone.

/// A request that sends bytes of an upload, while it is the one that may.
final class UploadWriter: @unchecked Sendable {
  /// Nil where the client gives none: its bytes then count as they come.
  let checksum: UploadChecksum?
  /// That its body has been read, why it could not be, or that another has taken its place.
  let outcome = UploadOutcome()
  private var digest: MessageDigest?

  init(_ checksum: UploadChecksum?) {
    self.checksum = checksum
    guard let checksum else { return }
    digest = MessageDigest(checksum.algorithm)
  }

  func took(_ piece: [UInt8]) { digest?.update(piece.span) }

  /// Whether what has come is what the checksum says.
  var isAsSaid: Bool { checksum?.bytes == digest?.bytes() }
}
