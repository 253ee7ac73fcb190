/// Errors in requesting, reading, and writing waveforms. The cases carry facts; the service adds the text.
package enum WaveformError: Error, Equatable, Sendable {
  /// `start` or `end` is negative, infinite, or not a number. `parameter` is `start` or `end`.
  case timeOutOfRange(parameter: String, seconds: Double)
  /// The window ends before or at its start (in seconds).
  case windowReversed(start: Double, end: Double)
  /// The scale, in frames per pixel, is outside `1 ... limit`.
  case scaleOutOfRange(scale: Int64, limit: Int64)
  /// The width, in pixels, is outside `1 ... limit`.
  case widthOutOfRange(width: Int, limit: Int)
  /// The response would have more than `limit` pixels.
  case tooManyPixels(count: Int64, limit: Int64)
  /// The response would have more than `limit` numbers. `parameter` is the one at fault, `scale` or `width`.
  case tooManyNumbers(count: Int64, limit: Int64, parameter: String)
  /// There is no such channel; they count from 0.
  case channelOutOfRange(channel: Int, channels: Int)
  /// None of peak, RMS, and average was requested.
  case noMeasures
  /// The form supports only peaks.
  case measureNotInForm
  /// The requested version of `.dat` doesn't exist, or is version 1 for more than one channel.
  case versionUnavailable(version: Int, lanes: Int)
  /// A picture's `height`, `pixel_ratio`, or `amplitude_scale` isn't in `lowest ... highest`.
  case pictureOutOfRange(parameter: String, value: Double, lowest: Double, highest: Double)
  /// `width × pixel_ratio`, or the width resulting from a scale, exceeds `limit`. `parameter` is `width` or `scale`.
  case pictureTooWide(parameter: String, pixels: Int64, limit: Int)
  /// `width × height × pixel_ratio²` exceeds `limit`.
  case pictureTooLarge(pixels: Int64, limit: Int)

  /// Below 256 frames per pixel, a slice must be computed from samples, not from the pyramid.
  case needsSamples(scale: Int)
  /// The pyramid belongs to another recording than the window, or doesn't extend as far as the window assumes.
  case extentMismatch
  /// The file isn't a pyramid, or its header contains impossible values; `field` is the header's field.
  case malformedPyramid(field: String)
  /// A page of the pyramid isn't what was written: its number or its checksum is wrong.
  case damagedPyramid(page: Int64)
  /// The pyramid's version is no longer supported.
  case outdatedPyramid(version: Int)
  /// The pyramid is shorter than it should be.
  case truncatedPyramid(size: Int64, needed: Int64)
  /// The recording's format can't be described by a pyramid.
  case unsupportedFormat(sampleRate: Int, channels: Int)
  /// The samples aren't whole frames.
  case unevenSamples(count: Int, channels: Int)
  /// There are more frames than a pyramid can hold.
  case tooManyFrames(limit: Int64)
  /// A picture couldn't be compressed because memory ran out.
  case pictureNotEncoded
  /// A pyramid on another machine can't be read now, although it may be intact.
  case unavailable(PagesUnavailable)
  /// A file couldn't be opened, read, or written.
  case io(operation: String, path: String, errno: Int32)
}
