import Glibc
import Testing

@testable import Denoise

@Suite struct StereoImageTests {
  private let rate = 8000

  private func clean(_ lanes: [[Float]], noise: [[Float]]) throws -> [[Float]] {
    let cleaning = Cleaning(sampleRate: rate, channels: lanes.count, settings: DenoiseSettings(reductionDB: 25))
    let profile = try cleaning.profile(of: TestSignals.interleaved(noise))
    let output = cleaning.clean(TestSignals.interleaved(lanes), profile)
    return lanes.indices.map { TestSignals.channel($0, of: lanes.count, in: output) }
  }

  @Test("a panned source keeps its level difference within 0.5 dB", arguments: [0.0, 3, 6, 12, 20])
  func panned(difference: Double) throws {
    let noise = (0..<2).map { TestSignals.noise(5 * rate, level: 0.003, seed: UInt64($0 + 1)) }
    let source = TestSignals.tone(5 * rate, hertz: 700, sampleRate: rate, amplitude: 0.2)
    let right = source.map { $0 * Float(pow(10, -difference / 20)) }
    let output = try clean([TestSignals.sum(noise[0], source), TestSignals.sum(noise[1], right)], noise: noise)
    let levels = output.map { TestSignals.toneLevelDB($0[rate..<(4 * rate)], hertz: 700, sampleRate: rate) }
    #expect(abs(levels[0] - levels[1] - difference) < 0.5)
  }

  @Test func anOutOfPhaseSourceIsKeptLikeAnInPhaseOne() throws {
    let noise = (0..<2).map { TestSignals.noise(5 * rate, level: 0.003, seed: UInt64($0 + 1)) }
    let source = TestSignals.tone(5 * rate, hertz: 700, sampleRate: rate, amplitude: 0.2)
    let opposite = source.map { -$0 }
    let output = try clean([TestSignals.sum(noise[0], source), TestSignals.sum(noise[1], opposite)], noise: noise)
    let before = TestSignals.toneLevelDB(source[rate..<(4 * rate)], hertz: 700, sampleRate: rate)
    for lane in output {
      #expect(abs(TestSignals.toneLevelDB(lane[rate..<(4 * rate)], hertz: 700, sampleRate: rate) - before) < 0.5)
    }
    let mid = TestSignals.sum(output[0], output[1])
    #expect(TestSignals.toneLevelDB(mid[rate..<(4 * rate)], hertz: 700, sampleRate: rate) < before - 40)
  }

  @Test func equalChannelsStayEqual() throws {
    let noise = TestSignals.noise(3 * rate)
    let samples = TestSignals.sum(noise, TestSignals.tone(3 * rate, hertz: 500, sampleRate: rate))
    let output = try clean([samples, samples], noise: [noise, noise])
    #expect(output[0] == output[1])
    let mono = try clean([samples], noise: [noise])
    #expect(TestSignals.largestDifference(output[0], mono[0]) < 1e-5)
  }
}
