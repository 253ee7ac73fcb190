import Glibc

// Whether a region that someone has marked as noise also holds something else, such as speech or a note. Measured in
// the frames of NoiseRegionFinder.swift, which also defines S and T; frames of digital silence don't count:
//
//   C      10 log10 of the mean square of all frames over the 20 % quantile of the frames'
//   rise   mean level of a band in the loudest third of the frames − that in the quietest third
//   W      width of the rises: 90 % quantile over the bands − 10 % quantile
//   more than noise: T ≥ 0.15, or C > 12 dB, or C > 3.5 dB, S > 4 dB, and W > 11 dB
//
// Noise that swells does so in all bands: C of trains, keys, and gusts is up to 9 dB, and W 2 to 11 dB; for words and
// notes after noise, W is 10 to 35 dB (both with the 30 % quantile). Some noises have a T of 0.15 and more, so a region
// isn't doubted unless there is a better one.

/// Judges a region while its sound is read.
package struct NoiseRegionCheck: ~Copyable {
  /// Longer regions are judged by their start: 60 s.
  private static let limit = 2000
  /// Fewer frames, 0.45 s, don't tell.
  private static let least = 15

  private var meter: NoiseMeter
  private let bandCount: Int
  private var frames: [NoiseFrame] = []
  private var samples: [Int16] = []

  /// Creates a check with the parameters of a `NoiseRegionFinder`.
  package init(sampleRate: Int, channels: Int) {
    meter = NoiseMeter(sampleRate: sampleRate, channels: channels)
    bandCount = meter.bandCount
  }

  /// Adds more of the region.
  /// - Parameter sound: interleaved whole frames, full scale ±1.
  package mutating func append(_ sound: Span<Float>) {
    guard frames.count < Self.limit else { return }
    samples.removeAll(keepingCapacity: true)
    for index in sound.indices { samples.append(Int16(max(-32768, min(32767, (sound[index] * 32768).rounded())))) }
    let samples = samples
    var found = frames
    frames = []
    meter.measure(samples.span) { if !$0.isSilent { found.append($0) } }
    frames = found
  }

  /// The level in dBFS; nil if the region is too short or silent.
  package var levelDB: Double? {
    guard frames.count >= Self.least else { return nil }
    return 10 * log10(meanSquare) - 20 * log10(32768)
  }

  /// Whether it seems to hold more than noise.
  package var hasMoreThanNoise: Bool {
    guard frames.count >= Self.least, bandCount >= 5 else { return false }
    if tonality >= SteadyWindows.largestTonality { return true }
    let ordered = frames.sorted { $0.meanSquare < $1.meanSquare }
    let crest = 10 * log10(meanSquare / ordered[ordered.count / 5].meanSquare), third = ordered.count / 3
    guard crest > 3.5 else { return false }
    if crest > 12 { return true }
    let (quiet, loud) = (ordered.prefix(third), ordered.suffix(third))
    let rises = (0..<bandCount).map { mean($0, of: loud) - mean($0, of: quiet) }.sorted()
    let width = rises[bandCount - 1 - bandCount / 10] - rises[bandCount / 10]
    return deviation > 4 && width > 11
  }

  private var meanSquare: Double { frames.reduce(0) { $0 + $1.meanSquare } / Double(frames.count) }

  private var tonality: Double {
    var sum = BandLevels.Texture(roughness: 0, flatness: 0)
    for frame in frames {
      sum.roughness += frame.texture.roughness
      sum.flatness += frame.texture.flatness
    }
    return sum.tonality(count: frames.count)
  }

  /// S in dB
  private var deviation: Double {
    let deviations = (0..<bandCount).map { band in
      let mean = mean(band, of: frames[...])
      let squares = frames.reduce(0) { $0 + pow(Self.decibels($1.levels[band]) - mean, 2) }
      return (squares / Double(frames.count)).squareRoot()
    }
    return deviations.reduce(0, +) / Double(bandCount)
  }

  private func mean(_ band: Int, of frames: ArraySlice<NoiseFrame>) -> Double {
    frames.reduce(0) { $0 + Self.decibels($1.levels[band]) } / Double(frames.count)
  }

  private static func decibels(_ level: Int32) -> Double { Double(level) / BandLevels.stepsPerDB }
}
