import Foundation
import Randomness
import Testing

@testable import Loudness

@Suite struct TruePeakLimiterTests {
  /// Passes samples through a limiter, in pieces.
  private func limited(
    _ samples: [Float], gain: Double, ceiling: Double, rate: Int = 48_000, channels: Int, piece: Int = 5000
  ) -> [Float] {
    var limiter = TruePeakLimiter(gainDB: gain, ceilingDB: ceiling, sampleRate: rate, channels: channels)
    var all: [Float] = []
    func take(_ part: Span<Float>) { for index in part.indices { all.append(part[index]) } }
    var start = 0
    while start < samples.count {
      let end = min(start + piece * channels, samples.count)
      limiter.process(samples.span.extracting(start..<end), take)
      start = end
    }
    limiter.finish(take)
    return all
  }

  private func noise(frames: Int, channels: Int, from random: inout some RandomNumberGenerator) -> [Float] {
    (0..<frames).flatMap { frame in
      let swell = Float(0.1 + 0.9 * pow(sin(Double(frame) / 7000), 8))
      return (0..<channels).map { _ in swell * Float.random(in: -0.7...0.7, using: &random) }
    }
  }

  private func truePeak(_ samples: [Float], _ rate: Int, _ channels: Int) throws -> Double {
    let meter = try #require(LoudnessMeter(sampleRate: rate, channels: channels))
    meter.append(samples.span)
    return try #require(meter.loudness.truePeakDbtp)
  }

  @Test("where no peak passes the ceiling, a gain is only a gain, and every frame comes back", arguments: [1, 2, 7])
  func gainAlone(channels: Int) {
    var random = TestRandom(for: 1)
    for frames in [0, 1, 239, 240, 241, 20_000] {
      let samples = noise(frames: frames, channels: channels, from: &random)
      let factor = Float(Decibels.factor(-12))
      #expect(limited(samples, gain: -12, ceiling: -1, channels: channels) == samples.map { $0 * factor }, "\(frames)")
    }
  }

  @Test(
    "the true peak stays at the ceiling, whatever the gain",
    arguments: [(48_000, 2), (8000, 1), (96_000, 2), (192_000, 1), (44_100, 6)])
  func ceiling(rate: Int, channels: Int) throws {
    var random = TestRandom(for: 1)
    let samples = noise(frames: 60_000, channels: channels, from: &random)
    for gain in [6.0, 20, 40] {
      let found = limited(samples, gain: gain, ceiling: -1.1, rate: rate, channels: channels)
      #expect(found.count == samples.count)
      let peak = try truePeak(found, rate, channels)
      #expect(peak < -1, "\(gain) dB: \(peak)")
    }
  }

  @Test("points before the first sample and after the last are held as well", arguments: [8000, 48_000])
  func ends(rate: Int) throws {
    // Between silence and these, interpolation finds more than either has.
    let start: [Float] = [-0.067, 0.059, 0.005, 0.015, 0.025, 0.042]
    let silence = [Float](repeating: 0, count: 2000)
    for samples in [start + silence, silence + start.reversed(), start] {
      let found = limited(samples, gain: 40, ceiling: -1.1, rate: rate, channels: 1)
      #expect(found.count == samples.count)
      #expect(try truePeak(silence + found + silence, rate, 1) < -1)
      for piece in 1...7 {
        #expect(limited(samples, gain: 40, ceiling: -1.1, rate: rate, channels: 1, piece: piece) == found, "\(piece)")
      }
    }
  }

  @Test("the result doesn't depend on how the sound is divided, and limiting leaves what comes much later alone")
  func pieces() {
    var random = TestRandom(for: 1)
    var samples = [Float](repeating: 0, count: 96_000)
    for index in 10_000..<10_020 { samples[index] = 0.9 }
    for index in 60_000..<96_000 { samples[index] = Float.random(in: -0.1...0.1, using: &random) }
    let whole = limited(samples, gain: 6, ceiling: -1, channels: 1, piece: 96_000)
    for piece in [1000, 4096, 7777] {
      #expect(limited(samples, gain: 6, ceiling: -1, channels: 1, piece: piece) == whole, "\(piece)")
    }
    let factor = Float(Decibels.factor(6))
    #expect(whole[80_000...].elementsEqual(samples[80_000...].map { $0 * factor }))
    #expect(whole[10_000..<10_020].allSatisfy { $0 <= 0.8913 })
  }
}
