import Glibc

// A profile without a region. If speech pauses occasionally in each bin, a low quantile of the bin's power over the
// whole recording is noise. The power of noise in a bin is exponentially distributed, and its q-quantile is −ln(1 − q)
// times its mean, so
//
//   λ[k] = quantile_q(|X[k]|²) / −ln(1 − q)          q = 0.2: / 0.223
//
// The mean error is 2.1 dB, compared with 2.7 to 3.0 for the best windows of 0.25 to 0.4 s found between words.
//
// The quantile comes from a histogram per bin, whose steps are equal quarters of each octave of power from 2^−60 to
// 2^36; the position within a step is interpolated. Memory is constant: 1.5 KB per bin and channel, 3.5 MB for 2
// channels at 48 kHz. The steps become halves or whole octaves if they would exceed 48 MB, so that 32 channels at 768
// kHz need 230 MB. Frames that touch digital silence (see PowerSpectra) are left out; otherwise a muted half would make
// λ 0.

/// Learns a profile from a whole recording, including its wanted sound.
package struct QuantileProfileBuilder: ~Copyable {
  private static let leastExponent = -60
  private static let octaves = 96
  private static let budgetBytes = 48 << 20

  private let sampleRate: Int
  private let channels: Int
  private let quantile: Double
  /// The number of steps per octave, as a power of 2.
  private let stepBits: Int
  private let steps: Int
  private var spectra: PowerSpectra
  /// `[channel][bin][step]`
  private var counts: [UInt32]
  private var frameCounts: [Int64]

  /// Creates a builder.
  /// - Parameters:
  ///   - sampleRate: in Hz, at least 1.
  ///   - channels: at least 1.
  ///   - quantile: over 0 and under 1; the share of time in which even a busy bin contains only noise.
  package init(sampleRate: Int, channels: Int, quantile: Double = 0.2) {
    precondition(quantile > 0 && quantile < 1, "a quantile lies between 0 and 1")
    self.sampleRate = sampleRate
    self.channels = channels
    self.quantile = quantile
    spectra = PowerSpectra(frame: AnalysisFrame(sampleRate: sampleRate), channels: channels, silence: .quiet)
    let cells = channels * spectra.frame.binCount
    var bits = 2
    while bits > 0 && cells * (Self.octaves << bits) * MemoryLayout<UInt32>.stride > Self.budgetBytes { bits -= 1 }
    stepBits = bits
    steps = Self.octaves << bits
    counts = [UInt32](repeating: 0, count: cells * steps)
    frameCounts = [Int64](repeating: 0, count: channels)
  }

  /// Returns the minimum number of frames to learn from: two analysis frames.
  package static func minimumFrames(sampleRate: Int) -> Int64 {
    2 * Int64(AnalysisFrame(sampleRate: sampleRate).length)
  }

  /// Adds more of the recording.
  /// - Parameter samples: interleaved whole frames, full scale ±1; samples that aren't finite count as 0.
  package mutating func append(_ samples: Span<Float>) {
    let steps = self.steps, stepBits = self.stepBits
    spectra.append(samples) { channel, power, isSilent in
      if isSilent { return }
      frameCounts[channel] += 1
      var cell = channel * power.count * steps
      for bin in 0..<power.count {
        counts[cell + Self.step(of: power[bin], stepBits, steps)] &+= 1
        cell += steps
      }
    }
  }

  /// Marks a gap: what is appended next comes from elsewhere in the recording.
  package mutating func beginStretch() { spectra.beginStretch() }

  /// Returns the profile, with only zeros for a channel that is silent throughout.
  /// - Throws: `regionTooShort` if the sound is shorter than two analysis frames (96 ms).
  package consuming func finish() throws(DenoiseError) -> NoiseProfile {
    try spectra.check(hasFrames: Self.minimumFrames(sampleRate: sampleRate))
    let bins = spectra.frame.binCount
    var power = [[Float]](repeating: [Float](repeating: 0, count: bins), count: channels)
    for channel in 0..<channels where frameCounts[channel] > 0 {
      for bin in 0..<bins {
        let start = (channel * bins + bin) * steps
        power[channel][bin] = level(counts[start..<(start + steps)], of: frameCounts[channel])
      }
    }
    return NoiseProfile(power: power, sampleRate: sampleRate)
  }

  /// Returns the quantile of one bin's histogram, divided by that of unit noise.
  private func level(_ histogram: ArraySlice<UInt32>, of total: Int64) -> Float {
    let wanted = quantile * Double(total)
    var below = 0.0
    for (step, count) in histogram.enumerated() where count > 0 {
      if below + Double(count) >= wanted {
        if step == 0 { return 0 }
        let place = Double(step) + (wanted - below) / Double(count)
        let octaves = place / Double(1 << stepBits)
        let whole = octaves.rounded(.down)
        let power = exp2(whole + Double(Self.leastExponent)) * (1 + octaves - whole)
        return Float(power / -log1p(-quantile))
      }
      below += Double(count)
    }
    return 0
  }

  /// Returns the step that contains a power, extracted from the number's bits; step 0 contains everything below the
  /// scale.
  @inline(__always)
  private static func step(of power: Float, _ stepBits: Int, _ steps: Int) -> Int {
    let exponentAndSteps = Int(power.bitPattern >> UInt32(23 - stepBits))
    return min(steps - 1, max(0, exponentAndSteps - (127 + leastExponent) << stepBits))
  }
}
