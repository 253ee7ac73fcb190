import AudioIO
import Denoise
import Terms
import Workers

/// Measures the mean power spectrum of a stretch of a recording.
struct MeasureSpectrum {
  let source: String
  let window: TimeWindow
  var limits = AudioLimits()
  /// The file's sound map, if already known.
  var map: SoundMap?

  /// Reads the stretch. Throws `.regionOutside` if it isn't within the recording, `.denoise` if it's shorter than an
  /// analysis frame.
  func run() throws(ProcessingError) -> PowerSpectrum {
    let learner = NoiseLearner(
      source: source, noise: .region(start: window.start, end: window.end), looksForBetter: false, limits: limits,
      countsSilence: true,
      map: map)
    return PowerSpectrum(try learner.learn { _ in }.course.mean)
  }
}
