import Glibc
import Testing

@testable import Denoise

@Suite struct DenoiserTests {
  private let rate = 8000

  @Test("a reduction of 0 dB leaves the sound unchanged", arguments: DenoiseMethod.allCases)
  func identity(method: DenoiseMethod) {
    let samples = TestSignals.noise(50_001, level: 0.2)
    let cleaning = Cleaning(sampleRate: rate, settings: DenoiseSettings(method: method, reductionDB: 0))
    let output = cleaning.clean(samples, cleaning.flatProfile(meanSquare: 0.04))
    #expect(output.count == samples.count)
    #expect(TestSignals.largestDifference(output, samples) < 1e-6)
  }

  @Test func anEmptyProfileRemovesNothing() {
    let samples = TestSignals.noise(20_000, level: 0.2)
    let cleaning = Cleaning(sampleRate: rate, settings: DenoiseSettings(reductionDB: 60))
    #expect(
      TestSignals.largestDifference(cleaning.clean(samples, cleaning.flatProfile(meanSquare: 0)), samples) < 1e-6)
  }

  @Test(
    "noise is reduced by nearly the requested amount, and a tone in it changes by at most 0.5 dB",
    arguments: [
      (DenoiseMethod.mmseLSA, 12.0, 11.5), (.mmseLSA, 18, 17), (.mmseLSA, 25, 19.5), (.wiener, 18, 17),
      (.wiener, 25, 22), (.spectralSubtraction, 18, 13),
    ])
  func toneInNoise(method: DenoiseMethod, reduction: Double, removed: Double) throws {
    let cleaning = Cleaning(sampleRate: rate, settings: DenoiseSettings(method: method, reductionDB: reduction))
    let noise = TestSignals.noise(8 * rate)
    var samples = noise
    let tone = TestSignals.tone(4 * rate, hertz: 1000, sampleRate: rate)
    for index in tone.indices { samples[4 * rate + index] += tone[index] }
    let output = cleaning.clean(samples, try cleaning.profile(of: Array(noise[..<(2 * rate)])))
    let quiet = (2 * rate)..<(3 * rate), loud = (5 * rate)..<(7 * rate)
    #expect(TestSignals.levelDB(noise[quiet]) - TestSignals.levelDB(output[quiet]) > removed)
    let before = TestSignals.toneLevelDB(samples[loud], hertz: 1000, sampleRate: rate)
    let after = TestSignals.toneLevelDB(output[loud], hertz: 1000, sampleRate: rate)
    #expect(abs(after - before) < 0.5)
  }

  @Test func higherSensitivityRemovesMore() {
    let noise = TestSignals.noise(3 * rate)
    let levels = [0.5, 1, 2].map { sensitivity in
      let settings = DenoiseSettings(reductionDB: 40, sensitivity: sensitivity)
      let cleaning = Cleaning(sampleRate: rate, settings: settings)
      return TestSignals.levelDB(cleaning.clean(noise, cleaning.flatProfile(meanSquare: 1e-4)))
    }
    #expect(levels[0] > levels[1] + 1)
    #expect(levels[1] > levels[2] + 1)
  }

  @Test func settingsAreClampedToTheirRanges() throws {
    let noise = TestSignals.noise(rate)
    let samples = TestSignals.sum(noise, TestSignals.tone(rate, hertz: 440, sampleRate: rate))
    func clean(_ reduction: Double, _ sensitivity: Double) throws -> [Float] {
      let settings = DenoiseSettings(reductionDB: reduction, sensitivity: sensitivity)
      let cleaning = Cleaning(sampleRate: rate, settings: settings)
      return cleaning.clean(samples, try cleaning.profile(of: noise))
    }
    #expect(try clean(80, 1) == clean(60, 1) && clean(-3, 1) == clean(0, 1))
    #expect(try clean(18, 5) == clean(18, 2) && clean(18, 0.1) == clean(18, 0.5))
  }

  @Test("spectral subtraction uses the noise as it was learned, the other methods 85 % of it")
  func level() {
    let frame = AnalysisFrame(sampleRate: rate)
    let noise = NoiseCourse(NoiseProfile(power: [[Float](repeating: 1, count: frame.binCount)], sampleRate: rate))
    for method in DenoiseMethod.allCases {
      let levels = Denoiser.level(of: noise, DenoiseSettings(method: method), frame, sampleRate: rate).levels
      #expect(levels[0][9] == (method == .spectralSubtraction ? 1 : 0.85), "\(method)")
    }
  }

  @Test("the denoised sound and the residue add up to the original", arguments: DenoiseMethod.allCases)
  func residue(method: DenoiseMethod) throws {
    let noise = TestSignals.noise(3 * rate)
    let samples = TestSignals.sum(noise, TestSignals.tone(3 * rate, hertz: 440, sampleRate: rate))
    var cleaning = Cleaning(sampleRate: rate, settings: DenoiseSettings(method: method))
    let profile = try cleaning.profile(of: noise)
    let denoised = cleaning.clean(samples, profile)
    cleaning.settings.output = .residue
    let residue = cleaning.clean(samples, profile)
    #expect(TestSignals.largestDifference(TestSignals.sum(denoised, residue), samples) < 1e-6)
  }

  @Test("an impulse stays where it is", arguments: [0, 1, 95, 96, 5000, 9999])
  func impulse(position: Int) {
    var samples = [Float](repeating: 0, count: 10_000)
    samples[position] = 0.9
    let cleaning = Cleaning(sampleRate: rate, settings: DenoiseSettings(reductionDB: 25))
    let output = cleaning.clean(samples, cleaning.flatProfile(meanSquare: 1e-6))
    let peak = output.indices.max { abs(output[$0]) < abs(output[$1]) }
    #expect(peak == position)
    #expect(output[position] > 0.8)
  }

  @Test("silence stays exactly silent", arguments: DenoiseMethod.allCases)
  func silence(method: DenoiseMethod) {
    let cleaning = Cleaning(sampleRate: rate, settings: DenoiseSettings(method: method))
    for level in [Float(0), 1e-4] {
      let output = cleaning.clean(
        [Float](repeating: 0, count: 30_000), cleaning.flatProfile(meanSquare: level))
      #expect(output == [Float](repeating: 0, count: 30_000))
    }
  }

  @Test func digitalSilenceInsideARecordingStaysSilent() {
    var samples = TestSignals.noise(30_000, level: 0.05)
    for index in 10_000..<20_000 { samples[index] = 0 }
    let cleaning = Cleaning(sampleRate: rate)
    let output = cleaning.clean(samples, cleaning.flatProfile(meanSquare: 0.0025))
    #expect(output[10_400..<19_600].allSatisfy { $0 == 0 })
  }
}
