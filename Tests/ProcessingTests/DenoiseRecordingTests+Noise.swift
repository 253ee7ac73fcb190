import AudioIO
import Denoise
import Foundation
import SoundFiles
import Terms
import Testing
import Waveform
import Workers

@testable import Processing

/// What the noise is learned from.
extension DenoiseRecordingTests {
  @Test func theQuietQuantileReplacesARegion() throws {
    _ = try source(.flac, .flacS16, channels: 1, seconds: 6)
    let before = try decodeFloat(folder("in"))
    let outcome = try denoise(noise: .quantile(0.2))
    #expect(outcome.noise?.source == .quantile(0.2))
    let after = try decodeFloat(folder("out"))
    #expect(after.count == before.count && power(after[1000..<6000]) < power(before[1000..<6000]) / 4)
  }

  @Test(
    "a quantile reads only some seconds of a long recording",
    arguments: [(.wav, .pcmS16), (.ogg, .vorbis)] as [(AudioContainer, AudioCodec)])
  func quantileOfALongRecording(container: AudioContainer, codec: AudioCodec) throws {
    let format = AudioFormat(container: container, codec: codec, sampleRate: 8000, channels: 1)
    var generator = SeededGenerator(state: 3)
    let seconds = 4 * NoiseLearner.wholeSeconds
    try encode(
      (0..<(seconds * 8000)).map { _ in Float.random(in: -0.1...0.1, using: &generator) }, to: folder("in"), format)
    var last: Int64 = 0
    let learnt = try NoiseLearner(source: folder("in"), noise: .quantile(0.2), limits: AudioLimits()).learn { frames in
      #expect(frames > last)
      last = frames
    }
    #expect(last == Int64(NoiseLearner.wholeSeconds) * 8000)
    // White noise of that amplitude under √Hann, whose squares add up to half a frame.
    let expected = 0.01 / 3 * Double(AnalysisFrame(sampleRate: 8000).length) / 2
    let mean = learnt.course.mean.power[0][4..<150].reduce(0.0) { $0 + 10 * log10(Double($1) / expected) } / 146
    #expect(abs(mean) < 0.5)
  }

  @Test func silenceInItsStretchesMakesTheQuantileReadTheWholeFile() throws {
    let format = AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 8000, channels: 1)
    var generator = SeededGenerator(state: 3)
    let seconds = 4 * NoiseLearner.wholeSeconds
    let stretches = NoiseLearner.stretches(of: Int64(seconds * 8000), sampleRate: 8000)
    var samples = (0..<(seconds * 8000)).map { _ in Float.random(in: -0.1...0.1, using: &generator) }
    for stretch in stretches {
      for index in stretch { samples[Int(index)] = 0 }
    }
    try encode(samples, to: folder("in"), format)
    let learnt = try NoiseLearner(source: folder("in"), noise: .quantile(0.2), limits: AudioLimits()).learn { _ in }
    #expect(learnt.course.mean.power[0][4..<150].allSatisfy { $0 > 0 })
  }

  @Test("the stretches of a quantile are inside the recording and don't overlap", arguments: [33, 600, 86_400])
  func stretches(seconds: Int) {
    let total = Int64(seconds) * 44_100
    let stretches = NoiseLearner.stretches(of: total, sampleRate: 44_100)
    #expect(stretches.count == NoiseLearner.wholeSeconds && stretches.allSatisfy { $0.count == 44_100 })
    #expect(zip(stretches, stretches.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound })
    #expect(stretches[0].lowerBound >= 0 && stretches[stretches.count - 1].upperBound <= total)
  }

  @Test func theBestRegionIsFoundIfNoneIsGiven() throws {
    let format = try source(.flac, .flacS16)
    // Two seconds of noise after tones that beat.
    let beating = try decodeFloat(folder("in")).enumerated().map { index, sample in
      index < 64_000 ? sample * abs(sin(Float(index / 2) / 700)) : 0.02 * Float(sin(Double(index * index % 7919)))
    }
    try encode(beating, to: folder("in"), format)
    let outcome = try denoise(noise: nil)
    let regions = try FindNoiseRegions(source: folder("in")).run { _, _ in }
    let best = try #require(regions.first)
    #expect(best.timed.start >= 1.9 && best.frames.upperBound <= 3 * Int64(best.sampleRate))
    #expect(outcome.noise?.source == .region(NoiseSource.Region(best)))
    let (found, given) = try (
      contents(folder("out")),
      { () throws in
        try denoise(to: "given", noise: .region(NoiseSource.Region(best)))
        return try contents(folder("given"))
      }()
    )
    #expect(found == given)
  }

  @Test("auto passes over regions from which no noise can be learned")
  func unusableRegions() throws {
    let format = AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 16_000, channels: 1)
    var samples = noisy(channels: 1, sampleRate: 16_000)
    for index in 8000..<24_000 { samples[index] = 0.25 }
    try encode(samples, to: folder("in"), format)
    let (silent, outside, short, good) =
      (9600..<19_200, 90_000..<99_000, 0..<99, 0..<7200)
      as (
        Range<Int64>, Range<Int64>, Range<Int64>, Range<Int64>
      )
    func source(_ known: Range<Int64>...) throws -> NoiseSource? {
      try DenoiseRecording(
        source: folder("in"), output: folder("out"), pyramid: nil, parameters: DenoiseParameters(),
        knownRegions: known.map { NoiseRegion($0, sampleRate: 16_000, level: -40, score: 0.9) }
      ).run { _ in }.noise?.source
    }
    #expect(try source(silent, outside, short, good) == .region(start: 0, end: 0.45))
    #expect(try source(silent, outside, short) == .quantile(0.2))
    #expect(try source() == .quantile(0.2))
  }

  @Test("auto leaves a recording as it is that is too short to learn from, and says so", arguments: [1, 2, 800, 1535])
  func shortRecording(frames: Int) throws {
    let samples = Array(noisy(channels: 2, sampleRate: 16_000)[..<(2 * frames)])
    try encode(samples, to: folder("in"), AudioFormat(container: .wav, codec: .pcmF32, sampleRate: 16_000, channels: 2))
    let outcome = try denoise(noise: nil)
    #expect(outcome.warnings.map(\.code) == ["noise_not_found"] && outcome.frames == Int64(frames))
    #expect(try decodeFloat(folder("out")) == samples)
    #expect {
      try denoise(noise: .quantile(0.2))
    } throws: {
      guard case ProcessingError.recordingTooShort(frames: Int64(frames), needed: 1536) = $0 else { return false }
      return true
    }
  }

  @Test("the outcome says whether the noise was followed", arguments: [false, true])
  func adapted(isChanging: Bool) throws {
    let format = AudioFormat(container: .wav, codec: .pcmF32, sampleRate: 16_000, channels: 1)
    var generator = SeededGenerator(state: 5)
    let samples = (0..<160_000).map { index in
      Float.random(in: -0.03...0.03, using: &generator) * (isChanging && index > 80_000 ? 3 : 1)
    }
    try encode(samples, to: folder("in"), format)
    func isAdapted(_ adaptation: NoiseAdaptation?) throws -> Bool? {
      try denoise(noise: .region(start: 1, end: 2), settings: DenoiseSettings(adaptation: adaptation)).noise?.adapted
    }
    #expect(try isAdapted(nil) == false)
    #expect(try isAdapted(.ifCertain) == isChanging)
    #expect(try isAdapted(.always) == true)
  }

  @Test func withoutARegionTheQuantileIsUsed() throws {
    let format = try source(.wav, .pcmS16, channels: 1, seconds: 4)
    var generator = SeededGenerator(state: 5)
    let restless = try decodeFloat(folder("in")).enumerated().map { index, _ in
      Float.random(in: -0.5...0.5, using: &generator) * pow(abs(sin(Float(index) / 800)), 4)
    }
    try encode(restless, to: folder("in"), format)
    let outcome = try denoise(noise: nil)
    #expect(outcome.noise?.source == .quantile(0.2) && outcome.warnings.map(\.code) == ["noise_not_found"])
    // Someone who asks for the quantile needs no warning.
    #expect(try denoise(noise: .quantile(0.2)).warnings == [])
  }

  @Test("auto learns from a region before a lasting change and from one after it, each for its time")
  func lastingChange() throws {
    let format = AudioFormat(container: .wav, codec: .pcmF32, sampleRate: 16_000, channels: 1)
    var generator = SeededGenerator(state: 5)
    let samples = (0..<160_000).map { index in
      Float.random(in: -0.005...0.005, using: &generator) * (index < 80_000 ? 1 : 40)
    }
    try encode(samples, to: folder("in"), format)
    let source = try denoise(noise: nil, settings: DenoiseSettings(reductionDB: 25)).noise?.source
    guard case .regions(let regions) = source, regions.count == 2 else {
      Issue.record("\(String(describing: source))")
      return
    }
    #expect(regions[0].end <= 5 && regions[1].start >= 5)
    let after = try decodeFloat(folder("out"))
    for seconds in [1.0..<4.7, 5.3..<9] {
      let part = Int(seconds.lowerBound * 16_000)..<Int(seconds.upperBound * 16_000)
      #expect(power(after[part]) < power(samples[part]) / 100, "\(seconds)")
    }
  }

  @Test("a region that holds more than noise is named, with a better one if there is one")
  func suspectRegion() throws {
    _ = try source(.wav, .pcmS16, channels: 1)
    let known = NoiseRegion(40_800..<47_520, sampleRate: 16_000, level: -35.3, score: 0.6)
    let loud = NoiseRegion(40_800..<47_520, sampleRate: 16_000, level: -12, score: 0.6)
    let (start, end) = (NoiseSource.region(start: 0, end: 0.45), NoiseSource.region(start: 0.1, end: 1.5))
    let window = TimeWindow(start: 1, end: 2)
    for (noise, regions, window, isNamed) in [
      (end, nil, nil, true), (end, [known], nil, true), (end, [known], window, true), (end, [loud], window, false),
      (end, nil, window, false), (start, [known], nil, false),
      (.regions([.init(start: 0, end: 0.3), .init(start: 0.3, end: 1)]), [known], nil, true),
    ] as [(NoiseSource, [NoiseRegion]?, TimeWindow?, Bool)] {
      let outcome = try DenoiseRecording(
        source: folder("in"), output: folder("out"), pyramid: nil, parameters: DenoiseParameters(noise: noise),
        knownRegions: regions, window: window
      ).run { _ in }
      #expect(outcome.warnings.map(\.code) == (isNamed ? ["noise_has_speech"] : []), "\(noise)")
      #expect((outcome.noise?.better != nil) == isNamed)
      if regions != nil, isNamed { #expect(outcome.noise?.better == .init(known)) }
    }
  }
}
