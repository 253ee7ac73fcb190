/// Errors in opening, decoding, and writing sound files.
package enum AudioIOError: Error, Sendable, Equatable {
  /// The bytes are in no supported format. `found` describes what they look like, if known.
  case unsupportedMedia(found: String?)
  /// The header looks valid, but the decoder rejects the file. `reason` is libsndfile's own text.
  case undecodable(code: Int32, reason: String)
  /// No frame could be decoded.
  case empty
  case channelsOutOfRange(channels: Int, limit: Int)
  case sampleRateOutOfRange(hertz: Int64, limits: ClosedRange<Int>)
  case durationOutOfRange(seconds: Double, limit: Double)
  /// The container doesn't support this codec, sample rate, or number of channels.
  case unwritable(AudioFormat)
  case seekFailed(frame: Int64)
  case writeFailed(code: Int32, reason: String)
  /// A system call on the file itself failed.
  case system(operation: String, errno: Int32)
}
