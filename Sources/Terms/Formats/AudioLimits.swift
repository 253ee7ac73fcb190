/// Limits on recordings; a file beyond them is refused before it is decoded.
package struct AudioLimits: Codable, Sendable, Equatable {
  /// Maximum number of channels; 32 by default.
  package var channels = 32
  /// Allowed sample rates in hertz; 1 … 768,000 by default.
  package var sampleRates = 1...768_000
  /// Maximum duration in seconds; 24 hours by default.
  package var durationSeconds = 86_400.0

  /// Creates the default limits.
  package init() {}

  /// No limits, for a file that has already been checked.
  package static let none: AudioLimits = {
    var limits = AudioLimits()
    limits.channels = .max
    limits.sampleRates = 1...(.max)
    limits.durationSeconds = .infinity
    return limits
  }()

  /// Returns the maximum number of frames.
  package func frameLimit(sampleRate: Int) -> Int64 {
    Int64(min((durationSeconds * Double(sampleRate)).rounded(), 0x1p62))
  }

  /// Throws if a file of this shape exceeds a limit. `frames` is nil if the length isn't known.
  package func check(channels: Int, sampleRate: Int64, frames: Int64?) throws(AudioIOError) {
    guard channels >= 1, channels <= self.channels else {
      throw .channelsOutOfRange(channels: channels, limit: self.channels)
    }
    guard sampleRate >= Int64(sampleRates.lowerBound), sampleRate <= Int64(sampleRates.upperBound) else {
      throw .sampleRateOutOfRange(hertz: sampleRate, limits: sampleRates)
    }
    if let frames, frames > frameLimit(sampleRate: Int(sampleRate)) {
      throw .durationOutOfRange(seconds: Double(frames) / Double(sampleRate), limit: durationSeconds)
    }
  }
}
