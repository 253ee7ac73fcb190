import CVoice

/// Changes of the sample rate, by libsoxr at 20 bits.
enum Resampler {
  /// Returns the number of samples at another rate that a sound of `count` samples has.
  static func count(_ count: Int, from rate: Int, to other: Int) -> Int {
    Int((Int64(count) * Int64(other) + Int64(rate) - 1) / Int64(rate))
  }

  /// Resamples a sound to as many samples as take its time, or to `count`.
  static func run(_ sound: [Float], from rate: Int, to other: Int, count: Int? = nil) throws(VoiceError) -> [Float] {
    guard rate != other else { return sound }
    var result = [Float](repeating: 0, count: count ?? Self.count(sound.count, from: rate, to: other))
    guard !sound.isEmpty else { return result }
    guard unsafe resampler_run(sound, sound.count, Double(rate), &result, result.count, Double(other)) else {
      throw .noResampler
    }
    return result
  }
}
