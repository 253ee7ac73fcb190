import AudioIO
import Denoise
import Foundation
import SoundFiles
import Terms
import Testing
import Waveform
import Workers

@testable import Processing

struct DenoiseRecordingTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Half a second of noise, tones over noise, half a second of noise.
  func noisy(channels: Int, sampleRate: Int, seconds: Double = 3) -> [Float] {
    var generator = SeededGenerator(state: 11)
    let frames = Int(seconds * Double(sampleRate))
    var samples: [Float] = []
    for frame in 0..<frames {
      let sounds = frame > sampleRate / 2 && frame < frames - sampleRate / 2
      for channel in 0..<channels {
        let noise = Float.random(in: -0.03...0.03, using: &generator)
        let phase = 2 * Double.pi * Double(440 * (channel + 1)) * Double(frame) / Double(sampleRate)
        samples.append(noise + (sounds ? 0.4 * Float(sin(phase)) : 0))
      }
    }
    return samples
  }

  func source(
    _ container: AudioContainer, _ codec: AudioCodec, rate: Int = 16_000, channels: Int = 2, seconds: Double = 3
  ) throws -> AudioFormat {
    let format = AudioFormat(container: container, codec: codec, sampleRate: rate, channels: channels)
    try encode(noisy(channels: channels, sampleRate: rate, seconds: seconds), to: folder("in"), format)
    return format
  }

  @discardableResult
  func denoise(
    to name: String = "out", noise: NoiseSource? = .region(start: 0, end: 0.45),
    settings: DenoiseSettings = DenoiseSettings(), format: OutputFormat = .same, pyramid: Bool = true,
    window: TimeWindow? = nil, progress: (WorkerProgress) -> Void = { _ in }
  ) throws(ProcessingError) -> DenoiseOutcome {
    try DenoiseRecording(
      source: folder("in"), output: folder(name), pyramid: pyramid ? folder(name + ".pyramid") : nil,
      parameters: DenoiseParameters(noise: noise, settings: settings, format: format), window: window
    ).run(progress: progress)
  }

  func power(_ samples: ArraySlice<Float>) -> Float {
    samples.reduce(0) { $0 + $1 * $1 } / Float(max(samples.count, 1))
  }

  @Test(
    arguments: [
      (.wav, .pcmU8), (.wav, .pcmS16), (.wav, .pcmS24), (.wav, .pcmS32), (.wav, .pcmF32), (.aiff, .pcmS24),
      (.au, .pcmS16),
      (.caf, .alac24), (.flac, .flacS16), (.flac, .flacS24), (.w64, .pcmS16), (.rf64, .pcmS16), (.ogg, .vorbis),
      (.ogg, .opus), (.mp3, .mp3),
    ] as [(AudioContainer, AudioCodec)])
  func theResultIsOfTheSourcesKindAndLengthAndQuieter(container: AudioContainer, codec: AudioCodec)
    throws
  {
    let format = try source(container, codec)
    let before = try decodeFloat(folder("in"))
    let outcome = try denoise()
    let after = try decodeFloat(folder("out"))
    #expect(try SoundFiles.format(of: folder("out")) == format)
    #expect(outcome.frames == 48_000 && before.count == 96_000 && after.count == 96_000)
    #expect(outcome.noise?.source == .region(start: 0, end: 0.45) && outcome.warnings.isEmpty)
    // 18 dB less noise means a factor of 15.8; 8 bits have noise of their own.
    let (noise, rest) = (power(before[2000..<12_000]), power(after[2000..<12_000]))
    #expect(rest < noise / (codec == .pcmU8 ? 8 : 30), "\(10 * log10(noise / rest)) dB")
    let (tone, kept) = (power(before[40_000..<60_000]), power(after[40_000..<60_000]))
    #expect(abs(10 * log10(kept / tone)) < 0.5)
    guard codec.sampleKind != .lossy else { return }
    _ = try AnalyzeRecording(source: folder("out"), pyramid: folder("again")).run { _ in }
    let isSame = try contents(folder("again")) == contents(folder("out.pyramid"))
    #expect(isSame, "the waveform made on the way is not that of the file")
  }

  @Test(arguments: OutputFormat.allCases)
  func everyFormatAskedForIsWritten(format: OutputFormat) throws {
    let source = try source(.wav, .pcmS24)
    let expected = try format.format(for: source)
    try denoise(format: format)
    #expect(try SoundFiles.format(of: folder("out")) == expected)
    #expect(try decode(folder("out")).count == 96_000)
  }

  @Test("title and artist are kept", arguments: [OutputFormat.same, .flac, .mp3])
  func tags(format: OutputFormat) throws {
    _ = try source(.wav, .pcmS16)
    var file = try contents(folder("in"))
    let data = try #require((12..<200).first { file[$0..<$0 + 4].elementsEqual("data".utf8) })
    let title = Array("LIST\u{14}\0\0\0INFOINAM\u{8}\0\0\0Evening\0".utf8)
    file.insert(contentsOf: title, at: data)
    // The file's length is in the first chunk.
    let length = UInt32(file.count - 8)
    file.replaceSubrange(4..<8, with: (0..<4).map { UInt8(truncatingIfNeeded: length >> (8 * $0)) })
    _ = try folder.file("in", file)
    let tags = SoundTags(path: folder("in"))
    #expect(!tags.texts.isEmpty)
    try denoise(format: format)
    #expect(SoundTags(path: folder("out")).texts == tags.texts)
    _ = try ConvertRecording(source: folder("in"), output: folder("other"), format: .flac).run { _ in }
    #expect(SoundTags(path: folder("other")).texts == tags.texts)
  }

  @Test(
    "the removed and the remaining part add up to the original, sample by sample",
    arguments: [
      (.wav, .pcmU8), (.wav, .pcmS16), (.wav, .pcmS24), (.flac, .flacS16), (.flac, .flacS24), (.aiff, .pcmS16),
    ] as [(AudioContainer, AudioCodec)])
  func residue(container: AudioContainer, codec: AudioCodec) throws {
    _ = try source(container, codec)
    var residue = DenoiseSettings()
    residue.output = .residue
    let (kept, rest) = (try denoise(), try denoise(to: "residue", settings: residue))
    let (original, left, taken) = (
      try decodeFloat(folder("in")), try decodeFloat(folder("out")), try decodeFloat(folder("residue"))
    )
    #expect(zip(left, taken).map { $0 + $1 } == original)
    #expect(kept.clippedSamples == 0 && rest.clippedSamples == 0)
  }

  @Test func withoutReductionEverySampleIsUnchanged() throws {
    for codec in [AudioCodec.pcmU8, .pcmS16] {
      _ = try source(.wav, codec)
      try denoise(settings: DenoiseSettings(reductionDB: 0))
      #expect(try decodeFloat(folder("out")) == decodeFloat(folder("in")), "\(codec)")
    }
  }

  @Test func digitalSilenceStaysSilentAndAllElseIsDithered() throws {
    let format = try source(.wav, .pcmS16, channels: 1, seconds: 6)
    var generator = SeededGenerator(state: 2)
    let whisper = (0..<96_000).map { index -> Float in
      (40_000..<60_000).contains(index) ? 0 : Float(Int.random(in: -3...3, using: &generator)) / 32768
    }
    try encode(whisper, to: folder("in"), format)
    try denoise(settings: DenoiseSettings(reductionDB: 25))
    let after = try decode(folder("out"))
    #expect(after[41_000..<59_000].allSatisfy { $0 == 0 })
    // A ninth of a step of noise is left. Without dither it would all be 0; with it, every fourth sample is a step off.
    let steps = after[2000..<38_000].filter { $0 != 0 }.count
    #expect((7000...11_000).contains(steps), "\(steps)")
    #expect(after.allSatisfy { abs($0) <= 3 })
  }

  @Test func samplesBeyondFullScaleAreClippedAndCounted() throws {
    let format = AudioFormat(container: .wav, codec: .pcmF32, sampleRate: 16_000, channels: 1)
    let loud = noisy(channels: 1, sampleRate: 16_000).map { $0 * 4 }
    try encode(loud, to: folder("in"), format)
    let beyond = loud.filter { abs($0) > 1 }.count
    let flac = try denoise(format: .flac)
    #expect(abs(flac.clippedSamples - Int64(beyond)) < Int64(beyond / 20))
    let peaks = try decode(folder("out"))
    #expect(peaks.max() == 32767 && peaks.min() == -32768)
    #expect(try denoise(format: .wav).clippedSamples == 0)
  }

  @Test(
    "a window has the same samples as in the whole",
    arguments: [
      (.wav, .pcmS16), (.wav, .pcmF32), (.flac, .flacS24), (.ogg, .vorbis),
    ] as [(AudioContainer, AudioCodec)])
  func window(container: AudioContainer, codec: AudioCodec) throws {
    _ = try source(container, codec, rate: 8000, seconds: 20)
    var settings = DenoiseSettings()
    for output in DenoiseSettings.Output.allCases {
      settings.output = output
      try denoise(settings: settings, format: .wav)
      let whole = try decodeFloat(folder("out"))
      for (start, end) in [(0, 2), (0.3, 0.30001), (8.25, 11), (15.5, 20), (19, 40)] {
        let outcome = try denoise(
          to: "part", settings: settings, format: .wav, pyramid: false, window: TimeWindow(start: start, end: end))
        let part = try decodeFloat(folder("part"))
        let (first, last) = (Int((start * 8000).rounded()), min(max(Int(end * 8000), Int(start * 8000) + 1), 160_000))
        #expect(outcome.frames == Int64(last - first))
        #expect(part == Array(whole[(2 * first)..<(2 * last)]), "\(start)–\(end)")
      }
    }
  }

  @Test(
    "the link is reported, and a window of linked channels has the same samples",
    arguments: [nil, ChannelLink.all, ChannelLink.none])
  func link(link: ChannelLink?) throws {
    _ = try source(.wav, .pcmF32, rate: 8000, channels: 3, seconds: 20)
    let settings = DenoiseSettings(link: link)
    #expect(try denoise(settings: settings).link == link ?? .pairs)
    let whole = try decodeFloat(folder("out"))
    try denoise(to: "part", settings: settings, pyramid: false, window: TimeWindow(start: 8.25, end: 11))
    #expect(try decodeFloat(folder("part")) == Array(whole[(3 * 66_000)..<(3 * 88_000)]))
  }

  @Test func aWindowPastTheEndIsRefused() throws {
    for (container, codec) in [(AudioContainer.wav, AudioCodec.pcmS16), (.mp3, .mp3)] {
      _ = try source(container, codec)
      for start in [3.5, 40, 1e12] {
        let error = #expect(throws: ProcessingError.self) {
          try denoise(pyramid: false, window: TimeWindow(start: start, end: start + 1))
        }
        guard case .windowOutside? = error else {
          Issue.record("\(codec) \(start): \(String(describing: error))")
          continue
        }
      }
    }
  }

  @Test func theOutcomeHasTheProfileInFewPoints() throws {
    _ = try source(.wav, .pcmS16)
    let profile = try #require(try denoise().profile)
    #expect(profile.frequencies.count == 96 && profile.powerDB.count == 96)
    // Noise of ±0.03 is 35 dB under full scale, spread over 384 bins.
    #expect(profile.powerDB.suffix(40).allSatisfy { abs($0 + 61) < 3 })
    let spectrum = try MeasureSpectrum(source: folder("in"), window: TimeWindow(start: 0, end: 0.45)).run()
    #expect(spectrum.frequencies.count == 385)
  }

  @Test func aRegionMayBeAtTheVeryEnd() throws {
    for (container, codec) in [(AudioContainer.wav, AudioCodec.pcmS16), (.ogg, .vorbis), (.mp3, .mp3)] {
      _ = try source(container, codec)
      let before = try decodeFloat(folder("in"))
      // Seconds as displayed: rounded, in this case up by less than a frame.
      try denoise(noise: .region(start: 2.55, end: 3.00003))
      let after = try decodeFloat(folder("out"))
      #expect(power(after[90_000...]) < power(before[90_000...]) / 20, "\(codec)")
    }
  }

  @Test(
    arguments: [
      (2.5, 3.1), (3, 4), (100, 200), (1e300, 1e301), (-1, 1), (1, 0.5), (.nan, 1), (0, .infinity), (0, .nan),
    ] as [(Double, Double)])
  func aRegionOutsideIsRefused(start: Double, end: Double) throws {
    for (container, codec) in [(AudioContainer.wav, AudioCodec.pcmS16), (.ogg, .vorbis), (.mp3, .mp3)] {
      _ = try source(container, codec, channels: 1)
      #expect {
        try denoise(noise: .region(start: start, end: end))
      } throws: {
        guard let error = $0 as? ProcessingError else { return false }
        return WorkerFailure(error).code == "noise_region_outside"
      }
    }
  }

  @Test func aRegionWithOnlyDigitalSilenceIsRefusedUnlessItIsOnlyMeasured() throws {
    let format = AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 16_000, channels: 1)
    var samples = noisy(channels: 1, sampleRate: 16_000)
    for index in 8000..<24_000 { samples[index] = 0 }
    try encode(samples, to: folder("in"), format)
    #expect {
      try denoise(noise: .region(start: 0.6, end: 1.2))
    } throws: {
      guard case ProcessingError.denoise(.silentRegion) = $0 else { return false }
      return true
    }
    let spectrum = try MeasureSpectrum(source: folder("in"), window: TimeWindow(start: 0.6, end: 1.2)).run()
    #expect(spectrum.powerDB.allSatisfy { $0 == -200 })
    // Half silence and half noise.
    try denoise(noise: .region(start: 0, end: 1))
    let after = try decodeFloat(folder("out"))
    #expect(power(after[1000..<7000]) < power(samples[1000..<7000]) / 30)
  }

  @Test func aRegionTooShortForAProfileIsRefused() throws {
    _ = try source(.wav, .pcmS16)
    let needed = NoiseProfile.minimumFrames(sampleRate: 16_000)
    let enough = Double(needed) / 16_000
    try denoise(noise: .region(start: 0.1, end: 0.1 + enough))
    #expect {
      try denoise(noise: .region(start: 0.1, end: 0.1 + enough - 0.001))
    } throws: {
      guard case ProcessingError.denoise(.regionTooShort(let frames, needed)) = $0 else { return false }
      return frames == needed - 16
    }
  }

  @Test func aFormatThatCannotHoldTheRateIsRefused() throws {
    _ = try source(.wav, .pcmS16, rate: 11_025)
    #expect { try denoise(format: .opus) } throws: {
      guard let error = $0 as? ProcessingError else { return false }
      return WorkerFailure(error).code == "unsupported_output"
    }
  }

  @Test func progressNeverFallsAndEndsAtOne() throws {
    for (container, codec) in [(AudioContainer.wav, AudioCodec.pcmS16), (.mp3, .mp3)] {
      for noise in [NoiseSource.region(start: 0, end: 0.45), .quantile(0.2)] {
        _ = try source(container, codec, rate: 8000, channels: 1, seconds: 20)
        var last = WorkerProgress(fraction: 0, readyFrames: 0, totalFrames: nil, estimatedFrames: nil)
        var steps = 0
        try denoise(noise: noise) { progress in
          #expect(progress.fraction >= last.fraction && progress.readyFrames >= last.readyFrames)
          last = progress
          steps += 1
        }
        #expect(steps > 3)
        #expect(last == WorkerProgress(fraction: 1, readyFrames: 160_000, totalFrames: 160_000, estimatedFrames: nil))
      }
    }
  }

  @Test func nonFiniteSamplesBecomeSilence() throws {
    var samples = noisy(channels: 1, sampleRate: 8000)
    samples[10_000] = .nan
    samples[10_001] = .infinity
    _ = try folder.file("in", floatWave(samples))
    let outcome = try denoise()
    #expect(outcome.frames == 24_000 && outcome.warnings.map(\.code) == ["non_finite_samples"])
    #expect(try decodeFloat(folder("out")).allSatisfy { $0.isFinite })
  }

  @Test func warningsFromReadingTheSourceArePassedOn() throws {
    _ = try source(.mp3, .mp3, rate: 44_100, channels: 1)
    let bytes = try contents(folder("in"))
    _ = try folder.file("in", bytes + [1, 2, 3] + bytes)
    let outcome = try denoise(format: .wav)
    #expect(outcome.frames == 2 * 3 * 44_100)
    #expect(outcome.warnings.map(\.code) == ["chained_stream", "foreign_bytes"])
    #expect(try denoise(format: .wav, window: TimeWindow(start: 1, end: 2)).warnings == outcome.warnings)
    // A header that promises more than there is.
    _ = try folder.file("in", Array(wave([Int16](repeating: 9, count: 24_000)).dropLast(8000)))
    let cut = try denoise(noise: .quantile(0.2))
    #expect(cut.frames == 20_000 && cut.warnings.map(\.code) == ["truncated"])
  }

  @Test func withoutAPyramidOnlyTheSoundIsWritten() throws {
    _ = try source(.wav, .pcmS16)
    try denoise(pyramid: false)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["in", "out"])
  }
}
