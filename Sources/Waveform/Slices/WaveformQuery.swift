/// Which lanes of a recording a slice shows.
package enum ChannelSelection: Sendable, Hashable {
  /// The mean of the channels, per frame.
  case mix
  /// Each channel.
  case split
  /// One channel, counted from 0.
  case channel(Int)
}

/// What a slice tells of each pixel.
package struct Measures: OptionSet, Sendable, Hashable {
  /// The set as bits.
  package let rawValue: Int

  /// A set of the given bits.
  package init(rawValue: Int) { self.rawValue = rawValue }

  /// The smallest and the largest sample.
  package static let peak = Measures(rawValue: 1)
  /// The root of the mean square.
  package static let rms = Measures(rawValue: 2)
  /// The mean of the absolute values.
  package static let average = Measures(rawValue: 4)
}

/// The scale of a slice's values.
package enum SampleBits: Int, Sendable, Hashable {
  /// −128 … 127: 16 bits divided by 256, truncated toward zero.
  case eight = 8
  /// −32768 … 32767.
  case sixteen = 16
}

/// How fine a slice is.
package enum WaveformResolution: Sendable, Hashable {
  /// Frames per pixel, 1 … 2^24.
  case scale(Int)
  /// At most this many pixels, 1 … 20,000.
  case width(Int)

  /// What the API calls it.
  var parameter: String {
    switch self {
    case .scale: "scale"
    case .width: "width"
    }
  }
}

/// What a caller wants to see, in seconds.
package struct WaveformQuery: Sendable, Hashable {
  /// Frames per pixel, or pixels.
  package typealias Resolution = WaveformResolution

  /// Where the window begins, in seconds; nil: at 0.
  package var start: Double?
  /// Where the window ends, in seconds; nil, or past the end: at the recording's end.
  package var end: Double?
  /// How fine the answer is.
  package var resolution: Resolution
  /// Which lanes.
  package var channels: ChannelSelection
  /// Which values of each pixel.
  package var measures: Measures
  /// The scale of the values.
  package var bits: SampleBits

  /// A query; the defaults are the API's: the whole recording's mix, 2,000 pixels wide, peaks at 16 bits.
  package init(
    start: Double? = nil, end: Double? = nil, resolution: Resolution = .width(2000),
    channels: ChannelSelection = .mix, measures: Measures = .peak, bits: SampleBits = .sixteen
  ) {
    self.start = start
    self.end = end
    self.resolution = resolution
    self.channels = channels
    self.measures = measures
    self.bits = bits
  }
}

/// How much of a recording there is.
package struct WaveformExtent: Sendable, Hashable {
  /// Frames per second.
  package var sampleRate: Int
  /// Channels of the recording.
  package var channels: Int
  /// Frames whose points are in the pyramid.
  package var availableFrames: Int64
  /// The recording's length in frames where it is known, even before all of it has been read.
  package var totalFrames: Int64?
  /// A guess at the length, where it is not known.
  package var estimatedFrames: Int64?
  /// Whether the pyramid is finished. Then `availableFrames` is the recording's length.
  package var isComplete: Bool

  /// An extent of known facts.
  package init(
    sampleRate: Int, channels: Int, availableFrames: Int64, totalFrames: Int64?, estimatedFrames: Int64? = nil,
    isComplete: Bool
  ) {
    self.sampleRate = sampleRate
    self.channels = channels
    self.availableFrames = availableFrames
    self.totalFrames = totalFrames
    self.estimatedFrames = estimatedFrames
    self.isComplete = isComplete
  }
}
