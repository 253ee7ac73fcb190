import Terms
import Testing

@testable import Processing

@Suite struct NoiseLevelMeterTests {
  /// One second at 1 kHz.
  private func second(of value: Float) -> [Float] { Array(repeating: value, count: 1000) }

  @Test("sound whose squares have no finite sum has no level")
  func largestFloats() throws {
    var meter = NoiseLevelMeter(.quantile(0.2), sampleRate: 1000, channels: 1)
    meter.append(second(of: .greatestFiniteMagnitude).span, second(of: 0.1).span)
    #expect(meter.levels.before == nil)
    #expect(abs(try #require(meter.levels.after) + 20) < 0.01)
  }

  @Test("blocks last 50 ms, and those of digital silence don't count")
  func blocks() throws {
    var region = NoiseLevelMeter(.region(.init(start: 0.05, end: 0.1)), sampleRate: 1000, channels: 1)
    let samples = (0..<1000).map { 50..<100 ~= $0 ? Float(0.1) : 0.9 }
    region.append(samples.span, samples.span)
    #expect(abs(try #require(region.levels.before) + 20) < 0.01)
    var quantile = NoiseLevelMeter(.quantile(0.5), sampleRate: 1000, channels: 1)
    for value: Float in [0, 0.1] { quantile.append(second(of: value).span, second(of: value).span) }
    #expect(abs(try #require(quantile.levels.before) + 20) < 0.01)
  }

  @Test("the level in several regions is that of all of them together")
  func severalRegions() throws {
    let regions = [NoiseSource.Region(start: 0, end: 1), NoiseSource.Region(start: 2, end: 3)]
    var meter = NoiseLevelMeter(.regions(regions), sampleRate: 1000, channels: 1)
    for value: Float in [0.1, 0.9, 0.1] { meter.append(second(of: value).span, second(of: value / 10).span) }
    #expect(abs(try #require(meter.levels.before) + 20) < 0.01)
    #expect(abs(try #require(meter.levels.after) + 40) < 0.01)
  }
}
