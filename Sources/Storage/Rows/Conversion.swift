/// A recording's sound in another format, made on request and kept as long as there is room.
package struct Conversion: Sendable, Equatable {
  /// The recording.
  package var recording: RecordingID
  /// The format: "mp3", "opus" …
  package var format: String
  /// The key of the file.
  package var key: ObjectKey
  /// The file's length in bytes.
  package var bytes: Int64
  /// The SHA-256 as 64 lower-case hexadecimal digits.
  package var sha256: String
  /// When it was last requested, accurate to the hour.
  package var usedAt: Timestamp

  /// Creates a conversion. Its file must be durable.
  package init(
    recording: RecordingID, format: String, key: ObjectKey, bytes: Int64, sha256: String, usedAt: Timestamp
  ) {
    self.recording = recording
    self.format = format
    self.key = key
    self.bytes = bytes
    self.sha256 = sha256
    self.usedAt = usedAt
  }
}
