import AudioIO
import Denoise
import Foundation
import Loudness
import SoundFiles
import Terms
import Testing
import Voice
import Waveform
import Workers

@testable import Processing

/// A denoised result that is brought to a loudness.
@Suite struct DenoiseLoudnessTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Noise, and bursts of tones with sharp peaks over it.
  private func make(_ format: AudioFormat, seconds: Double = 6) throws {
    var generator = SeededGenerator(state: 5)
    let rate = Double(format.sampleRate)
    let samples = (0..<Int(seconds * rate)).flatMap { frame -> [Float] in
      let time = Double(frame) / rate
      let isLoud = time > 1 && time.truncatingRemainder(dividingBy: 1) < 0.6
      let tone = isLoud ? 0.1 * sin(2 * .pi * 330 * time) + (frame % 4800 < 3 ? 0.4 : 0) : 0
      return (0..<format.channels).map { _ in Float(tone) + Float.random(in: -0.004...0.004, using: &generator) }
    }
    try encode(samples, to: folder("in"), format)
  }

  private func denoise(
    to loudness: Double?, output: DenoiseSettings.Output = .denoised, progress: (WorkerProgress) -> Void = { _ in }
  ) throws -> DenoiseOutcome {
    var parameters = DenoiseParameters(noise: .region(start: 0.1, end: 0.9))
    parameters.settings.output = output
    parameters.loudness = loudness
    let work = DenoiseWork(parameters, output: folder("out"), pyramid: folder("out.pyramid"))
    let perform = try WorkerRequest(.denoise(work), on: folder("in")).begin()
    guard case .denoised(let outcome) = try perform(progress) else { throw AudioIOError.empty }
    return outcome
  }

  private func measured(_ name: String) throws -> MeasuredLoudness {
    try MeasureLoudness(source: folder(name)).run { _ in }
  }

  @Test(
    "the result has the loudness that was asked for and a true peak of at most −1 dBTP",
    arguments: [
      (.wav, .pcmS16, -30.0), (.wav, .pcmS16, -16), (.flac, .flacS24, -16), (.wav, .pcmF32, -14), (.mp3, .mp3, -16),
      (.ogg, .vorbis, -20),
    ] as [(AudioContainer, AudioCodec, Double)])
  func target(container: AudioContainer, codec: AudioCodec, target: Double) throws {
    try make(AudioFormat(container: container, codec: codec, sampleRate: 48_000, channels: 2))
    let outcome = try denoise(to: target)
    let change = try #require(outcome.loudness)
    let found = try measured("out")
    #expect(abs(try #require(found.integratedLufs) - target) < 0.2, "\(found)")
    #expect(try #require(found.truePeakDbtp) <= -1, "\(found)")
    #expect(change.target == target)
    #expect(abs(try #require(change.after.integratedLufs) - target) < 0.1)
    #expect(abs(try #require(change.before.integratedLufs) - (try #require(try measured("in").integratedLufs))) < 0.01)
    #expect(outcome.frames == 288_000 && outcome.warnings.isEmpty)
    #expect(try SoundFiles.format(of: folder("out")).codec == codec)
    guard codec.sampleKind != .lossy else { return }
    _ = try AnalyzeRecording(source: folder("out"), pyramid: folder("again")).run { _ in }
    let isSame = try contents(folder("again")) == contents(folder("out.pyramid"))
    #expect(isSame, "the waveform made on the way is not that of the file")
  }

  @Test("progress never decreases, and the waveform grows only in the second stage")
  func progress() throws {
    try make(AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 48_000, channels: 1))
    var steps: [WorkerProgress] = []
    _ = try denoise(to: -16) { steps.append($0) }
    #expect(steps.map(\.fraction) == steps.map(\.fraction).sorted() && steps.last?.fraction == 1)
    #expect(steps.map(\.readyFrames) == steps.map(\.readyFrames).sorted() && steps.last?.readyFrames == 288_000)
    #expect(steps.allSatisfy { $0.readyFrames == 0 || $0.fraction >= 0.7 })
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["in", "out", "out.pyramid"])
  }

  @Test("a target that only distortion could reach is missed with a warning; silence is left as it is")
  func missed() throws {
    try make(AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 48_000, channels: 1))
    let loud = try denoise(to: -5)
    #expect(try #require(try measured("out").truePeakDbtp) <= -1)
    let reached = try #require(loud.loudness?.after.integratedLufs)
    #expect(reached > -12 && loud.warnings.map(\.code) == (abs(reached + 5) > 0.5 ? ["loudness_missed"] : []))
    _ = try folder.file("in", wave([Int16](repeating: 0, count: 48_000), sampleRate: 48_000))
    var parameters = DenoiseParameters(noise: .quantile(0.2))
    parameters.loudness = -16
    let work = DenoiseWork(parameters, output: folder("out"))
    guard case .denoised(let silent) = try WorkerRequest(.denoise(work), on: folder("in")).begin()({ _ in }) else {
      return
    }
    #expect(silent.loudness?.after.integratedLufs == nil && silent.warnings.map(\.code) == ["loudness_missed"])
    #expect(try decode(folder("out")).allSatisfy { $0 == 0 })
  }

  @Test("a target changes nothing about where the noise is learned, or how it is removed")
  func sameWork() throws {
    try make(AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 16_000, channels: 1))
    let profile = folder("fan.json")
    let work = NoiseProfileWork(.region(start: 0.1, end: 0.9), name: nil, output: profile)
    _ = try LearnNoiseProfile(source: folder("in"), work: work).run { _ in }
    let known = NoiseRegion(1600..<12_800, sampleRate: 16_000, level: -50, score: 0.9)
    let weights = VoiceWeights((0..<VoiceWeights.count).map { Float($0 % 7 - 3) / 64 })
    for (noise, method, source) in [
      (.profile("kept"), .mmseLSA, .profile("kept")), (nil, .mmseLSA, .region(start: 0.1, end: 0.8)),
      (nil, .voice, .region(start: 0.1, end: 0.8)),
    ] as [(NoiseSource?, DenoiseMethod, NoiseSource)] {
      let parameters = DenoiseParameters(noise: noise, settings: DenoiseSettings(method: method, reductionDB: 18))
      let recording = DenoiseRecording(
        source: folder("in"), output: folder("out"), pyramid: nil, parameters: parameters, profilePath: profile,
        knownRegions: [known], weights: method == .voice ? weights : nil)
      let plain = try recording.run { _ in }
      let outcome = try recording.run(toLoudness: -16, isLossy: nil) { _ in }
      #expect(outcome.noise?.source == source && plain.noise?.source == source)
      #expect(outcome.voice == plain.voice && (plain.voice.map { $0.kept < 1 } ?? (method != .voice)))
    }
  }

  @Test("the level of the noise is that of its region before, and lower after, with or without a target")
  func levels() throws {
    try make(AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 48_000, channels: 2))
    for loudness in [nil, -16.0] {
      let levels = try #require(try denoise(to: loudness).noiseLevel)
      // Uniform noise of ±0.004.
      #expect(abs(try #require(levels.before) - 20 * log10(0.004 / 3.0.squareRoot())) < 0.2, "\(levels)")
      let after = try #require(levels.after)
      #expect((-18.5 ... -12).contains(after - (levels.before ?? 0)), "\(levels)")
    }
  }
}
