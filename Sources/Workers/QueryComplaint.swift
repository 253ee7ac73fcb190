import Denoise
import Waveform

/// A problem with a requested window, described for both the API and the commands.
package struct QueryComplaint: Sendable, Equatable {
  /// The parameter at fault, by its API name; the commands' flags have the same names.
  package let parameter: String
  /// Stable code in snake_case.
  package let code: String
  /// A sentence that says what is wrong and what would be right.
  package let detail: String

  private init(_ parameter: String, code: String = "invalid_parameter", _ detail: String) {
    self.parameter = parameter
    self.code = code
    self.detail = detail
  }

  /// Creates a complaint; nil if the error isn't the caller's fault.
  package init?(_ error: WaveformError) {
    switch error {
    case .timeOutOfRange(let parameter, let seconds):
      self.init(parameter, "“\(parameter)” is \(seconds); it must be a number of seconds, 0 or more.")
    case .windowReversed(let start, let end):
      self.init("end", "The window starts at \(start) s and ends at \(end) s; “end” must be greater than “start”.")
    case .scaleOutOfRange(let scale, let limit):
      self.init("scale", "“scale” is \(scale); it must be 1 to \(limit) frames per pixel.")
    case .widthOutOfRange(let width, let limit):
      self.init("width", "“width” is \(width); it must be 1 to \(limit) pixels.")
    case .tooManyPixels(let count, let limit):
      self.init(
        "scale", code: "too_many_pixels",
        "The response would have \(count) pixels; the limit is \(limit). Use a larger scale or a shorter window.")
    case .tooManyNumbers(let count, let limit, "width"):
      self.init(
        "width", code: "too_many_pixels",
        "The response would have \(count) numbers; the limit is \(limit). Use a smaller width, fewer measures, one "
          + "channel, or .dat.")
    case .tooManyNumbers(let count, let limit, let parameter):
      self.init(
        parameter, code: "too_many_pixels",
        "The response would have \(count) numbers; the limit is \(limit). Use a larger scale, a shorter window, or "
          + ".dat.")
    case .channelOutOfRange(let channel, let channels):
      self.init("channels", "There is no channel \(channel); the recording has \(channels), counted from 0.")
    case .noMeasures: self.init("measures", "“measures” is empty; it must name at least one of peak, rms, and average.")
    case .measureNotInForm:
      self.init("measures", "This form can only have the measure peak. Use JSON or .points for rms and average.")
    case .versionUnavailable(let version, let lanes):
      self.init("version", "Version \(version) of .dat can't hold \(lanes) channels. Use version 2.")
    case .pictureOutOfRange(let parameter, let value, let lowest, let highest):
      self.init(
        parameter,
        "“\(parameter)” is \(shown(value)); it must be \(shown(lowest)) to \(shown(highest))"
          + (parameter == "height" ? ": each lane needs 4 pixels, and a time axis 22." : "."))
    case .pictureTooWide("scale", let pixels, let limit):
      self.init(
        "scale", code: "too_many_pixels",
        "The picture would be \(pixels) pixels wide at this scale; the limit is \(limit). Use a larger scale or a "
          + "shorter window.")
    case .pictureTooWide(_, let pixels, let limit):
      self.init(
        "width", code: "too_many_pixels",
        "The picture would be \(pixels) pixels wide (width × pixel_ratio); the limit is \(limit). Reduce either.")
    case .pictureTooLarge(let pixels, let limit):
      self.init(
        "height", code: "too_many_pixels",
        "The picture would have \(pixels) pixels (width × height × pixel_ratio²); the limit is \(limit). Reduce one "
          + "of them.")
    default: return nil
    }
  }
}

extension QueryComplaint {
  /// Creates a complaint about a request for a spectrogram.
  package init(_ error: SpectrogramError) {
    switch error {
    case .timeOutOfRange(let parameter, let seconds):
      self.init(parameter, "“\(parameter)” is \(seconds); it must be a number of seconds, 0 or more.")
    case .windowReversed(let start, let end):
      self.init("end", "The window starts at \(start) s and ends at \(end) s; “end” must be greater than “start”.")
    case .notAPowerOfTwo(let parameter, let value, let lowest, let highest):
      self.init(parameter, "“\(parameter)” is \(value); it must be a power of two from \(lowest) to \(highest).")
    case .outOfRange(let parameter, let value, let lowest, let highest):
      self.init(parameter, "“\(parameter)” is \(shown(value)); it must be \(shown(lowest)) to \(shown(highest)).")
    case .tooManyColumns(let count, let limit):
      self.init(
        "scale", code: "too_many_pixels",
        "The spectrogram would have \(count) columns; the limit is \(limit). Use a larger scale or a shorter window.")
    case .tooManySamples(let count, let limit):
      self.init(
        "window", code: "too_many_pixels",
        "The transforms would read \(count) samples of all channels; the limit is \(limit). Use a shorter “window” or "
          + "fewer columns.")
    case .channelOutOfRange(let channel, let channels):
      self.init("channels", "There is no channel \(channel); the recording has \(channels), counted from 0.")
    }
  }
}

/// Formats a number, without a decimal point if it's whole.
private func shown(_ value: Double) -> String { Int(exactly: value).map { "\($0)" } ?? "\(value)" }
