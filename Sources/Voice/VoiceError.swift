/// Why the method `voice` can't be used.
package enum VoiceError: Error, Sendable, Equatable {
  /// There is no file of weights.
  case missing(path: String)
  /// The file of weights was cut short or changed.
  case damaged(path: String)
  /// The file has weights of another version than this program needs; nil if it isn't a file of weights.
  case otherVersion(path: String, found: String?)
  /// libsoxr, which the sound's rate needs, isn't installed.
  case noResampler
}
