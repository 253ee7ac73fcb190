import Terms

/// The values that a slice contains for each pixel.
package struct Measures: OptionSet, Sendable, Hashable {
  /// The set as bits.
  package let rawValue: Int

  /// Creates a set from its bits.
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

/// The resolution of a slice.
package enum WaveformResolution: Sendable, Hashable {
  /// Frames per pixel, 1 … 2^24.
  case scale(Int)
  /// At most this many pixels, 1 … 20,000.
  case width(Int)

  /// The parameter's name in the API.
  var parameter: String {
    switch self {
    case .scale: "scale"
    case .width: "width"
    }
  }
}

/// The part of a recording that a caller wants to see, in seconds.
package struct WaveformQuery: Sendable, Hashable {
  /// Frames per pixel, or pixels.
  package typealias Resolution = WaveformResolution

  /// Start of the window, in seconds; nil for 0.
  package var start: Double?
  /// End of the window, in seconds; the recording's end if nil or beyond it.
  package var end: Double?
  /// The resolution.
  package var resolution: Resolution
  /// The lanes.
  package var channels: ChannelSelection
  /// The values for each pixel.
  package var measures: Measures
  /// The scale of the values.
  package var bits: SampleBits

  /// Creates a query. The defaults are the API's: the whole recording's mix, 2,000 pixels wide, 16-bit peaks.
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

/// How much of a recording is available.
package struct WaveformExtent: Sendable, Hashable {
  /// The sample rate in hertz.
  package var sampleRate: Int
  /// Number of channels of the recording.
  package var channels: Int
  /// Number of frames whose points are in the pyramid.
  package var availableFrames: Int64
  /// The recording's length in frames if it is known, even before all of it has been read.
  package var totalFrames: Int64?
  /// An estimate of the length if it isn't known.
  package var estimatedFrames: Int64?
  /// Whether the pyramid is finished. If so, `availableFrames` is the recording's length.
  package var isComplete: Bool

  /// Creates an extent from its values.
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

  /// The recording's length in frames; nil as long as it isn't known.
  package var knownFrames: Int64? { isComplete ? availableFrames : totalFrames }
}
