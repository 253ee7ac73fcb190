/// Why no noise profile could be made.
package enum DenoiseError: Error, Equatable {
  /// The sound has only `frames` frames; the profile needs `needed`.
  case regionTooShort(frames: Int64, needed: Int64)
  /// The region contains nothing but digital silence, with no stretch between that is as long as an analysis frame.
  case silentRegion
}
