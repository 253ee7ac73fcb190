import Glibc
import Testing

@testable import Denoise

@Suite struct PowerSpectrumTests {
  private let cleaning = Cleaning(sampleRate: 16_000, channels: 2)

  private func profile(_ left: [Float], _ right: [Float]) throws -> NoiseProfile {
    try cleaning.profile(of: TestSignals.interleaved([left, right]), countsSilence: true)
  }

  private func sum(_ spectrum: PowerSpectrum) -> Double {
    10 * log10(spectrum.powerDB.reduce(0) { $0 + pow(10, $1 / 10) })
  }

  @Test func thePowersOfAllBinsAddUpToTheMeanSquareOfTheChannels() throws {
    let noise = TestSignals.noise(64_000, level: 0.01)
    let spectrum = PowerSpectrum(try profile(noise, TestSignals.noise(64_000, level: 0.02, seed: 5)))
    #expect(spectrum.frequencies.count == AnalysisFrame(sampleRate: 16_000).binCount)
    #expect(spectrum.frequencies.first == 0 && spectrum.frequencies.last == 8000)
    #expect(abs(sum(spectrum) - 10 * log10((0.01 * 0.01 + 0.02 * 0.02) / 2)) < 0.1)
    let tone = TestSignals.tone(64_000, hertz: 1000, sampleRate: 16_000, amplitude: 0.1)
    let toned = PowerSpectrum(try profile(tone, tone))
    #expect(abs(sum(toned) - 10 * log10(0.1 * 0.1 / 2)) < 0.1)
    let loudest = toned.powerDB.indices.max { toned.powerDB[$0] < toned.powerDB[$1] }
    #expect(toned.frequencies[loudest ?? 0] == 1000)
  }

  @Test("a compact spectrum keeps the level and has few points", arguments: [1, 10, 96, 1000])
  func compact(limit: Int) throws {
    let noise = TestSignals.noise(64_000, level: 0.01)
    let profile = try profile(noise, noise)
    let spectrum = PowerSpectrum(profile, upTo: limit)
    #expect(spectrum.frequencies.count == min(limit, profile.power[0].count - 1))
    #expect(spectrum.frequencies == spectrum.frequencies.sorted() && spectrum.frequencies[0] > 0)
    let expected = 10 * log10(0.01 * 0.01 / Double(profile.power[0].count - 1))
    let mean = spectrum.powerDB.reduce(0, +) / Double(spectrum.powerDB.count)
    #expect(abs(mean - expected) < 0.5)
  }

  @Test func theFirstAndLastBinCountHalf() {
    let bins = AnalysisFrame(sampleRate: 8000).binCount
    let flat = PowerSpectrum(NoiseProfile(power: [[Float](repeating: 1, count: bins)], sampleRate: 8000)).powerDB
    #expect(flat.min() == flat[0] && flat[0] == flat[bins - 1] && abs(flat[1] - flat[0] - 3.01) < 0.011)
  }

  @Test func silenceIsMinus200() throws {
    let silence = [Float](repeating: 0, count: 16_000)
    #expect(PowerSpectrum(try profile(silence, silence)).powerDB.allSatisfy { $0 == -200 })
  }
}
