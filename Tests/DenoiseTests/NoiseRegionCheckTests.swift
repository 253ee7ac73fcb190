import Glibc
import Testing

@testable import Denoise

@Suite struct NoiseRegionCheckTests {
  private let rate = 16_000

  private func isSuspect(_ samples: [Float], pieces: Int = 4000) -> Bool {
    var check = NoiseRegionCheck(sampleRate: rate, channels: 1)
    for start in stride(from: 0, to: samples.count, by: pieces) {
      check.append(samples.span.extracting(start..<min(start + pieces, samples.count)))
    }
    return check.hasMoreThanNoise
  }

  /// Vowels of 120 Hz in syllables of a quarter of a second.
  private func speech(_ count: Int) -> [Float] {
    (0..<count).map { index in
      let time = Double(index) / Double(rate), syllable = (4 * time).truncatingRemainder(dividingBy: 1)
      let tone = (1...25).reduce(0.0) { $0 + sin(2 * .pi * 120 * Double($1) * time) / Double($1) }
      return syllable < 0.7 ? Float(0.1 * tone * sin(.pi * syllable / 0.7)) : 0
    }
  }

  @Test("noise is only noise", arguments: [0.5, 1.5, 80])
  func noise(seconds: Double) {
    let noise = TestSignals.noise(Int(seconds * Double(rate)), level: 0.01)
    #expect(!isSuspect(noise))
    #expect(!isSuspect(noise, pieces: 7777))
    // It swells by 8 dB, like wind.
    #expect(!isSuspect(noise.indices.map { noise[$0] * Float(pow(10, 0.2 * sin(Double($0) / 4000))) }))
  }

  @Test("noise in one half and speech in the other is more than noise")
  func half() {
    let noise = TestSignals.noise(24_000, level: 0.01), speech = speech(12_000)
    #expect(isSuspect(noise[..<12_000] + TestSignals.sum(Array(noise[12_000...]), speech)))
    #expect(isSuspect(TestSignals.sum(Array(noise[..<12_000]), speech) + noise[12_000...]))
  }

  @Test("a held note is more than noise")
  func note() {
    let tones = (1...20).map {
      TestSignals.tone(24_000, hertz: 330 * Double($0), sampleRate: rate, amplitude: 0.1 / Double($0))
    }
    #expect(isSuspect(tones.reduce(TestSignals.noise(24_000, level: 0.003), TestSignals.sum)))
  }

  @Test("too little sound isn't doubted", arguments: [0, 100, 6000])
  func short(count: Int) {
    #expect(!isSuspect(speech(count)))
    #expect(!isSuspect([Float](repeating: 0, count: count)))
  }
}
