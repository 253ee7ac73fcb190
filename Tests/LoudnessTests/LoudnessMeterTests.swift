import Foundation
import Terms
import Testing

@testable import Loudness

@Suite struct LoudnessMeterTests {
  /// A sine of `level` dBFS on the given channels, silence on the others.
  private func sine(
    _ level: Double, on audible: Set<Int>, of channels: Int, rate: Int = 48_000, seconds: Double = 5,
    hertz: Double = 997
  ) -> [Float] {
    (0..<Int(seconds * Double(rate))).flatMap { frame in
      let value = Float(pow(10, level / 20) * sin(2 * .pi * hertz * Double(frame) / Double(rate)))
      return (0..<channels).map { audible.contains($0) ? value : 0 }
    }
  }

  private func measure(_ samples: [Float], rate: Int = 48_000, channels: Int) throws -> MeasuredLoudness {
    let meter = try #require(LoudnessMeter(sampleRate: rate, channels: channels))
    var start = 0
    while start < samples.count {
      let end = min(start + 977 * channels, samples.count)
      meter.append(samples.span.extracting(start..<end))
      start = end
    }
    return meter.loudness
  }

  @Test("a tone of −23 dBFS on both channels has −23 LUFS, no range, and its peak (EBU Tech 3341, case 1)")
  func reference() throws {
    let found = try measure(sine(-23, on: [0, 1], of: 2), channels: 2)
    #expect(abs(try #require(found.integratedLufs) + 23) < 0.1)
    #expect(abs(try #require(found.truePeakDbtp) + 23) < 0.2)
    #expect(try #require(found.rangeLu) < 0.1)
  }

  @Test(
    "channels are weighted by their position",
    arguments: [
      (1, 0, 0), (3, 2, 0), (4, 2, 1.5), (5, 2, 0), (5, 4, 1.5), (6, 2, 0), (6, 4, 1.5), (6, 5, 1.5), (7, 4, 0),
      (7, 5, 1.5), (8, 4, 0), (8, 6, 1.5), (9, 8, 0), (32, 31, 0),
    ] as [(Int, Int, Double)])
  func weights(channels: Int, channel: Int, gain: Double) throws {
    let one = try #require(try measure(sine(-20, on: [0], of: channels), channels: channels).integratedLufs)
    let found = try #require(try measure(sine(-20, on: [channel], of: channels), channels: channels).integratedLufs)
    #expect(abs(found - one - gain) < 0.02, "\(found) \(one)")
  }

  @Test("low frequencies don't count", arguments: [6, 7, 8])
  func lowFrequencies(channels: Int) throws {
    let found = try measure(sine(-20, on: [3], of: channels), channels: channels)
    #expect(found.integratedLufs == nil && found.truePeakDbtp != nil)
  }

  @Test("what doesn't exist is nil: silence, sound below −70 LUFS, sound that is too short, a rate that is too low")
  func missing() throws {
    let none = MeasuredLoudness(integratedLufs: nil, rangeLu: nil, truePeakDbtp: nil)
    #expect(try measure([Float](repeating: 0, count: 480_000), channels: 2) == none)
    let faint = try measure(sine(-80, on: [0, 1], of: 2), channels: 2)
    #expect(faint.integratedLufs == nil && faint.rangeLu == nil && faint.truePeakDbtp != nil)
    #expect(try measure(sine(-20, on: [0], of: 1, seconds: 0.39), channels: 1).integratedLufs == nil)
    let brief = try measure(sine(-20, on: [0], of: 1, seconds: 2.9), channels: 1)
    #expect(brief.integratedLufs != nil && brief.rangeLu == nil)
    let low = try measure(sine(-20, on: [0], of: 1, rate: 3999, hertz: 300), rate: 3999, channels: 1)
    #expect(low.integratedLufs == nil && low.truePeakDbtp != nil)
    #expect(
      try measure(sine(-20, on: [0], of: 1, rate: 4000, hertz: 300), rate: 4000, channels: 1).integratedLufs != nil)
    #expect(LoudnessMeter(sampleRate: 15, channels: 1) == nil && LoudnessMeter(sampleRate: 48_000, channels: 65) == nil)
  }

  @Test("a true peak between two samples is found")
  func between() throws {
    // A quarter of the rate, sampled 45° off its peaks.
    let samples = (0..<48_000).map { Float(sin(.pi / 2 * Double($0) + .pi / 4)) }
    let found = try #require(try measure(samples, channels: 1).truePeakDbtp)
    #expect(abs(found) < 0.2, "\(found)")
  }
}
