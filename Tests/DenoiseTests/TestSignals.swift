import Glibc

@testable import Denoise

/// Synthetic sound for the tests, the same in every run.
enum TestSignals {
  /// Returns white Gaussian noise (a sum of twelve uniform numbers) with the given standard deviation.
  static func noise(_ count: Int, level: Float = 0.01, seed: UInt64 = 1) -> [Float] {
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    return (0..<count).map { _ in
      var sum: Float = 0
      for _ in 0..<12 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        sum += Float(state >> 40) / Float(1 << 24)
      }
      return (sum - 6) * level
    }
  }

  static func tone(_ count: Int, hertz: Double, sampleRate: Int, amplitude: Double = 0.1) -> [Float] {
    (0..<count).map { Float(amplitude * sin(2 * Double.pi * hertz * Double($0) / Double(sampleRate))) }
  }

  static func sum(_ left: [Float], _ right: [Float]) -> [Float] { zip(left, right).map { $0 + $1 } }

  static func interleaved(_ channels: [[Float]]) -> [Float] {
    (0..<channels[0].count).flatMap { index in channels.map { $0[index] } }
  }

  static func channel(_ channel: Int, of count: Int, in samples: [Float]) -> [Float] {
    stride(from: channel, to: samples.count, by: count).map { samples[$0] }
  }

  /// Returns the mean square in dB.
  static func levelDB(_ samples: some Collection<Float>) -> Double {
    10 * log10(samples.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(samples.count) + 1e-30)
  }

  /// Returns the amplitude in dB of the component of `samples` that is a sine of the given frequency.
  static func toneLevelDB(_ samples: ArraySlice<Float>, hertz: Double, sampleRate: Int) -> Double {
    var real = 0.0, imaginary = 0.0
    for (index, sample) in zip(samples.indices, samples) {
      let phase = 2 * Double.pi * hertz * Double(index) / Double(sampleRate)
      real += Double(sample) * cos(phase)
      imaginary += Double(sample) * sin(phase)
    }
    return 20 * log10(2 * (real * real + imaginary * imaginary).squareRoot() / Double(samples.count))
  }

  static func largestDifference(_ left: [Float], _ right: [Float]) -> Float {
    zip(left, right).map { abs($0 - $1) }.max() ?? 0
  }
}

/// Cleans a whole array, at once or in pieces of given sizes.
struct Cleaning {
  var sampleRate = 16000
  var channels = 1
  var settings = DenoiseSettings()
  var usesSecondThread = false
  /// The number of channels that the memory is meant for; nil for as many as there are.
  var budgetedChannels: Int?

  func profile(of samples: [Float], countsSilence: Bool = false) throws(DenoiseError) -> NoiseProfile {
    var builder = NoiseProfileBuilder(sampleRate: sampleRate, channels: channels, countsSilence: countsSilence)
    builder.append(samples.span)
    return try builder.finish()
  }

  /// Returns a profile of white noise with the given mean square, as a builder would find it in the long run.
  func flatProfile(meanSquare: Float) -> NoiseProfile {
    let frame = AnalysisFrame(sampleRate: sampleRate)
    let power = [Float](repeating: meanSquare * Float(frame.length) / 2, count: frame.binCount)
    return NoiseProfile(power: [[Float]](repeating: power, count: channels), sampleRate: sampleRate)
  }

  /// - Parameter pieces: frames of each piece, used in turn.
  func clean(
    _ samples: [Float], _ profile: NoiseProfile, from startFrame: Int64 = 0, pieces: [Int] = [4096]
  ) -> [Float] {
    clean(samples, NoiseCourse(profile), from: startFrame, pieces: pieces)
  }

  /// Cleans only a part of one channel's sound, from no more samples than that needs.
  func clean(_ wanted: Range<Int>, of samples: [Float], _ noise: NoiseCourse) -> [Float] {
    let wanted = Int64(wanted.lowerBound)..<Int64(wanted.upperBound)
    let needed = Denoiser.sound(
      for: wanted, sampleRate: sampleRate, channels: budgetedChannels ?? 1, isTracked: settings.adaptation != nil)
    let part = samples[Int(needed.lowerBound)..<min(samples.count, Int(needed.upperBound))]
    return clean(Array(part), noise, from: needed.lowerBound, wanted: wanted)
  }

  func clean(
    _ samples: [Float], _ noise: NoiseCourse, from startFrame: Int64 = 0, wanted: Range<Int64> = 0..<(.max),
    pieces: [Int] = [4096]
  ) -> [Float] {
    var output: [Float] = []
    var denoiser = Denoiser(
      noise: noise, settings: settings, sampleRate: sampleRate, channels: channels, startFrame: startFrame,
      wanted: wanted, usesSecondThread: usesSecondThread, budgetedChannels: budgetedChannels)
    var position = 0, turn = 0
    while position < samples.count {
      let end = min(samples.count, position + pieces[turn % pieces.count] * channels)
      denoiser.process(samples.span.extracting(position..<end)) { append($0, to: &output) }
      position = end
      turn += 1
    }
    denoiser.finish { append($0, to: &output) }
    return output
  }

  private func append(_ samples: Span<Float>, to output: inout [Float]) {
    for index in samples.indices { output.append(samples[index]) }
  }
}
