import Glibc
import Testing

@testable import Denoise

@Suite struct PauseGateTests {
  private let rate = 16_000

  /// Noise whose level swells by ±6 dB twice a second.
  private func swelling(_ seconds: Int, seed: UInt64) -> [Float] {
    TestSignals.noise(seconds * rate, seed: seed).enumerated().map { index, sample in
      sample * Float(pow(10, 0.3 * sin(4 * .pi * Double(index) / Double(rate))))
    }
  }

  private func levels(_ samples: [Float], _ range: Range<Int>) -> [Double] {
    stride(from: range.lowerBound * rate, to: range.upperBound * rate, by: rate / 50).map { start in
      TestSignals.levelDB(samples[start..<(start + rate / 50)])
    }
  }

  @Test("what is left of noise that swells swells no more than it did", arguments: DenoiseMethod.allCases)
  func swell(method: DenoiseMethod) throws {
    let cleaning = Cleaning(settings: DenoiseSettings(method: method, reductionDB: 25))
    let noise = swelling(4, seed: 2), output = cleaning.clean(noise, try cleaning.profile(of: swelling(2, seed: 1)))
    let before = levels(noise, 1..<3), after = levels(output, 1..<3)
    for (level, left) in zip(before, after) { #expect(abs(left - level + 25) < 0.1) }
  }

  @Test("a word in it keeps its level, and the residue is the rest")
  func word() throws {
    var cleaning = Cleaning(settings: DenoiseSettings(reductionDB: 25))
    var samples = swelling(6, seed: 2)
    let word = (0..<(rate / 2)).map { index -> Float in
      let time = Double(index) / Double(rate)
      return Float((1...20).reduce(0.0) { $0 + 0.02 * sin(2 * .pi * 140 * Double($1) * time) })
    }
    for index in word.indices { samples[3 * rate + index] += word[index] }
    let profile = try cleaning.profile(of: swelling(2, seed: 1)), output = cleaning.clean(samples, profile)
    let part = (3 * rate)..<(3 * rate + word.count)
    #expect(abs(TestSignals.levelDB(output[part]) - TestSignals.levelDB(word)) < 1)
    cleaning.settings.output = .residue
    let sum = TestSignals.sum(output, cleaning.clean(samples, profile))
    #expect(TestSignals.largestDifference(sum, samples) < 1e-5)
  }

  @Test("a sound in a part of the region doesn't count as noise")
  func sound() {
    let noise = [[Float]](repeating: [0.1, 0], count: 60)
    #expect(PauseGate.liveliness(noise + [[Float]](repeating: [0, 5], count: 30)) < 0.4)
    #expect(abs(PauseGate.liveliness(noise) - 0.1) < 1e-6)
    #expect(PauseGate.liveliness([]) == 0)
  }
}
