import Randomness
import Testing

@testable import Waveform

struct PeakKernelTests {
  /// Returns the sums of a channel, computed sample by sample.
  private func plainSums(_ samples: [Int16], channels: Int, channel: Int) -> PointSums {
    var sums = PointSums()
    for index in stride(from: channel, to: samples.count, by: channels) {
      let value = Int64(samples[index])
      sums.low = min(sums.low, samples[index])
      sums.high = max(sums.high, samples[index])
      sums.squares += value * value
      sums.absolutes += value < 0 ? -value : value
    }
    return sums
  }

  @Test(arguments: 1...33)
  func everyChannelCountMatchesThePlainLoop(channels: Int) {
    let points = [
      Recording.random(frames: 256, channels: channels, seed: 7).samples,
      [Int16](repeating: .min, count: 256 * channels),
      [Int16](repeating: .max, count: 256 * channels),
      [Int16](repeating: 0, count: 256 * channels),
    ]
    for samples in points {
      var sums = [PointSums](repeating: PointSums(), count: channels + 1)
      PeakKernel.addPoint(samples.span, channels: channels, to: &sums, at: 1)
      #expect(sums[0] == PointSums())
      for channel in 0..<channels {
        #expect(sums[channel + 1] == plainSums(samples, channels: channels, channel: channel))
      }
    }
  }

  @Test(arguments: 0..<8 as Range<UInt64>)
  func aPointMatchesThePlainLoopOnEveryInstructionSet(seed: UInt64) {
    var generator = SeededGenerator(state: TestSeed.of(seed))
    for range in [Int16.min...Int16.max, -2...2, -1...0, Int16.min...Int16.min, Int16.max...Int16.max] {
      var samples = (0..<512).map { _ in Int16.random(in: range, using: &generator) }
      let extremes = [Int16.min, .max, .min + 1, -1, 0, 1]
      for _ in 0..<seed { samples[Int.random(in: 0..<512, using: &generator)] = extremes[Int(generator.next() % 6)] }
      let mix = referenceLane(Recording(sampleRate: 1, channels: 2, samples: samples), mix: true, channel: 0)
      for loops in PeakLoops.all {
        let sums = loops.stereo(samples.span)
        #expect(sums[0] == plainSums(mix, channels: 1, channel: 0))
        #expect(sums[1] == plainSums(samples, channels: 2, channel: 0))
        #expect(sums[2] == plainSums(samples, channels: 2, channel: 1))
        #expect(loops.mono(mix.span) == sums[0])
      }
    }
  }

  @Test(arguments: [2, 3, 4, 5, 6, 7, 8, 31, 32, 63, 64, 65, 1000])
  func theMixIsTruncatedTowardZero(channels: Int) {
    var generator = SeededGenerator(state: TestSeed.of(channels))
    for frames in [1, 7, 8, 9, 255, 256] {
      for range in [Int16.min...Int16.max, -2...2, Int16.min...Int16.min, Int16.max...Int16.max] {
        let samples = (0..<frames * channels).map { _ in Int16.random(in: range, using: &generator) }
        var mix = InlineArray<256, Int16>(repeating: 99)
        PeakKernel.downmix(samples.span, channels: channels, to: &mix)
        let plain = referenceLane(
          Recording(sampleRate: 1, channels: channels, samples: samples), mix: true, channel: 0)
        let mixed: [Int16] = (0..<frames).map { mix[$0] }
        #expect(mixed == plain)
      }
    }
  }
}
