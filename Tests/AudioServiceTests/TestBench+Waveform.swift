import Storage
import Waveform

@testable import AudioService

extension TestBench {
  /// Gives a recording a finished waveform with 60,000 frames.
  func makeWaveform(of recording: Recording) throws {
    let frames = 60_000
    let name = "waveform.pyramid"
    var writer = try PyramidWriter(
      creating: store.folder(of: recording.id) + "/" + name, sampleRate: recording.format.sampleRate,
      channels: recording.format.channels)
    let samples = (0..<frames * recording.format.channels).map { Int16(truncatingIfNeeded: $0 &* 7919) }
    try writer.append(samples.span)
    try writer.finish()
    try catalog.update(recording.id) {
      $0.waveformState = .ready
      $0.waveformFile = name
    }
  }
}
