import Storage

/// A client's checksum of the bytes in one request.
struct UploadChecksum: Sendable, Equatable {
  let algorithm: MessageDigest.Algorithm
  let bytes: [UInt8]
}

// @unchecked Sendable: the digest is used in the session's turns only.

/// A request that sends bytes of an upload, as long as it's the current writer.
final class UploadWriter: @unchecked Sendable {
  /// nil if the client sends none; then its bytes count as they arrive.
  let checksum: UploadChecksum?
  /// Counts bytes that the upload's row doesn't count yet; nil if it counts all.
  let share: AnnouncedBytes.Share?
  /// Set once the body has been read, has failed, or another request has taken over.
  let outcome = UploadOutcome()
  private var digest: MessageDigest?

  init(_ checksum: UploadChecksum?, counted share: AnnouncedBytes.Share? = nil) {
    (self.checksum, self.share) = (checksum, share)
    guard let checksum else { return }
    digest = MessageDigest(checksum.algorithm)
  }

  func took(_ piece: [UInt8]) { digest?.update(piece.span) }

  /// Whether the received bytes match the checksum.
  var isAsSaid: Bool { checksum?.bytes == digest?.bytes() }
}
