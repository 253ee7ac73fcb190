import Glibc
import Testing

@testable import Denoise

@Suite struct HissTests {
  private static let rates = [8000, 16_000, 44_100, 48_000, 192_000]

  /// Noise whose power falls by 3 dB per octave for each time that it's averaged with an exponential window.
  private func noise(_ seconds: Double, _ sampleRate: Int, poles: Int = 0) -> [Float] {
    var noise = TestSignals.noise(Int(seconds * Double(sampleRate)))
    let memory = Float(exp(-2 * Double.pi * 100 / Double(sampleRate)))
    for _ in 0..<poles {
      var state: Float = 0
      for index in noise.indices {
        state = noise[index] + memory * (state - noise[index])
        noise[index] = state
      }
    }
    return noise
  }

  private func swelling(_ noise: [Float], dB: Double, _ sampleRate: Int) -> [Float] {
    noise.enumerated().map { index, sample in
      let turn = sin(2 * Double.pi * Double(index) / Double(sampleRate))
      return sample * Float(pow(10, dB * turn / 20))
    }
  }

  private func hiss(_ noise: [Float], _ sampleRate: Int) throws -> Float {
    let profile = try Cleaning(sampleRate: sampleRate).profile(of: noise)
    let frame = AnalysisFrame(sampleRate: sampleRate)
    return profile.leastSteadiness * Hiss.breadth(of: profile.summed, frame: frame, sampleRate: sampleRate)
  }

  @Test("white noise is hiss at any level", arguments: rates)
  func white(sampleRate: Int) throws {
    let noise = noise(1.5, sampleRate)
    #expect(try hiss(noise, sampleRate) == 1)
    #expect(try hiss(noise.map { $0 * 1e-4 }, sampleRate) == 1)
  }

  @Test("noise that falls steeply isn't hiss, and noise in between is in part", arguments: rates)
  func steep(sampleRate: Int) throws {
    #expect(try hiss(noise(1.5, sampleRate, poles: 2), sampleRate) == 0)
    let part = try hiss(noise(1.5, sampleRate, poles: 1), sampleRate)
    #expect(part > 0.2 && part < 0.9, "\(part)")
  }

  @Test("noise that swells isn't hiss", arguments: rates)
  func unsteady(sampleRate: Int) throws {
    let noise = noise(2, sampleRate)
    #expect(try hiss(swelling(noise, dB: 1, sampleRate), sampleRate) == 1)
    #expect(try hiss(swelling(noise, dB: 6, sampleRate), sampleRate) == 0)
  }

  @Test func aShortRegionDoesNotTell() throws {
    let all = try [0.05, 0.2, 0.35, 0.52].map { try hiss(noise($0, 16_000), 16_000) }
    #expect(all[0] == 0)
    #expect(all[1] == 0)
    #expect((0.3...0.9).contains(all[2]), "\(all)")
    #expect(all[3] == 1)
  }

  @Test("a rate too low to tell has no hiss", arguments: [1, 100, 500])
  func lowRate(sampleRate: Int) throws {
    #expect(try hiss(TestSignals.noise(3000), sampleRate) == 0)
  }

  @Test func onlyALearntRegionIsKnownToBeSteady() throws {
    let noise = noise(1.5, 16_000), profile = try Cleaning().profile(of: noise)
    #expect(profile.steadiness == [1])
    var quantile = QuantileProfileBuilder(sampleRate: 16_000, channels: 1)
    quantile.append(noise.span)
    #expect(try quantile.finish().steadiness == [0])
    #expect(try Cleaning().profile(of: noise, countsSilence: true).steadiness == [0])
  }

  @Test("the least steady channel counts, but not a silent one")
  func channels() throws {
    let steady = noise(2, 16_000), unsteady = swelling(steady, dB: 6, 16_000)
    let silence = [Float](repeating: 0, count: steady.count)
    func profile(_ lanes: [[Float]]) throws -> NoiseProfile {
      try Cleaning(channels: lanes.count).profile(of: TestSignals.interleaved(lanes))
    }
    #expect(try profile([steady, unsteady]).steadiness == [1, 0])
    #expect(try profile([steady, unsteady]).leastSteadiness == 0)
    #expect(try NoiseCourse(profile([unsteady, steady])).ofChannels([1]).parts[0].profile.leastSteadiness == 1)
    #expect(try profile([silence, steady]).leastSteadiness == 1)
    #expect(Cleaning().flatProfile(meanSquare: 0).leastSteadiness == 0)
  }

  @Test func hissIsCrossFadedBetweenRegions() {
    let noise = FrameNoise([[1], [1], [1]], hiss: [1, 0, 0.5], at: [0..<100, 300..<400, 500..<600], hop: 10)
    // A frame's middle is at (frame − 1) · hop.
    let expected: [(Int64, Float)] = [(0, 1), (11, 1), (16, 0.75), (21, 0.5), (31, 0), (41, 0), (46, 0.25), (51, 0.5)]
    for (frame, hiss) in expected { #expect(noise.hiss(of: frame) == hiss, "frame \(frame)") }
  }

  @Test("in hiss, less of the noise around speech is left", arguments: [8000, 44_100], [18.0, 25])
  func aroundSpeech(sampleRate: Int, reductionDB: Double) throws {
    let cleaning = Cleaning(sampleRate: sampleRate, settings: DenoiseSettings(reductionDB: reductionDB))
    let noise = noise(4, sampleRate).map { $0 * 0.1 }
    // A voice-like comb below 1 kHz in the middle.
    var sound = [Float](repeating: 0, count: noise.count)
    for harmonic in 1...6 {
      let tone = TestSignals.tone(noise.count, hertz: 150 * Double(harmonic), sampleRate: sampleRate, amplitude: 0.05)
      for index in (2 * sampleRate)..<(3 * sampleRate) { sound[index] += tone[index] }
    }
    let profile = try cleaning.profile(of: Array(noise[..<(3 * sampleRate / 2)]))
    let noisy = TestSignals.sum(noise, sound)
    let after = cleaning.clean(noisy, profile)
    let before = cleaning.clean(noisy, NoiseProfile(power: profile.power, sampleRate: sampleRate))
    let part = (21 * sampleRate / 10)..<(29 * sampleRate / 10)
    func error(_ cleaned: [Float]) -> Double { TestSignals.levelDB(part.map { cleaned[$0] - sound[$0] }) }
    #expect(error(after) < error(before), "\(error(after)) and \(error(before))")
    for harmonic in 1...6 {
      let hertz = 150 * Double(harmonic)
      let kept = TestSignals.toneLevelDB(after[part], hertz: hertz, sampleRate: sampleRate)
      #expect(abs(kept - TestSignals.toneLevelDB(sound[part], hertz: hertz, sampleRate: sampleRate)) < 0.5)
    }
  }
}
