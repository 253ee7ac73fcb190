/// The noise's mean power in each bin, which is all that the gain rules know of it.
package struct NoiseProfile: Sendable, Equatable {
  /// Mean of |X|², `[channel][bin]`, of frames windowed with √Hann and not scaled otherwise. 0 where there is no
  /// noise; there nothing is removed.
  package let power: [[Float]]
  /// The rate of the sound it was taken from, in Hz.
  package let sampleRate: Int

  /// - Parameters:
  ///   - power: for each channel `AnalysisFrame(sampleRate:).binCount` finite values, 0 or more.
  ///   - sampleRate: in Hz.
  package init(power: [[Float]], sampleRate: Int) {
    let bins = AnalysisFrame(sampleRate: sampleRate).binCount
    precondition(!power.isEmpty && power.allSatisfy { $0.count == bins }, "a value for each channel and bin")
    self.power = power
    self.sampleRate = sampleRate
  }

  /// The middle of a bin, in Hz.
  package func frequency(ofBin bin: Int) -> Double {
    Double(bin) * Double(sampleRate) / Double(AnalysisFrame(sampleRate: sampleRate).length)
  }

  /// The power of all channels together in each bin.
  var summed: [Float] {
    var sum = [Float](repeating: 0, count: power[0].count)
    for channel in power {
      for bin in sum.indices { sum[bin] += channel[bin] }
    }
    return sum
  }
}

/// Learns a profile from a region where only noise is heard: the mean power of the frames wholly inside it.
///
/// Not smoothed over frequency: that costs 1.5 dB of SI-SDR and ruins hum.
package struct NoiseProfileBuilder: ~Copyable {
  private let sampleRate: Int
  private var spectra: PowerSpectra
  private var sums: [[Double]]

  /// - Parameters:
  ///   - sampleRate: in Hz, at least 1.
  ///   - channels: at least 1.
  package init(sampleRate: Int, channels: Int) {
    self.sampleRate = sampleRate
    spectra = PowerSpectra(frame: AnalysisFrame(sampleRate: sampleRate), channels: channels)
    sums = [[Double]](repeating: [Double](repeating: 0, count: spectra.frame.binCount), count: channels)
  }

  /// Takes more of the region.
  /// - Parameter samples: interleaved, whole frames, full scale ±1; what is not finite counts as 0.
  package mutating func append(_ samples: Span<Float>) {
    spectra.append(samples) { channel, power, _ in
      for bin in 0..<power.count { sums[channel][bin] += Double(power[bin]) }
    }
  }

  /// The profile.
  /// - Throws: `regionTooShort` below the length of two analysis frames (96 ms).
  package consuming func finish() throws(DenoiseError) -> NoiseProfile {
    let count = try spectra.checkedFrameCount()
    let power = sums.map { $0.map { Float($0 / Double(count)) } }
    return NoiseProfile(power: power, sampleRate: sampleRate)
  }
}
