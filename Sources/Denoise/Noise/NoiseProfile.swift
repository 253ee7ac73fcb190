/// The noise's mean power in each bin, which is all that the gain rules use.
package struct NoiseProfile: Sendable, Equatable {
  /// Mean of |X|², `[channel][bin]`, for frames windowed with √Hann and not scaled otherwise. A bin with 0 has no
  /// noise, and nothing is removed there.
  package let power: [[Float]]
  /// The sample rate of the sound that the profile was made from, in Hz.
  package let sampleRate: Int
  /// How steady the noise was in each channel, from 0 to 1; 0 if that isn't known. See Hiss.swift.
  let steadiness: [Float]
  /// How lively the noise was in each channel; 0 if that isn't known. See PauseGate.swift.
  let liveliness: [Float]

  /// Creates a profile from its values, of noise that isn't known to be steady.
  /// - Parameters:
  ///   - power: for each channel, `AnalysisFrame(sampleRate:).binCount` finite values, 0 or more.
  ///   - sampleRate: in Hz.
  package init(power: [[Float]], sampleRate: Int) {
    let none = [Float](repeating: 0, count: power.count)
    self.init(power: power, steadiness: none, liveliness: none, sampleRate: sampleRate)
  }

  init(power: [[Float]], steadiness: [Float], liveliness: [Float], sampleRate: Int) {
    precondition(steadiness.count == power.count && liveliness.count == power.count, "a value for each channel")
    let bins = AnalysisFrame(sampleRate: sampleRate).binCount
    precondition(!power.isEmpty && power.allSatisfy { $0.count == bins }, "a value for each channel and bin")
    self.power = power
    self.steadiness = steadiness
    self.liveliness = liveliness
    self.sampleRate = sampleRate
  }

  /// Returns the center of a bin, in Hz.
  package func frequency(ofBin bin: Int) -> Double {
    Double(bin) * Double(sampleRate) / Double(AnalysisFrame(sampleRate: sampleRate).length)
  }

  /// The sum of all channels' power in each bin.
  var summed: [Float] {
    var sum = [Float](repeating: 0, count: power[0].count)
    for channel in power {
      for bin in sum.indices { sum[bin] += channel[bin] }
    }
    return sum
  }

  /// How steady the noise of all channels together is: that of the least steady one with any noise.
  var leastSteadiness: Float { least(of: steadiness) }

  /// How lively the noise of all channels together is: the least of the channels that have noise.
  var leastLiveliness: Float { least(of: liveliness) }

  private func least(of values: [Float]) -> Float {
    zip(power, values).compactMap { power, value in power.contains { $0 > 0 } ? value : nil }.min() ?? 0
  }
}

/// Learns a profile from a region that contains only noise: the mean power of the frames entirely inside it.
///
/// A frame with digital silence in it, a hop whose samples are all the same, doesn't count: a dropout isn't the noise
/// of the rest.
///
/// From half a second on, the profile isn't smoothed over frequency, which would cost 1.5 dB of SI-SDR and fail on hum.
/// For less, see NoiseProfile+Short.swift.
package struct NoiseProfileBuilder: ~Copyable {
  private let sampleRate: Int
  private let countsSilence: Bool
  private var spectra: PowerSpectra
  private var sums: [[Double]]
  private var meters: [SteadinessMeter]
  /// |X|² of the first frames of each channel, one after the other, for their liveliness.
  private var first: [[Float]]
  /// Maximum size of `first`, in values: 4 MB, or 10 s of one channel at 48 kHz.
  private static let firstCount = 1 << 20
  /// Frames that count in each channel.
  private var counts: [Int64]

  /// Creates a builder.
  /// - Parameters:
  ///   - sampleRate: in Hz, at least 1.
  ///   - channels: at least 1.
  ///   - countsSilence: whether to measure a sound as it is instead of learning its noise: frames with digital silence
  ///     count, and nothing is smoothed.
  package init(sampleRate: Int, channels: Int, countsSilence: Bool = false) {
    self.sampleRate = sampleRate
    self.countsSilence = countsSilence
    spectra = PowerSpectra(
      frame: AnalysisFrame(sampleRate: sampleRate), channels: channels, silence: countsSilence ? .none : .constant)
    sums = [[Double]](repeating: [Double](repeating: 0, count: spectra.frame.binCount), count: channels)
    meters = [SteadinessMeter](
      repeating: SteadinessMeter(frame: spectra.frame, sampleRate: sampleRate), count: channels)
    first = [[Float]](repeating: [], count: channels)
    counts = [Int64](repeating: 0, count: channels)
  }

  /// Adds more of the region.
  /// - Parameter samples: interleaved whole frames, full scale ±1; samples that aren't finite count as 0.
  package mutating func append(_ samples: Span<Float>) {
    spectra.append(samples) { channel, power, isSilent in
      if isSilent { return }
      counts[channel] += 1
      if !countsSilence {
        meters[channel].append(power)
        if (first[channel].count + power.count) * first.count <= Self.firstCount {
          for bin in 0..<power.count { first[channel].append(power[bin]) }
        }
      }
      for bin in 0..<power.count { sums[channel][bin] += Double(power[bin]) }
    }
  }

  /// Returns the profile, with only zeros for a channel without a frame that counts.
  /// - Throws: `regionTooShort` if the region is shorter than an analysis frame (48 ms), `silentRegion` if no frame of
  ///   any channel counts.
  package consuming func finish() throws(DenoiseError) -> NoiseProfile {
    try spectra.check(hasFrames: NoiseProfile.minimumFrames(sampleRate: sampleRate))
    guard counts.contains(where: { $0 > 0 }) else { throw .silentRegion }
    let power = zip(sums, counts).map { sums, count in
      let mean = sums.map { Float($0 / Double(max(count, 1))) }
      return countsSilence || count == 0 ? mean : NoiseProfile.shrunk(mean, frames: count)
    }
    let liveliness = zip(power, first).map { power, first in
      let gate = PauseGate(frame: spectra.frame, sampleRate: sampleRate) { power[$0] > 0 }
      let excess = stride(from: 0, to: first.count, by: power.count).map { start in
        gate.excess(power.indices.map { power[$0] > 0 ? first[start + $0] / power[$0] : 0 }.span)
      }
      return PauseGate.liveliness(excess)
    }
    return NoiseProfile(
      power: power, steadiness: meters.map(\.steadiness), liveliness: liveliness, sampleRate: sampleRate)
  }
}

extension NoiseProfile {
  /// Returns the minimum number of frames to learn a profile from: an analysis frame.
  package static func minimumFrames(sampleRate: Int) -> Int64 { Int64(AnalysisFrame(sampleRate: sampleRate).length) }
}
