import AudioIO
import Loudness
import Terms
import Workers

/// Measures the loudness of a whole recording.
struct MeasureLoudness {
  let source: String
  var limits = AudioLimits()

  /// Reads to the end; calls `progress` after every chunk. A sample rate or a number of channels beyond what can be
  /// measured yields nil values.
  func run(progress: (WorkerProgress) -> Void) throws(ProcessingError) -> MeasuredLoudness {
    var reader = try audio { () throws(AudioIOError) in try AudioReader(path: source, limits: limits) }
    let length = ExpectedLength(reader, path: source)
    let meter = LoudnessMeter(sampleRate: reader.format.sampleRate, channels: reader.format.channels)
    while reader.readFloat({ meter?.append($0) }) > 0 { progress(length.progress(read: reader.position, ready: 0)) }
    guard reader.position > 0 else { throw .audio(.empty) }
    return meter?.loudness ?? MeasuredLoudness(integratedLufs: nil, rangeLu: nil, truePeakDbtp: nil)
  }
}
