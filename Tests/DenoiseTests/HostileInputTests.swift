import Testing

@testable import Denoise

@Suite struct HostileInputTests {
  @Test(
    "any rate and channel count yields as many finite samples as were passed",
    arguments: [
      8000, 11025, 16000, 22050, 44100, 48000, 96000, 192_000,
    ])
  func rates(sampleRate: Int) throws {
    for channels in [1, 2, 3, 8] where sampleRate * channels <= 200_000 || channels == 1 {
      let cleaning = Cleaning(sampleRate: sampleRate, channels: channels)
      let samples = TestSignals.noise(sampleRate / 4 * channels, level: 0.1)
      let output = cleaning.clean(samples, try cleaning.profile(of: samples))
      #expect(output.count == samples.count)
      #expect(output.allSatisfy { $0.isFinite })
      #expect(TestSignals.levelDB(output) < TestSignals.levelDB(samples) - 8)
    }
  }

  @Test("a tiny sample rate works", arguments: [1, 2, 100, 333])
  func lowRates(sampleRate: Int) throws {
    let cleaning = Cleaning(sampleRate: sampleRate)
    let samples = TestSignals.noise(1000, level: 0.1)
    let output = cleaning.clean(samples, try cleaning.profile(of: samples))
    #expect(output.count == samples.count && output.allSatisfy { $0.isFinite })
  }

  @Test("NaN counts as silence", arguments: DenoiseMethod.allCases)
  func notFinite(method: DenoiseMethod) throws {
    let cleaning = Cleaning(sampleRate: 8000, settings: DenoiseSettings(method: method))
    var samples = TestSignals.noise(16_000)
    var zeroed = samples
    for (index, value) in [(7, Float.nan), (500, .infinity), (501, -.infinity), (9000, .signalingNaN)] {
      samples[index] = value
      zeroed[index] = 0
    }
    let profile = try cleaning.profile(of: samples)
    #expect(profile == (try cleaning.profile(of: zeroed)))
    let output = cleaning.clean(samples, profile)
    #expect(output.allSatisfy { $0.isFinite })
    #expect(output == cleaning.clean(zeroed, profile))
  }

  @Test("finite samples of any size give finite output", arguments: DenoiseMethod.allCases)
  func huge(method: DenoiseMethod) throws {
    let values: [Float] = [
      .greatestFiniteMagnitude, -.greatestFiniteMagnitude, 1e30, 1e15, 1, 1e-20, .leastNonzeroMagnitude,
      -.leastNormalMagnitude, 0,
    ]
    for settings in [
      DenoiseSettings(method: method, reductionDB: 60), DenoiseSettings(method: method, output: .residue),
    ] {
      let cleaning = Cleaning(sampleRate: 8000, channels: 2, settings: settings)
      for value in values {
        let samples = TestSignals.noise(8000).enumerated().map { $0 % 37 == 0 ? value : $1 }
        let constant = [Float](repeating: value, count: 8000)
        for (learnt, cleaned) in [(samples, samples), (samples, constant), (constant, samples), (constant, constant)] {
          let profile = try cleaning.profile(of: learnt, countsSilence: true)
          #expect(profile.power.allSatisfy { $0.allSatisfy { $0.isFinite } })
          #expect(cleaning.clean(cleaned, profile).allSatisfy { $0.isFinite })
        }
        var builder = QuantileProfileBuilder(sampleRate: 8000, channels: 2)
        builder.append(samples.span)
        #expect(cleaning.clean(samples, try builder.finish()).allSatisfy { $0.isFinite })
      }
    }
  }

  @Test func oneFrameComesBack() {
    for channels in 1...8 {
      let cleaning = Cleaning(sampleRate: 44100, channels: channels)
      let samples = TestSignals.noise(channels, level: 0.5)
      let output = cleaning.clean(samples, cleaning.flatProfile(meanSquare: 1e-8))
      #expect(output.count == channels)
      #expect(TestSignals.largestDifference(output, samples) < 0.01)
    }
  }
}
