import AudioIO
import Denoise

/// The name of a spectrum for files that don't import Denoise.
package typealias NoiseSpectrum = PowerSpectrum

/// Measures the mean power spectrum of a stretch of a recording.
package struct MeasureSpectrum: Sendable {
  /// The audio file to read.
  package let source: String
  /// The stretch.
  package let window: TimeWindow
  /// Limits for the recording.
  package let limits: AudioLimits

  /// Creates a task for `source`; nothing happens before `run`.
  package init(source: String, window: TimeWindow, limits: AudioLimits = AudioLimits()) {
    self.source = source
    self.window = window
    self.limits = limits
  }

  /// Reads the stretch. Throws `.regionOutside` if it isn't within the recording, `.denoise` if it's shorter than two
  /// analysis frames.
  package func run() throws(ProcessingError) -> PowerSpectrum {
    let learner = NoiseLearner(source: source, noise: .region(start: window.start, end: window.end), limits: limits)
    return PowerSpectrum(try learner.learn { _ in }.profile)
  }
}
