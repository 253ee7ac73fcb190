import Foundation
import Testing

@testable import Voice

/// The way of sound through segments, spectra and resampler, with made-up weights.
@Suite struct VoiceDenoiserTests {
  private static let weights: VoiceWeights = {
    var state: UInt32 = 1
    return VoiceWeights(
      (0..<VoiceWeights.count).map { _ in
        state = state &* 1_664_525 &+ 1_013_904_223
        return Float(Int32(state >> 8) - 8_388_608) / 8_388_608 / 16
      })
  }()

  private func noise(_ count: Int, seed: UInt64 = 1, scale: Float = 0.1) -> [Float] {
    var state = seed
    return (0..<count).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Float(Int32(truncatingIfNeeded: state >> 32)) * 0x1p-31 * scale
    }
  }

  /// Returns the wanted frames, which arrive from pieces of `piece` frames.
  private func clean(
    _ original: [Float], _ classical: [Float], rate: Int, groups: [[Int]] = [[0]], wanted: Range<Int64> = 0..<(.max),
    reduction: Double = 30, threads: Int = 1, piece: Int = 10_000
  ) throws -> [Float] {
    let channels = groups.reduce(0) { $0 + $1.count }
    let needed = VoiceDenoiser.sound(for: wanted, sampleRate: rate)
    let denoiser = VoiceDenoiser(
      weights: Self.weights, settings: .init(reductionDB: reduction, isMarked: true), groups: groups, sampleRate: rate,
      startFrame: needed.lowerBound, wanted: wanted, usesSecondThread: threads == 2)
    var output: [Float] = []
    func take(_ samples: Span<Float>) throws(VoiceError) {
      for index in samples.indices { output.append(samples[index]) }
    }
    var frame = Int(needed.lowerBound)
    let end = Int(min(needed.upperBound, Int64(original.count / channels)))
    while frame < end {
      let part = frame * channels..<min(frame + piece, end) * channels
      try denoiser.process(
        original.span.extracting(part), classical.span.extracting(part), failing: { $0 }
      ) {
        (samples: Span<Float>) throws(VoiceError) in try take(samples)
      }
      frame += piece
    }
    try denoiser.finish(failing: { $0 }) { (samples: Span<Float>) throws(VoiceError) in try take(samples) }
    return output
  }

  private func difference(_ a: ArraySlice<Float>, _ b: ArraySlice<Float>) -> Float {
    zip(a, b).reduce(0) { max($0, abs($1.0 - $1.1)) }
  }

  @Test(
    "sound from which the classical method has removed nothing stays, at its place and at any rate",
    arguments: [8_000, 11_025, 44_100, 48_000, 96_000], [1, 2])
  func clean(rate: Int, channels: Int) throws {
    guard VoiceDenoiser.loadResampler() || rate == 48_000 else { return }
    let sound = noise(rate * channels * 5 / 4 + channels)
    let result = try clean(sound, sound, rate: rate, groups: [Array(0..<channels)])
    #expect(result.count == sound.count)
    #expect(difference(result[...], sound[...]) < 3e-5)
  }

  @Test("a part is like the same part of the whole, on any number of threads and in any pieces")
  func parts() throws {
    let (rate, seconds) = (48_000, 13)
    let original = noise(rate * seconds), classical = noise(rate * seconds, seed: 5, scale: 0.03)
    let whole = try clean(original, classical, rate: rate)
    #expect(whole.count == original.count)
    #expect(difference(whole[...], original[...]) > 0.01, "something is removed")
    for wanted in [5.8..<6.3, 11.5..<12.02] {
      let frames = Int64(wanted.lowerBound * 48_000)..<Int64(wanted.upperBound * 48_000)
      let part = try clean(original, classical, rate: rate, wanted: frames, threads: 2, piece: 4_801)
      #expect(part.count == frames.count)
      #expect(difference(part[...], whole[Int(frames.lowerBound)..<Int(frames.upperBound)]) < 1e-4, "\(wanted)")
    }
  }

  @Test("linked channels keep their image, and opposite ones don't cancel out")
  func image() throws {
    let mono = noise(48_000), left = noise(48_000, seed: 3, scale: 0.02)
    let original = mono.flatMap { [$0, -0.5 * $0] }, classical = left.flatMap { [$0, -0.5 * $0] }
    let result = try clean(original, classical, rate: 48_000, groups: [[0, 1]])
    var worst: Float = 0
    for frame in 0..<48_000 { worst = max(worst, abs(result[2 * frame] + 2 * result[2 * frame + 1])) }
    #expect(worst < 1e-5)
    let alone = try clean(original, classical, rate: 48_000, groups: [[0], [1]])
    #expect(difference(alone[...], result[...]) < 0.2)
  }

  @Test(
    "the limit of attenuation holds, also above the networks' 24 kHz",
    arguments: [(12.0, 48_000), (20, 96_000), (30, 44_100)])
  func limit(reduction: Double, rate: Int) throws {
    guard VoiceDenoiser.loadResampler() || rate == 48_000 else { return }
    let original = noise(rate), silence = [Float](repeating: 0, count: rate)
    let result = try clean(original, silence, rate: rate, reduction: reduction)
    func power(_ samples: [Float]) -> Double { samples[5_000...40_000].reduce(0) { $0 + Double($1) * Double($1) } }
    let attenuation = 10 * log10(power(original) / power(result))
    #expect(abs(attenuation - reduction) < 0.2)
  }

  @Test("digital silence stays silent, and samples that aren't finite do no harm")
  func hostile() throws {
    let silence = [Float](repeating: 0, count: 20_000)
    #expect(try clean(silence, silence, rate: 48_000).allSatisfy { $0 == 0 })
    var sound = noise(20_000)
    (sound[100], sound[200], sound[300]) = (.nan, .infinity, 1e30)
    #expect(try clean(sound, silence, rate: 48_000).allSatisfy(\.isFinite))
  }
}

/// What is kept of the classical result.
@Suite struct VoiceGuardTests {
  /// The verdict on a second of white sound with these powers in dB.
  private func verdict(
    input: Float, classical: Float, voice: Float, isMarked: Bool = false
  ) -> VoiceGuard.Verdict {
    func spectrum(_ decibels: Float) -> [Float] { [Float](repeating: powf(10, decibels / 20), count: 962) }
    var guarding = VoiceGuard(seconds: 1)
    guarding.add(second: 0, voice: spectrum(voice), classical: spectrum(classical), input: spectrum(input))
    return guarding.verdict(second: 0, isMarked: isMarked)
  }

  @Test(
    "the classical result is kept where the networks harm",
    arguments: [
      // Music: much weaker than the classical result, which found sound.
      ("lost", 0, -1, -9, false, 1), ("noise alone", 0, -25, -60, false, 0), ("speech in noise", 0, -3, -3.5, false, 0),
      ("a weak voice without noise", -0, -0.5, -4, false, 1), ("clean", 0, -0.1, -0.2, false, 1),
      ("marked noise brought back", 0, -24, -10, true, 1), ("the same, not marked", 0, -24, -10, false, 0),
    ] as [(String, Float, Float, Float, Bool, Float)])
  func kept(name: String, input: Float, classical: Float, voice: Float, isMarked: Bool, expected: Float) {
    let verdict = verdict(input: input, classical: classical, voice: voice, isMarked: isMarked)
    #expect(verdict.kept.allSatisfy { abs($0 - expected) < 0.01 }, "\(name): \(verdict.kept)")
  }
}
