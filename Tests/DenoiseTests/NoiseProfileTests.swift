import Glibc
import Testing

@testable import Denoise

@Suite struct NoiseProfileTests {
  private let cleaning = Cleaning(sampleRate: 8000)
  private var frame: AnalysisFrame { AnalysisFrame(sampleRate: 8000) }

  @Test func whiteNoiseHasItsOwnPowerInEveryBin() throws {
    let profile = try cleaning.profile(of: TestSignals.noise(80_000, level: 0.1))
    let expected = Double(0.1 * 0.1) * Double(frame.length) / 2
    let inner = profile.power[0].dropFirst(2).dropLast(2)
    #expect(abs(10 * log10(inner.reduce(0.0) { $0 + Double($1) } / Double(inner.count) / expected)) < 0.1)
    #expect(inner.allSatisfy { abs(10 * log10(Double($0) / expected)) < 1.5 })
  }

  @Test func aFrameNotEntirelyInsideDoesNotCount() throws {
    let length = frame.length
    let samples = TestSignals.noise(2 * length + frame.hop - 1)
    let whole = try cleaning.profile(of: Array(samples[..<(2 * length)]))
    #expect(try cleaning.profile(of: samples) == whole)
  }

  @Test func pieceSizesDoNotMatter() throws {
    let samples = TestSignals.noise(20_000)
    let whole = try cleaning.profile(of: samples)
    var builder = NoiseProfileBuilder(sampleRate: 8000, channels: 1)
    var quantile = QuantileProfileBuilder(sampleRate: 8000, channels: 1)
    var wholeQuantile = QuantileProfileBuilder(sampleRate: 8000, channels: 1)
    wholeQuantile.append(samples.span)
    var position = 0
    for size in [1, 95, 96, 97, 4000, 2, 1000, 20_000] {
      let end = min(samples.count, position + size)
      builder.append(samples.span.extracting(position..<end))
      quantile.append(samples.span.extracting(position..<end))
      position = end
    }
    #expect(try builder.finish() == whole)
    #expect(try quantile.finish() == wholeQuantile.finish())
  }

  @Test("a region shorter than an analysis frame, or a recording shorter than two, is refused", arguments: [0, 1, 383])
  func tooShort(count: Int) {
    #expect(throws: DenoiseError.regionTooShort(frames: Int64(count), needed: Int64(frame.length))) {
      try cleaning.profile(of: TestSignals.noise(count))
    }
    #expect(throws: DenoiseError.regionTooShort(frames: Int64(count), needed: Int64(2 * frame.length))) {
      var builder = QuantileProfileBuilder(sampleRate: 8000, channels: 1)
      builder.append(TestSignals.noise(count).span)
      return try builder.finish()
    }
  }

  @Test func anAnalysisFrameIsEnough() throws {
    let profile = try cleaning.profile(of: TestSignals.noise(frame.length))
    #expect(profile.power[0].allSatisfy { $0 > 0 && $0.isFinite })
    #expect(profile.frequency(ofBin: frame.length / 2) == 4000)
  }

  @Test("a short region is enough to remove noise", arguments: [(0.05, 10.5), (0.1, 13), (0.2, 14.5), (0.3, 15.5)])
  func short(seconds: Double, removed: Double) throws {
    // The mean of five places, because each one is subject to chance.
    let noise = TestSignals.noise(40_000)
    let levels = try (0..<5).map { place in
      let start = 4000 + 6000 * place
      let profile = try cleaning.profile(of: Array(noise[start..<(start + Int(seconds * 8000))]))
      return TestSignals.levelDB(noise) - TestSignals.levelDB(cleaning.clean(noise, profile))
    }
    #expect(levels.reduce(0, +) / 5 > removed, "\(levels)")
  }

  @Test("a short region keeps its tones", arguments: [0.05, 0.1, 0.3])
  func shortWithTone(seconds: Double) throws {
    let count = Int(seconds * 8000)
    let tone = TestSignals.tone(count, hertz: 1000, sampleRate: 8000, amplitude: 0.1)
    let profile = try cleaning.profile(of: TestSignals.sum(TestSignals.noise(count), tone))
    let bin = frame.length / 8
    // A tone under √Hann, whose sum is 2 N / π.
    let expected = pow(0.05 * 2 * Double(frame.length) / Double.pi, 2)
    #expect(abs(10 * log10(Double(profile.power[0][bin]) / expected)) < 1)
    #expect(profile.power[0][bin + 8] < profile.power[0][bin] / 300)
  }

  @Test func fromHalfASecondOnNothingIsSmoothed() {
    let power = TestSignals.noise(385).map { $0 * $0 }
    #expect(NoiseProfile.shrunk(power, frames: 39) == power)
    #expect(NoiseProfile.shrunk(power, frames: 20) != power)
  }

  @Test("digital silence in a region doesn't count", arguments: [0, 0.1] as [Float])
  func silence(level: Float) throws {
    let noise = TestSignals.noise(16_000, level: 0.1)
    var muted = noise
    for index in 4000..<12_000 { muted[index] = level }
    let profile = try cleaning.profile(of: muted)
    // What is left of it is two stretches, and up to a hop of silence beside them.
    let expected = Double(0.1 * 0.1) * Double(frame.length) / 2
    let inner = profile.power[0].dropFirst(2).dropLast(2).reduce(0.0) { $0 + Double($1) }
    #expect(abs(10 * log10(inner / Double(frame.binCount - 4) / expected)) < 0.3)
  }

  @Test("a region with nothing but digital silence is refused", arguments: [0, 0.25] as [Float])
  func silentRegion(level: Float) throws {
    var samples = [Float](repeating: level, count: 8000)
    #expect(throws: DenoiseError.silentRegion) { try cleaning.profile(of: samples) }
    // Each sound is shorter than an analysis frame.
    for start in stride(from: 500, to: 8000, by: 1000) { samples[start] = 0.1 }
    #expect(throws: DenoiseError.silentRegion) { try cleaning.profile(of: samples) }
    var measured = NoiseProfileBuilder(sampleRate: 8000, channels: 1, countsSilence: true)
    measured.append(samples.span)
    #expect(try measured.finish().power[0][10] > 0)
  }

  @Test func eachChannelHasItsOwnProfile() throws {
    let both = TestSignals.interleaved([
      TestSignals.noise(20_000, seed: 3), TestSignals.noise(20_000, level: 0, seed: 4),
    ])
    let profile = try Cleaning(sampleRate: 8000, channels: 2).profile(of: both)
    let alone = try cleaning.profile(of: TestSignals.noise(20_000, seed: 3)).power[0]
    #expect(zip(profile.power[0], alone).allSatisfy { abs($0 / $1 - 1) < 1e-5 })
    #expect(profile.power[1].allSatisfy { $0 == 0 })
  }
}

@Suite struct QuantileProfileTests {
  private func profile(_ samples: [Float], quantile: Double = 0.2) throws -> [Float] {
    var builder = QuantileProfileBuilder(sampleRate: 8000, channels: 1, quantile: quantile)
    builder.append(samples.span)
    return try builder.finish().power[0]
  }

  private func errorDB(_ power: [Float], level: Double) -> Double {
    let expected = level * level * Double(AnalysisFrame(sampleRate: 8000).length) / 2
    let inner = power.dropFirst(2).dropLast(2)
    return inner.reduce(0.0) { $0 + 10 * log10(Double($1) / expected) } / Double(inner.count)
  }

  @Test("the quantile of white noise gives its mean power", arguments: [0.1, 0.2, 0.5])
  func whiteNoise(quantile: Double) throws {
    let power = try profile(TestSignals.noise(240_000, level: 0.05), quantile: quantile)
    #expect(abs(errorDB(power, level: 0.05)) < 0.25)
  }

  @Test func soundForHalfTheTimeRaisesItOnlySlightly() throws {
    var samples = TestSignals.noise(240_000, level: 0.01)
    let speech = TestSignals.noise(240_000, level: 0.3, seed: 9)
    for index in samples.indices where index / 8000 % 2 == 0 { samples[index] += speech[index] }
    #expect((-0.5...5).contains(errorDB(try profile(samples), level: 0.01)))
  }

  @Test func digitalSilenceIsLeftOut() throws {
    let noise = TestSignals.noise(120_000, level: 0.01)
    let muted = noise + [Float](repeating: 0, count: 240_000)
    #expect(abs(errorDB(try profile(muted), level: 0.01)) < 0.3)
  }

  @Test func noAnalysisFrameSpansTwoStretches() throws {
    let noise = TestSignals.noise(80_000, level: 0.01)
    let length = AnalysisFrame(sampleRate: 8000).length
    var whole = QuantileProfileBuilder(sampleRate: 8000, channels: 1)
    whole.append(noise.span)
    var parts = QuantileProfileBuilder(sampleRate: 8000, channels: 1)
    // Loud, but shorter than a frame.
    let loud = TestSignals.noise(length - 1, level: 0.9, seed: 5)
    for _ in 0..<3 {
      parts.append(loud.span)
      parts.beginStretch()
    }
    parts.append(noise.span)
    #expect(try parts.finish() == whole.finish())
  }

  @Test func silenceThroughoutMakesAnEmptyProfile() throws {
    #expect(try profile([Float](repeating: 0, count: 10_000)).allSatisfy { $0 == 0 })
  }
}
