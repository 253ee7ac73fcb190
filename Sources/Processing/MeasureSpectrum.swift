import AudioIO
import Denoise

/// What a spectrum is called where Denoise isn't imported.
package typealias NoiseSpectrum = PowerSpectrum

/// The mean power spectrum of a stretch of a recording.
package struct MeasureSpectrum: Sendable {
  /// The sound file to read.
  package let source: String
  /// The stretch.
  package let window: TimeWindow
  /// What a recording may be at the most.
  package let limits: AudioLimits

  /// Work on `source`; nothing happens before `run`.
  package init(source: String, window: TimeWindow, limits: AudioLimits = AudioLimits()) {
    self.source = source
    self.window = window
    self.limits = limits
  }

  /// Reads the stretch. Throws `.regionOutside` where it is not within the recording, `.denoise` where it is shorter
  /// than two analysis frames.
  package func run() throws(ProcessingError) -> PowerSpectrum {
    let learner = NoiseLearner(source: source, noise: .region(start: window.start, end: window.end), limits: limits)
    return PowerSpectrum(try learner.learn { _ in }.profile)
  }
}
