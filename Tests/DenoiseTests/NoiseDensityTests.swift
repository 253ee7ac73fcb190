import Glibc
import Testing

@testable import Denoise

/// Profiles that are valid at any sample rate.
@Suite struct NoiseDensityTests {
  private func profile(_ samples: [Float], rate: Int, channels: Int = 1) throws -> NoiseProfile {
    try Cleaning(sampleRate: rate, channels: channels).profile(of: samples)
  }

  private func density(_ samples: [Float], rate: Int, channels: Int = 1) throws -> NoiseDensity {
    try NoiseDensity(profile(samples, rate: rate, channels: channels))
  }

  /// White noise of a density of −90 dB per Hz.
  private func noise(rate: Int, seconds: Int = 4, seed: UInt64 = 1) -> [Float] {
    TestSignals.noise(seconds * rate, level: Float((1e-9 * Double(rate) / 2).squareRoot()), seed: seed)
  }

  private func meanDB(_ values: some Collection<Double>) -> Double {
    10 * log10(values.reduce(0) { $0 + pow(10, $1 / 10) } / Double(values.count))
  }

  @Test("white noise has its mean square, divided by half the sample rate", arguments: [8000, 16000, 44100, 48000])
  func whiteNoise(rate: Int) throws {
    let samples = TestSignals.noise(4 * rate, level: 0.01)
    let density = try density(samples, rate: rate)
    let expected = -40 - 10 * log10(Double(rate) / 2)
    #expect(abs(meanDB(density.powerDB[0]) - expected) < 0.15)
    // The integral is the mean square.
    let width = density.frequencies[1]
    let sum = density.powerDB[0].reduce(0) { $0 + pow(10, $1 / 10) * width }
    #expect(abs(10 * log10(sum) - TestSignals.levelDB(samples)) < 0.15)
    #expect(density.highestHz == Double(rate) / 2)
  }

  @Test("at its own rate, a density gives back its profile")
  func sameRate() throws {
    let profile = try profile(noise(rate: 44100), rate: 44100)
    let again = try NoiseDensity(profile).profile(sampleRate: 44100, channels: 1)
    for (old, new) in zip(profile.power[0], again.power[0]) { #expect(abs(10 * log10(new / old)) < 0.02) }
    #expect(profile.steadiness == [1] && again.steadiness == [1])
  }

  @Test(
    "noise learned at 44.1 kHz is that of the same density at other rates", arguments: [8000, 16000, 48000, 96000])
  func otherRates(rate: Int) throws {
    let used = try density(noise(rate: 44100), rate: 44100).profile(sampleRate: rate, channels: 1)
    let learned = try profile(noise(rate: rate, seed: 2), rate: rate)
    let known = used.power[0].indices.filter { used.frequency(ofBin: $0) < 22000 }
    let level = 10 * log10(known.reduce(0) { $0 + Double(used.power[0][$1]) } / Double(known.count))
    let expected = 10 * log10(known.reduce(0) { $0 + Double(learned.power[0][$1]) } / Double(known.count))
    #expect(abs(level - expected) < 0.2)
    for bin in used.power[0].indices where used.frequency(ofBin: bin) > 22100 { #expect(used.power[0][bin] == 0) }
  }

  @Test("noise is removed as well at 16 and 48 kHz as with a profile of the same rate", arguments: [16000, 48000])
  func removal(rate: Int) throws {
    let sound = noise(rate: rate, seed: 3)
    let cleaning = Cleaning(sampleRate: rate)
    func left(_ profile: NoiseProfile) -> Double {
      TestSignals.levelDB(cleaning.clean(sound, profile)[(rate / 2)..<(3 * rate)])
    }
    let own = left(try profile(noise(rate: rate, seed: 2), rate: rate))
    // At 48 kHz, nothing is removed above 22.05 kHz: −90 dB per Hz of 1.95 kHz.
    let kept = rate == 48000 ? 1e-9 * 1950 : 0
    let other = left(try density(noise(rate: 44100), rate: 44100).profile(sampleRate: rate, channels: 1))
    #expect(abs(other - 10 * log10(pow(10, own / 10) + kept)) < 0.7)
  }

  @Test("a hum learned at 44.1 kHz is removed at other rates", arguments: [16000, 48000])
  func hum(rate: Int) throws {
    func hum(_ rate: Int, seed: UInt64) -> [Float] {
      var samples = TestSignals.noise(4 * rate, level: 1e-4, seed: seed)
      for harmonic in 1...6 {
        let hertz = 50 * Double(harmonic)
        samples = TestSignals.sum(samples, TestSignals.tone(4 * rate, hertz: hertz, sampleRate: rate, amplitude: 0.01))
      }
      return samples
    }
    let sound = hum(rate, seed: 2), part = rate..<(3 * rate)
    let used = try density(hum(44100, seed: 1), rate: 44100).profile(sampleRate: rate, channels: 1)
    let output = Cleaning(sampleRate: rate).clean(sound, used)
    #expect(TestSignals.levelDB(output[part]) - TestSignals.levelDB(sound[part]) < -14)
  }

  @Test("a profile of another number of channels applies with its mean")
  func channels() throws {
    let density = try NoiseDensity(frequencies: [0, 4000], powerDB: [[-60, -60], [-70, -70]])
    let own = density.profile(sampleRate: 8000, channels: 2).power
    #expect(abs(10 * log10(own[0][9] / own[1][9]) - 10) < 0.01)
    let mean = (own[0][9] + own[1][9]) / 2
    for channels in [1, 3] {
      let power = density.profile(sampleRate: 8000, channels: channels).power
      #expect(power.count == channels && power.allSatisfy { abs($0[9] - mean) < 1e-3 * mean })
    }
    let mono = try NoiseDensity(frequencies: [0, 4000], powerDB: [[-60, -60]])
    #expect(mono.profile(sampleRate: 8000, channels: 2).power == [own[0], own[0]])
  }

  @Test("a profile is as steady as its channels, or the least steady of them")
  func steadiness() throws {
    let density = try NoiseDensity(
      frequencies: [0, 4000], powerDB: [[-60, -60], [-70, -70]], steadiness: [1, 0.25])
    #expect(density.profile(sampleRate: 8000, channels: 2).steadiness == [1, 0.25])
    #expect(density.profile(sampleRate: 8000, channels: 3).steadiness == [0.25, 0.25, 0.25])
    let unknown = try NoiseDensity(frequencies: [0, 4000], powerDB: [[-60, -60]])
    #expect(unknown.profile(sampleRate: 8000, channels: 1).steadiness == [0])
    for steadiness in [[], [1], [0, 1, 1], [0, 1.1], [-0.1, 0], [.nan, 0]] as [[Double]] {
      #expect(throws: NoiseDensity.Fault.steadiness) {
        try NoiseDensity(frequencies: [0, 4000], powerDB: [[-60, -60], [-70, -70]], steadiness: steadiness)
      }
    }
  }

  @Test("between frequencies, decibels follow a straight line; above the last one and next to “none” there is no line")
  func interpolation() throws {
    let density = try NoiseDensity(
      frequencies: [100, 200, 1000, 2000], powerDB: [[-80, -60, NoiseDensity.none, -90]])
    let profile = density.profile(sampleRate: 8000, channels: 1)
    let scale = try NoiseDensity(frequencies: [0, 4000], powerDB: [[0, 0]]).profile(sampleRate: 8000, channels: 1)
    func decibels(_ hertz: Double) -> Double {
      let bin = Int((hertz / profile.frequency(ofBin: 1)).rounded())
      return profile.power[0][bin] > 0 ? Double(10 * log10(profile.power[0][bin] / scale.power[0][bin])) : -.infinity
    }
    #expect(abs(decibels(0) + 80) < 0.01)
    #expect(abs(decibels(145.83) + 70.83) < 0.01)
    #expect(decibels(520.83) > -61 && decibels(1000) == -.infinity && decibels(1900) > -91)
    #expect(decibels(2500) == -.infinity)
    // The last frequency belongs to the bin whose half it is in.
    let short = try NoiseDensity(frequencies: [0, 1990], powerDB: [[-60, -60]]).profile(sampleRate: 8000, channels: 1)
    #expect(short.frequency(ofBin: 96) == 2000 && short.power[0][96] > 0 && short.power[0][97] == 0)
  }

  @Test(
    "numbers that can't be a density are refused",
    arguments: [
      ([], [[]], .frequencies), ([5], [[-80]], .frequencies), ([0, 0], [[1, 1]], .frequencies),
      ([10, 5], [[1, 1]], .frequencies), ([-1, 5], [[1, 1]], .frequencies), ([0, 400_000], [[1, 1]], .frequencies),
      ([0, .nan], [[1, 1]], .frequencies), ([0, 1], [], .channels), ([0, 1], [[1, 1], [1]], .power(channel: 1)),
      ([0, 1], [[1, .infinity]], .power(channel: 0)), ([0, 1], [[-301, 0]], .power(channel: 0)),
      ([0, 1], [[201, 0]], .power(channel: 0)), ([0, 1], [[-300, -300]], .silent),
    ] as [([Double], [[Double]], NoiseDensity.Fault)])
  func faults(frequencies: [Double], power: [[Double]], fault: NoiseDensity.Fault) {
    #expect(throws: fault) { try NoiseDensity(frequencies: frequencies, powerDB: power) }
  }

  @Test("a silent profile has no density")
  func silence() {
    let profile = NoiseProfile(power: [[Float](repeating: 0, count: 193)], sampleRate: 8000)
    #expect(throws: NoiseDensity.Fault.silent) { try NoiseDensity(profile) }
  }
}
