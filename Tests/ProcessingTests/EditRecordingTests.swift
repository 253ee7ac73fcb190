import AudioIO
import Denoise
import Foundation
import SoundFiles
import Terms
import Testing
import Workers

@testable import Processing

/// Boxes of an edit, with and without noise removal.
struct EditRecordingTests {
  private let folder: TemporaryFolder
  private static let box = EditBox(start: 1, end: 1.5, minHz: 1000, gainDB: -40)

  init() throws { folder = try TemporaryFolder() }

  private func edit(
    to name: String = "out", method: DenoiseMethod = .editOnly, _ boxes: [EditBox] = [box],
    output: DenoiseSettings.Output = .denoised, window: TimeWindow? = nil
  ) throws(ProcessingError) -> DenoiseOutcome {
    try DenoiseRecording(
      source: folder("in"), output: folder(name), pyramid: nil,
      parameters: DenoiseParameters(
        noise: method == .editOnly ? nil : .quantile(0.2), settings: DenoiseSettings(method: method, output: output),
        edit: SoundEdit(boxes)), window: window
    ).run { _ in }
  }

  @Test(
    "outside of a box and its fades, a lossless result has the samples of its source",
    arguments: [
      (.wav, .pcmU8), (.wav, .pcmS16), (.wav, .pcmS24), (.wav, .pcmF32), (.flac, .flacS16), (.flac, .flacS24),
    ]
      as [(AudioContainer, AudioCodec)])
  func lossless(container: AudioContainer, codec: AudioCodec) throws {
    let format = AudioFormat(container: container, codec: codec, sampleRate: 16_000, channels: 2)
    try encode(swell(frames: 48_000, channels: 2, sampleRate: 16_000), to: folder("in"), format)
    let outcome = try edit()
    #expect(outcome.frames == 48_000 && outcome.noise == nil && outcome.link == nil && outcome.noiseLevel == nil)
    let (before, after) = (try decodeFloat(folder("in")), try decodeFloat(folder("out")))
    let hop = AnalysisFrame(sampleRate: 16_000).hop
    let (start, end) = (2 * (16_000 - hop), 2 * (24_000 + hop))
    #expect(after[..<start] == before[..<start] && after[end...] == before[end...])
    let inside = 2 * 16_000..<2 * 24_000
    func power(_ samples: [Float]) -> Float { samples[inside].reduce(0) { $0 + $1 * $1 } }
    #expect(power(after) < power(before) * (codec == .pcmU8 ? 3e-3 : 5e-4))
    _ = try edit(to: "rest", output: .residue)
    let rest = try decodeFloat(folder("rest"))
    #expect(rest[..<start].allSatisfy { $0 == 0 } && rest[end...].allSatisfy { $0 == 0 })
  }

  @Test("a window has the bits of the whole", arguments: [DenoiseMethod.editOnly, .mmseLSA])
  func window(method: DenoiseMethod) throws {
    let format = AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 16_000, channels: 2)
    try encode(swell(frames: 64_000, channels: 2, sampleRate: 16_000), to: folder("in"), format)
    _ = try edit(method: method)
    _ = try edit(to: "part", method: method, window: TimeWindow(start: 1.2, end: 2))
    let (whole, part) = (try decodeFloat(folder("out")), try decodeFloat(folder("part")))
    #expect(part[...] == whole[2 * 19_200..<2 * 32_000])
    #expect(whole != (try decodeFloat(folder("in"))))
  }

  @Test func aBoxAboveHalfTheSampleRateIsRefused() throws {
    let format = AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 16_000, channels: 1)
    try encode(swell(frames: 8000, channels: 1, sampleRate: 16_000), to: folder("in"), format)
    #expect(throws: ProcessingError.self) { try edit([Self.box, EditBox(maxHz: 8001, gainDB: -1)]) }
    let failure = WorkerFailure(ProcessingError.boxAbove(number: 1, limit: 8000))
    #expect(failure.code == "box_outside" && failure.detail.contains("8000"))
  }
}
