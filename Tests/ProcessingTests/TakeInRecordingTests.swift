import AudioIO
import Foundation
import SoundFiles
import Terms
import Testing
import Workers

@testable import Processing

/// The separate probe and waveform are the reference.
struct TakeInRecordingTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func perform(_ work: WorkerRequest.Work) throws -> WorkerReport {
    let perform = try WorkerRequest(work, on: folder("a"), threads: 1).begin()
    return try perform { _ in }
  }

  private var work: WorkerRequest.Work {
    .intake(IntakeWork(pyramid: folder("pyramid"), soundMap: folder("map"), labels: folder("labels")))
  }

  private var intake: Intake? {
    get throws {
      guard case .takenIn(let intake) = try perform(work) else { return nil }
      return intake
    }
  }

  @Test(arguments: [
    AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 16_000, channels: 1),
    AudioFormat(container: .flac, codec: .flacS24, sampleRate: 96_000, channels: 2),
    AudioFormat(container: .ogg, codec: .opus, sampleRate: 48_000, channels: 1),
    AudioFormat(container: .mp3, codec: .mp3, sampleRate: 44_100, channels: 2),
  ])
  func aShortFileGetsTheSameProbeAndWaveform(format: AudioFormat) throws {
    try encode(
      swell(frames: 100_000, channels: format.channels, sampleRate: format.sampleRate), to: folder("a"), format)
    let codec = format.codec.name
    let waveform = WaveformWork(
      pyramid: folder("expected"), soundMap: folder("expected map"), findsNoiseRegions: true,
      labels: EmbeddedLabelsWork(output: folder("expected labels"), sampleRate: format.sampleRate, codec: codec))
    let intake = try #require(try intake)
    #expect(try .probed(intake.probe) == perform(.probe))
    #expect(try .analyzed(#require(intake.analysis)) == perform(.waveform(waveform)))
    for (made, expected) in [("pyramid", "expected"), ("map", "expected map"), ("labels", "expected labels")] {
      let bytes = FileManager.default.contents(atPath: folder(made))
      #expect(bytes == FileManager.default.contents(atPath: folder(expected)))
    }
  }

  @Test func aLongFileIsOnlyProbed() throws {
    let format = AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 8000, channels: 2)
    // The probe decodes 2^20 samples.
    try encode(swell(frames: 1 << 19, channels: 2, sampleRate: 8000) + [0.1, 0.1], to: folder("a"), format)
    #expect(try intake?.analysis == nil)
    #expect(!FileManager.default.fileExists(atPath: folder("pyramid")))
  }

  @Test func aFileThatNeedsAWorkingCopyIsOnlyProbed() throws {
    let format = AudioFormat(container: .aiff, codec: .dwvw16, sampleRate: 44_100, channels: 1)
    try encode(swell(frames: 10_000, channels: 1, sampleRate: 44_100), to: folder("a"), format)
    let intake = try #require(try intake)
    #expect(intake.probe.media != nil && intake.analysis == nil)
  }

  @Test func aWaveformThatCannotBeWrittenLeavesTheProbe() throws {
    let format = AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 8000, channels: 1)
    try encode(swell(frames: 8000, channels: 1, sampleRate: 8000), to: folder("a"), format)
    let nowhere = IntakeWork(pyramid: folder("no/pyramid"), soundMap: folder("map"), labels: folder("labels"))
    #expect(try perform(.intake(nowhere)) == .takenIn(Intake(probe: ProbeRecording(source: folder("a")).run())))
  }

  @Test func aFileThatIsNoSoundIsRefused() throws {
    try Data("text".utf8).write(to: URL(fileURLWithPath: folder("a")))
    #expect(throws: ProcessingError.self) { try perform(work) }
  }
}
