/// Why there is no noise profile.
package enum DenoiseError: Error, Equatable {
  /// The sound given holds `frames` frames; a profile needs `needed`, two analysis frames' length.
  case regionTooShort(frames: Int64, needed: Int64)
}
