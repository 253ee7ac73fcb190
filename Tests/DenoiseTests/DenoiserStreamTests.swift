import Testing

@testable import Denoise

@Suite struct DenoiserStreamTests {
  private let rate = 8000

  /// Returns noise with tones that come and go, so that the gains change.
  private func sound(seconds: Int, channels: Int = 1) -> [Float] {
    let lanes = (0..<channels).map { channel in
      var samples = TestSignals.noise(seconds * rate, seed: UInt64(channel + 1))
      let tone = TestSignals.tone(seconds * rate, hertz: 300 + 200 * Double(channel), sampleRate: rate)
      for index in samples.indices where index / 3000 % 3 == 1 { samples[index] += tone[index] }
      return samples
    }
    return TestSignals.interleaved(lanes)
  }

  @Test("the sizes of the pieces don't change a single bit", arguments: DenoiseMethod.allCases)
  func pieces(method: DenoiseMethod) {
    let samples = sound(seconds: 9, channels: 2)
    let cleaning = Cleaning(sampleRate: rate, channels: 2, settings: DenoiseSettings(method: method))
    let profile = cleaning.flatProfile(meanSquare: 1e-4)
    let whole = cleaning.clean(samples, profile, pieces: [samples.count])
    #expect(whole.count == samples.count)
    for pieces in [[1], [96], [97, 1, 5000], [24_576, 3]] {
      #expect(cleaning.clean(samples, profile, pieces: pieces) == whole)
    }
  }

  @Test("a second thread doesn't change a single bit", arguments: DenoiseMethod.allCases)
  func threads(method: DenoiseMethod) {
    let samples = sound(seconds: 13, channels: 2)
    for output in DenoiseSettings.Output.allCases {
      var cleaning = Cleaning(
        sampleRate: rate, channels: 2, settings: DenoiseSettings(method: method, output: output))
      let profile = cleaning.flatProfile(meanSquare: 1e-4)
      for count in [samples.count, 60_000, 2, 0] {
        cleaning.usesSecondThread = false
        let alone = cleaning.clean(Array(samples[..<count]), profile)
        cleaning.usesSecondThread = true
        #expect(cleaning.clean(Array(samples[..<count]), profile, pieces: [1000, 7]) == alone)
      }
    }
  }

  @Test(
    "a window has the same bits as in the whole, and is all that comes out",
    arguments: [
      (40_000, 44_000), (0, 1), (59_999, 60_000), (131_999, 132_000), (70_001, 95_123), (100_000, 132_000),
      // At the boundary between segments, of 24,576 frames, and one frame or three hops, of 96, beside it.
      (49_151, 49_153), (49_152, 49_153), (49_151, 49_152), (48_863, 48_864), (48_864, 48_865),
    ])
  func window(start: Int, end: Int) {
    let samples = Array(sound(seconds: 17)[..<132_000])
    var cleaning = Cleaning(sampleRate: rate, settings: DenoiseSettings(reductionDB: 25))
    let profile = cleaning.flatProfile(meanSquare: 1e-4)
    let whole = cleaning.clean(samples, profile)
    for usesSecondThread in [false, true] {
      cleaning.usesSecondThread = usesSecondThread
      #expect(cleaning.clean(start..<end, of: samples, NoiseCourse(profile)) == Array(whole[start..<end]))
    }
  }

  @Test("a window that begins before the sound, or ends after it, is cut to it; one beyond it is empty")
  func windowsAreCut() {
    let samples = sound(seconds: 17)
    let cleaning = Cleaning(sampleRate: rate)
    let noise = NoiseCourse(cleaning.flatProfile(meanSquare: 1e-4))
    let whole = cleaning.clean(samples, noise, from: 5000)
    let end = 5000 + samples.count
    for (wanted, part) in [
      (0..<6000, 0..<1000), (90_000..<10_000_000, 85_000..<samples.count), (end..<(end + 1), 0..<0),
      (1 << 50..<1 << 60, 0..<0),
    ] {
      let output = cleaning.clean(
        samples, noise, from: 5000, wanted: Int64(wanted.lowerBound)..<Int64(wanted.upperBound))
      #expect(output.count == part.count)
      #expect(output == Array(whole[part]))
    }
  }

  @Test(
    "the output has as many frames as the input",
    arguments: [
      0, 1, 2, 95, 96, 97, 383, 384, 385, 24_575, 24_576, 24_577, 24_864, 33_792, 33_793, 50_000,
    ])
  func lengths(count: Int) {
    let samples = TestSignals.noise(count)
    let cleaning = Cleaning(sampleRate: rate)
    for startFrame in [Int64(0), 1, 95, 96, 24_500, 1_000_000_007] {
      #expect(cleaning.clean(samples, cleaning.flatProfile(meanSquare: 1e-4), from: startFrame).count == count)
    }
  }

  @Test func outputBeginsBeforeTheInputEnds() {
    let samples = sound(seconds: 12)
    let cleaning = Cleaning(sampleRate: rate)
    var denoiser = Denoiser(
      noise: NoiseCourse(cleaning.flatProfile(meanSquare: 1e-4)), settings: DenoiseSettings(), sampleRate: rate,
      channels: 1)
    var count = 0
    denoiser.process(samples.span) { count += $0.count }
    let grid = SegmentGrid(frame: AnalysisFrame(sampleRate: rate), channels: 1)
    #expect(samples.count - count <= (grid.segmentHops + grid.contextHops + 4) * grid.hop)
    denoiser.finish { count += $0.count }
    #expect(count == samples.count)
  }

  @Test func theReceiversErrorIsRethrown() {
    struct Full: Error {}
    let cleaning = Cleaning(sampleRate: rate)
    let samples = sound(seconds: 1)
    #expect(throws: Full.self) {
      var denoiser = Denoiser(
        noise: NoiseCourse(cleaning.flatProfile(meanSquare: 1e-4)), settings: DenoiseSettings(), sampleRate: rate,
        channels: 1)
      denoiser.process(samples.span) { _ in }
      try denoiser.finish { _ throws(Full) in throw Full() }
    }
  }

  @Test(
    "segments are shorter if many channels at a high rate would need too much memory",
    arguments: [
      (48000, 2, 256, 64), (192_000, 2, 57, 28), (192_000, 8, 48, 24), (768_000, 32, 16, 8),
    ])
  func grids(sampleRate: Int, channels: Int, segment: Int, context: Int) {
    let frame = AnalysisFrame(sampleRate: sampleRate)
    let grid = SegmentGrid(frame: frame, channels: channels)
    #expect(grid.segmentHops == segment)
    #expect(grid.contextHops == context)
  }
}
