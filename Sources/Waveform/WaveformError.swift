/// What can go wrong with a waveform; each case carries the facts, the service finds the words.
package enum WaveformError: Error, Equatable, Sendable {
  /// `start` or `end` is negative, infinite or not a number. `parameter` is `start` or `end`.
  case timeOutOfRange(parameter: String, seconds: Double)
  /// The window ends before, or where, it starts (seconds).
  case windowReversed(start: Double, end: Double)
  /// Frames per pixel outside `1 ... limit`.
  case scaleOutOfRange(scale: Int64, limit: Int64)
  /// Pixels wanted outside `1 ... limit`.
  case widthOutOfRange(width: Int, limit: Int)
  /// The answer would hold more than `limit` pixels.
  case tooManyPixels(count: Int64, limit: Int64)
  /// The answer would hold more than `limit` numbers. `parameter` is `scale` or `width`, by which it was asked for.
  case tooManyNumbers(count: Int64, limit: Int64, parameter: String)
  /// No such channel: they count from 0.
  case channelOutOfRange(channel: Int, channels: Int)
  /// None of peak, RMS and average was asked for.
  case noMeasures
  /// The form has room for peaks only.
  case measureNotInForm
  /// A `.dat` of a version that does not exist, or version 1 for more than one channel.
  case versionUnavailable(version: Int, lanes: Int)
  /// A picture's `height`, `pixel_ratio` or `amplitude_scale` is not in `lowest ... highest`.
  case pictureOutOfRange(parameter: String, value: Double, lowest: Double, highest: Double)
  /// `width × pixel_ratio`, or what a scale makes of them, is over `limit`. `parameter` is `width` or `scale`.
  case pictureTooWide(parameter: String, pixels: Int64, limit: Int)
  /// `width × height × pixel_ratio²` is over `limit`.
  case pictureTooLarge(pixels: Int64, limit: Int)

  /// Below 256 frames per pixel a slice is made of samples, not of the pyramid.
  case needsSamples(scale: Int)
  /// The pyramid is of another recording than the window, or not as far as the window believes.
  case extentMismatch
  /// Not a pyramid, or one with impossible facts in its header; `field` names the header's field.
  case malformedPyramid(field: String)
  /// A page of the pyramid is not what was written: its number or its checksum is wrong.
  case damagedPyramid(page: Int64)
  /// A pyramid of a version that is no longer read.
  case outdatedPyramid(version: Int)
  /// The pyramid ends before bytes it should hold.
  case truncatedPyramid(size: Int64, needed: Int64)
  /// A recording that no pyramid can describe.
  case unsupportedFormat(sampleRate: Int, channels: Int)
  /// Samples that are not whole frames.
  case unevenSamples(count: Int, channels: Int)
  /// More frames than a pyramid can hold.
  case tooManyFrames(limit: Int64)
  /// libpng could not write a picture: it ran out of memory.
  case pictureNotEncoded
  /// A file could not be opened, read or written.
  case io(operation: String, path: String, errno: Int32)
}
