import Terms

/// The scale of a spectrogram's frequencies.
package enum FrequencyScale: String, Codable, Sendable, CaseIterable {
  case linear, mel, log
}

/// The resolution of a spectrogram in time.
package enum SpectrogramResolution: Sendable, Hashable {
  /// Frames per column: a power of two, 64 … 2^24.
  case scale(Int)
  /// At most this many columns, 1 … 4,096.
  case width(Int)
}

/// The part of a recording's spectrogram that a caller wants to see, and how.
package struct SpectrogramQuery: Sendable, Hashable {
  /// Start of the window, in seconds; nil for 0.
  package var start: Double?
  /// End of the window, in seconds; the recording's end if nil or beyond it.
  package var end: Double?
  /// The resolution in time.
  package var resolution = SpectrogramResolution.width(1024)
  /// Number of rows, 1 … 2,048. Split channels share them, the first channel at the top.
  package var height = 256
  /// The channels.
  package var channels = ChannelSelection.mix
  /// The scale of the frequencies.
  package var frequencyScale = FrequencyScale.mel
  /// The frequency at the lower edge, in Hz; nil for 0, or 20 on a logarithmic scale.
  package var minHz: Double?
  /// The frequency at the upper edge, in Hz; nil for half the sample rate.
  package var maxHz: Double?
  /// The level of the lowest value, in dB of a full-scale sine, from −120.
  package var minDB = -120.0
  /// The level of the highest value, in dB, up to 0.
  package var maxDB = 0.0
  /// Samples per transform: a power of two, 256 … 16,384.
  package var window = 2048

  /// Creates a query with the API's defaults: the mix of the whole recording.
  package init() {}
}

/// How much of a recording there is to show.
package struct SpectrogramExtent: Sendable, Hashable {
  /// In Hz.
  package var sampleRate: Int
  /// Number of channels.
  package var channels: Int
  /// Number of frames that can be read.
  package var availableFrames: Int64
  /// The recording's length in frames, or the best estimate.
  package var length: Int64
  /// Whether all frames are available.
  package var isComplete: Bool

  /// Creates an extent from its values.
  package init(sampleRate: Int, channels: Int, availableFrames: Int64, length: Int64, isComplete: Bool) {
    (self.sampleRate, self.channels, self.availableFrames) = (sampleRate, channels, availableFrames)
    (self.length, self.isComplete) = (max(length, availableFrames), isComplete)
  }
}

/// What is wrong with a query. `parameter` is a parameter's name in the API.
package enum SpectrogramError: Error, Equatable, Sendable {
  /// `start` or `end` is negative, infinite, or not a number.
  case timeOutOfRange(parameter: String, seconds: Double)
  /// The window ends before or at its start (in seconds).
  case windowReversed(start: Double, end: Double)
  /// The value isn't a power of two in `lowest ... highest`.
  case notAPowerOfTwo(parameter: String, value: Int, lowest: Int, highest: Int)
  /// The value isn't in `lowest ... highest`.
  case outOfRange(parameter: String, value: Double, lowest: Double, highest: Double)
  /// The tile would have more than `limit` columns.
  case tooManyColumns(count: Int64, limit: Int)
  /// The transforms would read more than `limit` samples.
  case tooManySamples(count: Int64, limit: Int64)
  /// There is no such channel; they count from 0.
  case channelOutOfRange(channel: Int, channels: Int)
}
