import AudioIO
import Denoise

/// Measures the mean power spectrum of a stretch of a recording.
struct MeasureSpectrum {
  let source: String
  let window: TimeWindow
  var limits = AudioLimits()

  /// Reads the stretch. Throws `.regionOutside` if it isn't within the recording, `.denoise` if it's shorter than an
  /// analysis frame.
  func run() throws(ProcessingError) -> PowerSpectrum {
    let learner = NoiseLearner(
      source: source, noise: .region(start: window.start, end: window.end), limits: limits, countsSilence: true)
    return PowerSpectrum(try learner.learn { _ in }.course.mean)
  }
}
