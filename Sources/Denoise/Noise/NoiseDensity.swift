import Glibc

// A noise profile that is independent of the sample rate. With X the spectrum of a frame of N samples under √Hann,
// whose squares add up to N / 2, and f the sample rate in Hz, the one-sided density of the power is
//
//   D[k] = 4 |X[k]|² / (N f)            in full scale² per Hz, at the frequency k f / N
//
// so that D, integrated from 0 Hz to f / 2, is the mean square: white noise at −40 dBFS has −83.4 dB per Hz at 44.1
// kHz.
//
// At another rate, log D is interpolated between the frequencies. Frames have about 48 ms at every rate, so the bins
// have nearly the same width, and tones keep their level within half a decibel. Above the highest frequency there is no
// noise: nothing is known of it.
//
// How steady the noise was can't be told from its density, so it is kept beside it; see Hiss.swift.

/// The power density of noise by frequency in each channel, valid at any sample rate.
package struct NoiseDensity: Sendable, Equatable {
  /// What is wrong with values from outside.
  package enum Fault: Error, Equatable {
    /// There are too few or too many frequencies, or one isn't greater than the one before it, or is out of range.
    case frequencies
    /// There are too few or too many channels.
    case channels
    /// A channel doesn't have a value for each frequency, or one is out of range.
    case power(channel: Int)
    /// There isn't a value for each channel, or one is out of range.
    case steadiness
    /// No channel has any noise.
    case silent
  }

  /// The value that stands for no noise, in dB.
  package static let none = -300.0
  /// How many frequencies there may be: every bin of a recording at 768 kHz.
  package static let frequencyCount = 2...20_000
  /// The range of a frequency, in Hz.
  package static let frequencyRange = 0.0...384_000
  /// How many channels there may be.
  package static let channelCount = 1...1024
  /// The range of a density, in dB relative to full scale² per Hz.
  package static let powerRange = none...200.0
  /// The range of a channel's steadiness.
  package static let steadinessRange = 0.0...1.0

  /// In Hz, ascending.
  package let frequencies: [Double]
  /// For each channel, the density at each frequency in dB relative to full scale² per Hz; `none` if there is none.
  package let powerDB: [[Double]]
  /// How steady the noise was in each channel, from 0 to 1; 0 if that isn't known.
  package let steadiness: [Double]

  /// Creates the density of a profile, rounded to 0.01 dB, 0.01 Hz, and 0.01 of steadiness. Throws `.silent` if there
  /// is no noise in it.
  package init(_ profile: NoiseProfile) throws(Fault) {
    let scale = Self.scale(sampleRate: profile.sampleRate)
    frequencies = profile.power[0].indices.map { Self.rounded(profile.frequency(ofBin: $0)) }
    powerDB = profile.power.map { power in
      power.map { value in
        guard value > 0 else { return Self.none }
        let decibels = Self.rounded(10 * log10(scale * Double(value)))
        return min(Self.powerRange.upperBound, max(Self.powerRange.lowerBound, decibels))
      }
    }
    steadiness = profile.steadiness.map { Self.rounded(Double($0)) }
    try check()
  }

  /// Creates a density from values that may come from anywhere.
  /// - Parameter steadiness: of each channel; nil if it isn't known.
  package init(frequencies: [Double], powerDB: [[Double]], steadiness: [Double]? = nil) throws(Fault) {
    self.frequencies = frequencies
    self.powerDB = powerDB
    self.steadiness = steadiness ?? [Double](repeating: 0, count: powerDB.count)
    try check()
  }

  private func check() throws(Fault) {
    let isAscending = zip(frequencies, frequencies.dropFirst()).allSatisfy { $0 < $1 }
    guard Self.frequencyCount.contains(frequencies.count), isAscending,
      frequencies.allSatisfy(Self.frequencyRange.contains)
    else { throw .frequencies }
    guard Self.channelCount.contains(powerDB.count) else { throw .channels }
    for (channel, power) in powerDB.enumerated() {
      guard power.count == frequencies.count, power.allSatisfy(Self.powerRange.contains) else {
        throw .power(channel: channel)
      }
    }
    guard steadiness.count == powerDB.count, steadiness.allSatisfy(Self.steadinessRange.contains) else {
      throw .steadiness
    }
    guard powerDB.contains(where: { $0.contains { $0 > Self.none } }) else { throw .silent }
  }

  /// The highest frequency, in Hz.
  package var highestHz: Double { frequencies[frequencies.count - 1] }

  /// Returns the profile for a sound.
  ///
  /// A density of as many channels as the sound has applies channel by channel. One of another number applies to every
  /// channel of the sound with the mean power of its channels, and as steady as the least steady of them.
  /// - Parameters:
  ///   - sampleRate: in Hz, at least 1.
  ///   - channels: at least 1.
  package func profile(sampleRate: Int, channels: Int) -> NoiseProfile {
    let own = NoiseProfile(
      power: powerDB.map { bins($0, sampleRate: sampleRate) }, steadiness: steadiness.map { Float($0) },
      liveliness: steadiness.map { _ in 0 }, sampleRate: sampleRate)
    guard powerDB.count != channels else { return own }
    let mean = own.summed.map { $0 / Float(powerDB.count) }
    return NoiseProfile(
      power: [[Float]](repeating: mean, count: channels),
      steadiness: [Float](repeating: own.leastSteadiness, count: channels),
      liveliness: [Float](repeating: own.leastLiveliness, count: channels), sampleRate: sampleRate)
  }

  /// Returns |X|² in each bin of one channel.
  private func bins(_ powerDB: [Double], sampleRate: Int) -> [Float] {
    let frame = AnalysisFrame(sampleRate: sampleRate), scale = Self.scale(sampleRate: sampleRate)
    let width = Double(sampleRate) / Double(frame.length)
    var above = 0
    return (0..<frame.binCount).map { bin in
      let hertz = Double(bin) * width
      // A bin whose middle is above the last frequency by less than half its width is still partly known.
      guard hertz <= highestHz + width / 2 else { return 0 }
      while above < frequencies.count, frequencies[above] < hertz { above += 1 }
      let decibels = interpolated(powerDB, at: hertz, before: above)
      return decibels > Self.none ? Float(pow(10, decibels / 10) / scale) : 0
    }
  }

  private func interpolated(_ powerDB: [Double], at hertz: Double, before above: Int) -> Double {
    guard above > 0 else { return powerDB[0] }
    guard above < frequencies.count else { return powerDB[above - 1] }
    let (low, high) = (frequencies[above - 1], frequencies[above])
    let share = (hertz - low) / (high - low)
    // Between noise and none there is no straight line.
    guard min(powerDB[above - 1], powerDB[above]) > Self.none else { return powerDB[share < 0.5 ? above - 1 : above] }
    return powerDB[above - 1] + share * (powerDB[above] - powerDB[above - 1])
  }

  /// The factor from |X|² to D.
  private static func scale(sampleRate: Int) -> Double {
    4 / (Double(AnalysisFrame(sampleRate: sampleRate).length) * Double(sampleRate))
  }

  private static func rounded(_ value: Double) -> Double { (value * 100).rounded() / 100 }
}
