/// The forms in which a slice can be written.
package enum WaveformForm: Sendable, Hashable {
  /// The API's own object.
  case json
  /// audiowaveform's file with only its seven members.
  case strictJSON
  /// audiowaveform's binary file.
  case dat(version: Int)
  /// wavesurfer.js's object.
  case peaksJSON
  /// All measures in one binary body.
  case points
}

extension WaveformForm {
  /// Whether numbers are written as bytes, not as text.
  package var isBinary: Bool {
    switch self {
    case .dat, .points: true
    case .json, .strictJSON, .peaksJSON: false
    }
  }
}

extension WaveformWindow {
  /// Checks whether a form supports the query, before the slice is made.
  ///
  /// Throws `.measureNotInForm` for anything but peaks in a form other than `json` and `points`,
  /// `.versionUnavailable` for a `.dat` that is neither version 2 nor version 1 with one lane, `.scaleOutOfRange` for a
  /// scale that exceeds a `.dat`'s 31 bits, and `.tooManyNumbers` for more than 1,000,000 numbers in any other form.
  package func check(_ form: WaveformForm) throws(WaveformError) {
    if form != .json, form != .points, query.measures != .peak { throw .measureNotInForm }
    if case .dat(let version) = form {
      guard version == 2 || version == 1 && lanes == 1 else {
        throw .versionUnavailable(version: version, lanes: lanes)
      }
      guard scale <= Int(Int32.max) else {
        throw .scaleOutOfRange(scale: Int64(scale), limit: Int64(Int32.max))
      }
    } else if numberCount > Self.jsonNumberLimit {
      throw .tooManyNumbers(
        count: numberCount, limit: Self.jsonNumberLimit, parameter: query.resolution.parameter)
    }
  }
}
