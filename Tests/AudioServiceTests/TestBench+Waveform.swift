import Foundation
import Waveform

@testable import AudioService
@testable import Storage

extension TestBench {
  /// Returns the path of the waveform that an attempt is writing.
  func growingPath(of token: AttemptToken) -> String {
    "\(store.workFolder(of: token.job))/\(token.attempt)-\(token.nonce).pyramid"
  }

  /// Gives a recording a finished waveform with 60,000 frames.
  func makeWaveform(of recording: Recording) throws {
    let frames = 60_000
    let key = ObjectKey(recording.id, "waveform.pyramid")
    var writer = try PyramidWriter(
      creating: store.path(of: key), sampleRate: recording.format.sampleRate,
      channels: recording.format.channels)
    let samples = (0..<frames * recording.format.channels).map { Int16(truncatingIfNeeded: $0 &* 7919) }
    try writer.append(samples.span)
    try writer.finish()
    try catalog.update(recording.id) {
      $0.waveformState = .ready
      $0.waveformKey = key
    }
  }

  /// Replaces a recording's audio by a WAV file with 60,000 frames of the same samples.
  func makeSound(of recording: Recording) throws {
    let channels = recording.format.channels
    let samples = (0..<60_000 * channels).map { Int16(truncatingIfNeeded: $0 &* 7919) }
    func little(_ value: Int, _ bytes: Int) -> [UInt8] {
      (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
    var file = Data("RIFF".utf8) + little(samples.count * 2 + 36, 4) + Data("WAVEfmt ".utf8) + little(16, 4)
    file += little(1, 2) + little(channels, 2) + little(recording.format.sampleRate, 4)
    file += little(recording.format.sampleRate * channels * 2, 4) + little(channels * 2, 2) + little(16, 2)
    file += Data("data".utf8) + little(samples.count * 2, 4)
    for sample in samples { file += little(Int(sample), 2) }
    try file.write(to: URL(fileURLWithPath: store.folder(of: recording.id) + "/audio.wav"))
    let length = Int64(file.count)
    try catalog.update(recording.id) { $0.bytes = length }
  }
}
