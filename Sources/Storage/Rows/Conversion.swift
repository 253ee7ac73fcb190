/// A recording's sound in another format, made on request and kept as long as there is room.
package struct Conversion: Sendable, Equatable {
  /// Whose sound it is.
  package var recording: RecordingID
  /// "mp3", "opus" …
  package var format: String
  /// Its name inside the recording's folder.
  package var file: String
  /// Its length.
  package var bytes: Int64
  /// 64 lower-case hexadecimal digits.
  package var sha256: String
  /// When it was last asked for, to the hour.
  package var usedAt: Timestamp

  /// A conversion whose file is durable.
  package init(
    recording: RecordingID, format: String, file: String, bytes: Int64, sha256: String, usedAt: Timestamp = .now
  ) {
    self.recording = recording
    self.format = format
    self.file = file
    self.bytes = bytes
    self.sha256 = sha256
    self.usedAt = usedAt
  }
}
