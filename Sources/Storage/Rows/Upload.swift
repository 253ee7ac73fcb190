/// The name of an upload; also that of its part file.
package typealias UploadID = Identifier<Upload>

/// An upload that comes in pieces, from its announcement to the recording it became, and for a while after.
package struct Upload: Sendable, Equatable {
  /// Also the name of its part file.
  package let id: UploadID
  /// How many bytes it will have, 1 or more.
  package let length: Int64
  /// How many of them are durable: never more than the part file holds.
  package var offset: Int64
  /// What the client says about the file, as it said it; nil where it said nothing.
  package let metadata: String?
  /// When it is given up.
  package var expiresAt: Timestamp
  /// What it became, nil until then.
  package var recording: RecordingID?
  /// Whom it counts for where clients take turns; opaque, empty where that is not known.
  package let client: String

  /// An upload of which nothing has come yet, but for what is given.
  package init(
    id: UploadID = UploadID(), length: Int64, offset: Int64 = 0, metadata: String? = nil, expiresAt: Timestamp,
    recording: RecordingID? = nil, client: String = ""
  ) {
    self.id = id
    self.length = length
    self.offset = offset
    self.metadata = metadata
    self.expiresAt = expiresAt
    self.recording = recording
    self.client = client
  }
}

/// Uploads that may be unfinished at a time.
package struct UploadLimits: Sendable, Equatable {
  /// Of all clients.
  package var total: Int
  /// Of each.
  package var perClient: Int

  /// Both limits, 1 or more.
  package init(total: Int, perClient: Int) { (self.total, self.perClient) = (total, perClient) }
}
