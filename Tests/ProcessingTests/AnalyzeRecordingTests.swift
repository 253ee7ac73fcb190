import AudioIO
import Foundation
import Randomness
import SoundFiles
import Terms
import Testing
import Waveform
import Workers

@testable import Processing

struct AnalyzeRecordingTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @discardableResult
  private func analyze(_ path: String, _ limits: AudioLimits = AudioLimits()) throws -> Analysis {
    try AnalyzeRecording(source: path, pyramid: folder("pyramid"), limits: limits).run { _ in }
  }

  private func codes(_ path: String) throws -> [String] { try analyze(path).warnings.map(\.code) }

  private func writePyramid(of samples: [Int16], _ format: AudioFormat) throws {
    var writer = try PyramidWriter(
      creating: folder("expected"), sampleRate: format.sampleRate, channels: format.channels)
    try writer.append(samples.span)
    try writer.finish()
  }

  @Test(arguments: [
    AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 8000, channels: 2),
    AudioFormat(container: .wav, codec: .pcmF32, sampleRate: 8000, channels: 1),
    AudioFormat(container: .flac, codec: .flacS24, sampleRate: 96_000, channels: 6),
    AudioFormat(container: .ogg, codec: .vorbis, sampleRate: 44_100, channels: 2),
    AudioFormat(container: .ogg, codec: .opus, sampleRate: 48_000, channels: 1),
    AudioFormat(container: .mp3, codec: .mp3, sampleRate: 22_050, channels: 2),
  ])
  func thePyramidIsThatOfTheSamples(format: AudioFormat) throws {
    try encode(
      swell(frames: 70_001, channels: format.channels, sampleRate: format.sampleRate), to: folder("a"), format)
    let analysis = try analyze(folder("a"))
    #expect(analysis == Analysis(frames: 70_001, warnings: format.container == .mp3 ? [.seeksInexactly] : []))
    try writePyramid(of: try decode(folder("a")), format)
    let equal = try contents(folder("pyramid")) == contents(folder("expected"))
    #expect(equal)
  }

  @Test func progressNeverFallsAndReadyFramesCanBeRead() throws {
    for (container, codec) in [(AudioContainer.wav, AudioCodec.pcmS16), (.ogg, .vorbis), (.mp3, .mp3)] {
      let format = AudioFormat(container: container, codec: codec, sampleRate: 8000, channels: 1)
      try encode(swell(frames: 900_000, channels: 1, sampleRate: 8000), to: folder("a"), format)
      var last: WorkerProgress?
      var seen: [WaveformSlice] = []
      _ = try AnalyzeRecording(source: folder("a"), pyramid: folder("p"), interval: .zero).run { progress in
        #expect(progress.fraction >= last?.fraction ?? 0 && progress.readyFrames >= last?.readyFrames ?? 0)
        #expect(progress.fraction < 1 || progress.readyFrames == 900_000)
        last = progress
        guard progress.fraction < 1, let file = try? PyramidFile(path: folder("p")) else { return }
        let extent = WaveformExtent(
          sampleRate: 8000, channels: 1, availableFrames: progress.readyFrames, totalFrames: progress.totalFrames,
          estimatedFrames: progress.estimatedFrames, isComplete: false)
        if let window = try? WaveformWindow(WaveformQuery(resolution: .scale(256)), of: extent),
          let slice = try? file.slice(window)
        {
          seen.append(slice)
        }
      }
      #expect(last == WorkerProgress(fraction: 1, readyFrames: 900_000, totalFrames: 900_000, estimatedFrames: nil))
      #expect(seen.count > 5)
      let file = try PyramidFile(path: folder("p"))
      let window = try WaveformWindow(WaveformQuery(resolution: .scale(256)), of: WaveformExtent(finished: file))
      let whole = try file.slice(window)
      for slice in seen {
        #expect(whole.data.starts(with: slice.data))
      }
    }
  }

  @Test func aTruncatedFileIsReadToItsEnd() throws {
    let path = try folder.file(Array(wave((0..<9000).map { Int16($0) }).dropLast(6000)))
    let analysis = try analyze(path)
    #expect(analysis.frames == 6000 && analysis.warnings.map(\.code) == ["truncated"])
    #expect(analysis.warnings[0].detail.contains("18000") && analysis.warnings[0].detail.contains("12000"))
  }

  @Test func aTruncatedFlacFileHasAWarning() throws {
    let format = AudioFormat(container: .flac, codec: .flacS16, sampleRate: 8000, channels: 1)
    try encode(swell(frames: 90_000, channels: 1, sampleRate: 8000), to: folder("a"), format)
    let bytes = try contents(folder("a"))
    let path = try folder.file(Array(bytes.prefix(bytes.count / 2)))
    let analysis = try analyze(path)
    #expect((30_000..<60_000).contains(analysis.frames) && analysis.warnings.map(\.code) == ["truncated"])
  }

  @Test(
    "a FLAC file whose header has a wrong length is decoded completely, with a warning",
    arguments: [
      (UInt64(0), "length_unknown"), (1000, "longer_than_claimed"), (90_001, "truncated"), (1 << 30, "truncated"),
    ])
  func wrongFlacHeader(claim: UInt64, code: String) throws {
    let format = AudioFormat(container: .flac, codec: .flacS16, sampleRate: 8000, channels: 1)
    try encode(swell(frames: 90_000, channels: 1, sampleRate: 8000), to: folder("a"), format)
    let bytes = try contents(folder("a"))
    let path = try folder.file("b", Array(bytes[..<22]) + big(claim, 4) + bytes[26...])
    for threads in [1, 2] {
      let analysis = try AnalyzeRecording(source: path, pyramid: folder("pyramid"), threads: threads).run { _ in }
      #expect(analysis.frames == 90_000 && analysis.warnings.map(\.code) == [code])
      let isNamed = claim == 0 || analysis.warnings[0].detail.contains("promises \(claim) frames, but 90000 could")
      #expect(isNamed)
    }
    try writePyramid(of: try decode(folder("a")), format)
    let equal = try contents(folder("pyramid")) == contents(folder("expected"))
    #expect(equal)
    // The answer to the upload reports it already.
    let probe = try ProbeRecording(source: path).run()
    #expect(probe.shape.frames == 90_000 && probe.warnings.map(\.code) == [code])
  }

  @Test func aHeaderWithoutALengthIsAccepted() throws {
    let samples = (0..<9000).map { Int16($0) }
    let path = try folder.file(riff(waveFormat() + chunk("data", bytes(samples), claiming: 0xFFFF_FFFF)))
    #expect(try analyze(path).frames == 9000)
    #expect(try codes(path) == ["length_unknown"])
  }

  @Test func aFileLongerThanItClaimsIsReadAsClaimedWithAWarning() throws {
    let samples = (0..<9000).map { Int16($0) }
    let path = try folder.file(riff(waveFormat() + chunk("data", bytes(samples), claiming: 10_000)))
    let analysis = try analyze(path)
    #expect(analysis.frames == 5000 && analysis.warnings.map(\.code) == ["bytes_left_out"])
    #expect(analysis.warnings[0].detail.contains("10000 bytes") && analysis.warnings[0].detail.contains("8000 more"))
  }

  @Test func nonFiniteSamplesAreCounted() throws {
    let path = try folder.file(floatWave([0.5, .nan, .infinity] + [Float](repeating: 0.1, count: 600)))
    let analysis = try analyze(path)
    #expect(analysis.frames == 603 && analysis.warnings.map(\.code) == ["non_finite_samples"])
    #expect(analysis.warnings[0].detail.hasPrefix("2 samples"))
  }

  @Test(arguments: [1, 3])
  func samplesBeyondFullScaleAreCounted(threads: Int) throws {
    let loud = (0..<400_000).map { Float($0 % 1000 == 7 ? -1.5 : $0 % 2 == 0 ? 1 : .infinity) }
    let path = try folder.file(floatWave([2.25] + loud))
    let warnings = try AnalyzeRecording(
      source: path, pyramid: folder("pyramid"), threads: threads, segmentFrames: 65_536
    ).run { _ in }.warnings
    #expect(warnings.map(\.code) == ["non_finite_samples", "over_full_scale"])
    #expect(warnings[1].detail.hasPrefix("401 samples are beyond full scale (±1), up to 2.25."))
  }

  @Test func nothingToDecodeIsAnError() throws {
    let path = try folder.file(riff(waveFormat() + chunk("data", [])))
    #expect { try analyze(path) } throws: { if case ProcessingError.audio(.empty) = $0 { true } else { false } }
  }

  /// The header of a compressed file may say nothing, or be wrong.
  @Test func tooLongIsNoticedWhileDecoding() throws {
    let format = AudioFormat(container: .ogg, codec: .vorbis, sampleRate: 8000, channels: 1)
    try encode(swell(frames: 200_000, channels: 1, sampleRate: 8000), to: folder("a"), format)
    let bytes = try contents(folder("a"))
    // Without its last page, it has no length.
    let path = try folder.file("b", Array(bytes.dropLast(10)))
    var limits = AudioLimits()
    limits.durationSeconds = 10
    #expect { try analyze(path, limits) } throws: {
      if case ProcessingError.audio(.durationOutOfRange(_, limit: 10)) = $0 { true } else { false }
    }
    #expect(try codes(path).contains("truncated"))
  }

  @Test(arguments: [AudioCodec.vorbis, .opus])
  func chainedStreamsAreAllUsedAndReported(codec: AudioCodec) throws {
    var format = AudioFormat(container: .ogg, codec: codec, sampleRate: 48_000, channels: 1)
    try encode(swell(frames: 90_000, channels: 1, sampleRate: 48_000), to: folder("a"), format)
    try encode(swell(frames: 70_000, channels: 1, sampleRate: 48_000), to: folder("b"), format)
    let path = try folder.file("c", try contents(folder("a")) + contents(folder("b")))
    let analysis = try analyze(path)
    #expect(analysis.frames == 160_000 && analysis.warnings.map(\.code) == ["chained_stream"])
    #expect(analysis.warnings[0].detail.contains(" 2 streams"))
    try writePyramid(of: try decode(folder("a")) + decode(folder("b")), format)
    let equal = try contents(folder("pyramid")) == contents(folder("expected"))
    #expect(equal)
    format.channels = 2
    try encode(swell(frames: 24_000, channels: 2, sampleRate: 48_000), to: folder("d"), format)
    let mixed = try analyze(try folder.file("e", try contents(path) + contents(folder("d"))))
    #expect(mixed.frames == 160_000 && mixed.warnings.map(\.code) == ["chained_stream", "streams_left_out"])
    #expect(mixed.warnings[1].detail.hasPrefix("1 of the streams") && mixed.warnings[1].detail.contains("0.5 s"))
  }

  @Test func joinedMP3FilesAreOneRecording() throws {
    let format = AudioFormat(container: .mp3, codec: .mp3, sampleRate: 44_100, channels: 1)
    try encode(swell(frames: 100_000, channels: 1, sampleRate: 44_100), to: folder("a"), format)
    let bytes = try contents(folder("a"))
    let analysis = try analyze(try folder.file("b", bytes + [1, 2, 3] + bytes))
    let codes = ["chained_stream", "foreign_bytes", "seeks_inexactly"]
    #expect(analysis.frames == 200_000 && analysis.warnings.map(\.code) == codes)
    try writePyramid(of: try decode(folder("a")) + decode(folder("a")), format)
    let equal = try contents(folder("pyramid")) == contents(folder("expected"))
    #expect(equal)
  }

  @Test(arguments: [
    AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 16_000, channels: 2),
    AudioFormat(container: .wav, codec: .pcmF32, sampleRate: 96_000, channels: 1),
    AudioFormat(container: .flac, codec: .flacS16, sampleRate: 44_100, channels: 3),
    AudioFormat(container: .ogg, codec: .vorbis, sampleRate: 48_000, channels: 2),
  ])
  func severalCoresChangeNothing(format: AudioFormat) throws {
    var generator = TestRandom(for: format.channels)
    let frames = 9 * 65_536 + 30_000
    var sound = swell(frames: frames, channels: format.channels, sampleRate: format.sampleRate)
    // Noise between the tones, so that there are regions.
    for index in sound.indices {
      let isQuiet = index / format.channels % (2 * format.sampleRate) < format.sampleRate
      sound[index] = (isQuiet ? 0 : sound[index]) + .random(in: -0.01...0.01, using: &generator)
    }
    try encode(sound, to: folder("a"), format)
    func analyze(_ threads: Int) throws -> Analysis {
      try AnalyzeRecording(
        source: folder("a"), pyramid: folder("\(threads)"), threads: threads, findsNoiseRegions: true,
        segmentFrames: 65_536
      ).run { _ in }
    }
    let alone = try analyze(1)
    #expect(alone.frames == Int64(frames) && alone.noiseRegions?.isEmpty == false)
    for threads in [2, 3] {
      #expect(try analyze(threads) == alone)
      let equal = try contents(folder("\(threads)")) == contents(folder("1"))
      #expect(equal)
    }
  }

  @Test func noiseRegionsOfTheSamePassMatchThoseOfASeparatePass() throws {
    let format = AudioFormat(container: .wav, codec: .pcmS24, sampleRate: 16_000, channels: 2)
    var generator = SeededGenerator(state: 3)
    let noise = (0..<96_000).map { _ in Float.random(in: -0.02...0.02, using: &generator) }
    try encode(noise, to: folder("noise"), format)
    func analyze(_ findsNoiseRegions: Bool) throws -> Analysis {
      try AnalyzeRecording(
        source: folder("noise"), pyramid: folder("pyramid"), findsNoiseRegions: findsNoiseRegions
      ).run { _ in }
    }
    let found = try analyze(true).noiseRegions
    #expect(try found == FindNoiseRegions(source: folder("noise")).run { _, _ in })
    #expect(found?.isEmpty == false)
    #expect(try analyze(false).noiseRegions == nil)
  }
}
