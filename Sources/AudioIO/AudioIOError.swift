/// What can go wrong between a path and its samples.
package enum AudioIOError: Error, Sendable, Equatable {
  /// The bytes are of no kind that is read here; `found` says what they look like, where that is known.
  case unsupportedMedia(found: String?)
  /// The file says it is sound, yet the decoder refuses it; `reason` is libsndfile's own text.
  case undecodable(code: Int32, reason: String)
  /// Not one frame could be decoded.
  case empty
  case channelsOutOfRange(channels: Int, limit: Int)
  case sampleRateOutOfRange(hertz: Int64, limits: ClosedRange<Int>)
  case durationOutOfRange(seconds: Double, limit: Double)
  /// The container cannot hold this codec, rate or number of channels.
  case unwritable(AudioFormat)
  case seekFailed(frame: Int64)
  case writeFailed(code: Int32, reason: String)
  /// A system call on the file itself failed.
  case system(operation: String, errno: Int32)
}
