/// The ID of an upload, which also names its part file.
package typealias UploadID = Identifier<Upload>

/// A resumable upload, from its creation until some time after it became a recording.
package struct Upload: Sendable, Equatable {
  /// The ID, which also names its part file.
  package let id: UploadID
  /// Whose it is, and so whose the recording will be. Set when the row is inserted.
  package internal(set) var tenant = Tenant.none
  /// The total length in bytes, at least 1; nil until the client gives it.
  package var length: Int64?
  /// Number of durable bytes; never more than the part file contains.
  package var offset: Int64
  /// The metadata as sent by the client; nil if it sent none.
  package let metadata: String?
  /// What tus calls its concatenation: `partial`, or `final;` with the uploads that it is joined from; nil if neither.
  package let concatenation: String?
  /// When the upload expires.
  package var expiresAt: Timestamp
  /// The recording that it became; nil until then.
  package var recording: RecordingID?
  /// Counts how often another process has taken the upload over; the right to write for it. Always 0 if only one
  /// process uses the catalog.
  package var writer: Int
  /// The client that the upload counts toward when clients take turns; opaque, and empty if unknown.
  package let client: String
  /// The ID of the token that it was begun with; nil if it was begun with a key, or without one.
  package let token: String?

  /// Creates an upload, without any bytes by default.
  package init(
    id: UploadID, length: Int64?, offset: Int64 = 0, metadata: String? = nil, concatenation: String? = nil,
    expiresAt: Timestamp, recording: RecordingID? = nil, writer: Int = 0, client: String = "", token: String? = nil
  ) {
    self.id = id
    self.length = length
    self.offset = offset
    self.metadata = metadata
    self.concatenation = concatenation
    self.expiresAt = expiresAt
    self.recording = recording
    self.writer = writer
    self.client = client
    self.token = token
  }
}

/// The bytes of an upload that one writer has received: from `start` to the next segment, or to the upload's offset.
package struct UploadSegment: Sendable, Equatable {
  /// The upload.
  package let upload: UploadID
  /// The position of the first byte in the upload.
  package let start: Int64
  /// The writer, which names its file.
  package let writer: Int

  /// Creates a segment from its parts.
  package init(upload: UploadID, start: Int64, writer: Int) {
    (self.upload, self.start, self.writer) = (upload, start, writer)
  }
}

/// Limits on the number of unfinished uploads.
package struct UploadLimits: Sendable, Equatable {
  /// Maximum number over all clients.
  package var total: Int
  /// Maximum number per client.
  package var perClient: Int

  /// Creates limits.
  package init(total: Int, perClient: Int) { (self.total, self.perClient) = (total, perClient) }
}
