import Glibc
import Testing

@testable import Denoise

/// Noise that differs from place to place.
@Suite struct NoiseCourseTests {
  private let rate = 8000

  /// Three noises of 5 s each: white, 12 dB louder, and a hum of 50 Hz with harmonics over the first one.
  private var threeNoises: [Float] {
    var samples = TestSignals.noise(15 * rate, level: 0.005)
    for index in (5 * rate)..<(10 * rate) { samples[index] *= 4 }
    for harmonic in 1...8 {
      let tone = TestSignals.tone(samples.count, hertz: 50 * Double(harmonic), sampleRate: rate, amplitude: 0.01)
      for index in (10 * rate)..<samples.count { samples[index] += tone[index] }
    }
    return samples
  }

  private func course(_ samples: [Float], _ regions: [Range<Int>], channels: Int = 1) throws -> NoiseCourse {
    let cleaning = Cleaning(sampleRate: rate, channels: channels)
    return NoiseCourse(
      try regions.map { seconds in
        let frames = (seconds.lowerBound * rate)..<(seconds.upperBound * rate)
        let part = Array(samples[(frames.lowerBound * channels)..<(frames.upperBound * channels)])
        return .init(try cleaning.profile(of: part), at: Int64(frames.lowerBound)..<Int64(frames.upperBound))
      })
  }

  /// What is left of the sound in some seconds, in dB relative to the sound.
  private func left(_ output: [Float], of input: [Float], _ start: Double, _ end: Double) -> Double {
    let part = Int(start * Double(rate))..<Int(end * Double(rate))
    return TestSignals.levelDB(output[part]) - TestSignals.levelDB(input[part])
  }

  @Test("each of three noises is removed around its region", arguments: DenoiseMethod.allCases)
  func threeRegions(method: DenoiseMethod) throws {
    let samples = threeNoises
    let cleaning = Cleaning(sampleRate: rate, settings: DenoiseSettings(method: method, reductionDB: 25))
    let noise = try course(samples, [1..<4, 6..<9, 11..<14])
    let output = cleaning.clean(samples, noise)
    let first = cleaning.clean(samples, noise.parts[0].profile)
    let least = method == .spectralSubtraction ? -15.0 : -18
    for (start, end) in [(1.0, 4.0), (6, 9), (11, 14)] { #expect(left(output, of: samples, start, end) < least) }
    // With the profile of the first noise alone, the others come through.
    for (start, end) in [(6.0, 9.0), (11, 14)] { #expect(left(first, of: samples, start, end) > -9) }
  }

  @Test("a tone over the noise keeps its level where the noise is cross-faded")
  func toneStays() throws {
    let samples = threeNoises
    let tone = TestSignals.tone(samples.count, hertz: 1000, sampleRate: rate, amplitude: 0.2)
    let output = Cleaning(sampleRate: rate).clean(
      TestSignals.sum(samples, tone), try course(samples, [1..<2, 6..<9, 13..<14]))
    for start in stride(from: 1, to: 14, by: 1) {
      let part = output[(start * rate)..<((start + 1) * rate)]
      #expect(abs(TestSignals.toneLevelDB(part, hertz: 1000, sampleRate: rate) - 20 * log10(0.2)) < 0.1)
    }
  }

  @Test("one region has the bits of its profile")
  func oneRegion() throws {
    let samples = threeNoises
    let noise = try course(samples, [6..<9])
    let cleaning = Cleaning(sampleRate: rate)
    let isSame = cleaning.clean(samples, noise) == cleaning.clean(samples, noise.parts[0].profile)
    #expect(isSame)
  }

  @Test("pieces, threads, and windows have the bits of the whole", arguments: [nil, NoiseAdaptation.always])
  func parts(adaptation: NoiseAdaptation?) throws {
    let samples = threeNoises
    let noise = try course(samples, [1..<2, 8..<9, 13..<14])
    var cleaning = Cleaning(sampleRate: rate, settings: DenoiseSettings(adaptation: adaptation))
    let whole = cleaning.clean(samples, noise)
    let inPieces = cleaning.clean(samples, noise, pieces: [1, 777, 20_000])
    let (start, end) = (Int(10.5 * Double(rate)), 12 * rate)
    #expect(cleaning.clean(start..<end, of: samples, noise) == Array(whole[start..<end]))
    cleaning.usesSecondThread = true
    let isSame = [inPieces, cleaning.clean(samples, noise)].allSatisfy { $0 == whole }
    #expect(isSame)
  }

  @Test("λ is a part's own within it, and is interpolated in logarithmic power between two")
  func crossFade() {
    let noise = FrameNoise([[1, 0, 4], [100, 0, 0], [1, 0, 0]], at: [100..<200, 300..<400, 400..<500], hop: 10)
    #expect(noise.levels[1] == [100, 0, 1e-14], "a bin with noise anywhere has some everywhere")
    for (frame, place) in [
      (0, FrameNoise.Place.part(0)), (11, .part(0)), (21, .part(0)), (26, .between(0, share: 0.5)), (31, .part(1)),
      (40, .part(1)), (41, .part(2)), (1000, .part(2)),
    ] { #expect(noise.place(of: Int64(frame)) == place, "frame \(frame)") }
    let weights = FrameNoise([[1, 1], [100, 1]], at: [0..<100, 300..<400], hop: 10).weights(of: 21)
    #expect(abs(weights[0] - 10 / 11) < 1e-5 && abs(weights[1] - 1 / 11) < 1e-5)
  }

  @Test("γ between two parts is that of the interpolated λ, within a thousandth and up to its limit")
  func posterior() {
    let frame = AnalysisFrame(sampleRate: 8000), bins = frame.binCount
    let levels = [[Float](repeating: 1e-4, count: bins), [Float](repeating: 1e4, count: bins)]
    let noise = FrameNoise(levels, at: [0..<1000, 3000..<4000], hop: frame.hop)
    let (row, workspace) = (RowRing(width: bins, count: 1), Workspace(frame: frame))
    let time = Int64(15)
    guard case .between(0, let share) = noise.place(of: time) else {
      Issue.record("frame \(time) is between the parts")
      return
    }
    for power in [Float(1e-6), 1, 1e4, 1e20] {
      for bin in 0..<bins { unsafe row[0][bin] = 4 * power }
      unsafe noise.makePosterior(row[0], of: time, workspace)
      let expected = min(1e4, power / Float(pow(10, -4 + 8 * Double(share))))
      let found = unsafe row[0][7]
      #expect(abs(found - expected) <= 1e-3 * expected)
    }
  }

  @Test("the mean of several parts counts each by its length")
  func mean() throws {
    let cleaning = Cleaning(sampleRate: rate)
    let noise = NoiseCourse([
      .init(cleaning.flatProfile(meanSquare: 1), at: 0..<100),
      .init(cleaning.flatProfile(meanSquare: 5), at: 200..<500),
    ])
    let expected = cleaning.flatProfile(meanSquare: 4).power[0][5]
    #expect(abs(noise.mean.power[0][5] - expected) < 1e-3 * expected)
  }
}
