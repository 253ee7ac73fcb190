import Glibc

// The power of a profile for display. With X the spectrum of a frame of N samples under √Hann, whose squares add up to
// N / 2, the power of bin k is
//
//   P[k] = 4 |X[k]|² / N²      half of that at 0 Hz and at half the sample rate
//
// so that the powers of all bins add up to the mean square of the sound, and white noise at −40 dBFS appears 30 dB
// lower if there are 1,000 bins.

/// Mean power by frequency, averaged over all channels.
package struct PowerSpectrum: Sendable, Equatable, Codable {
  /// Frequencies in Hz, ascending.
  package let frequencies: [Double]
  /// The power of one bin at each frequency, in dB of full scale; −200 means none.
  package let powerDB: [Double]

  private enum CodingKeys: String, CodingKey {
    case frequencies
    // The snake-case strategy turns this into power_db, and back.
    case powerDB = "powerDb"
  }

  /// Creates a spectrum with every bin of a profile, from 0 Hz to half the sample rate.
  package init(_ profile: NoiseProfile) {
    let power = Self.power(of: profile)
    self.init(power.indices.map { (profile.frequency(ofBin: $0), power[$0]) })
  }

  /// Creates a spectrum with at most `limit` points, without 0 Hz. Each is the mean of the bins in its range; the
  /// ranges have equal frequency ratios unless they would be narrower than a bin.
  package init(_ profile: NoiseProfile, upTo limit: Int) {
    precondition(limit > 0, "a spectrum has points")
    let power = Self.power(of: profile)
    var points: [(Double, Double)] = []
    var start = 1
    while start < power.count {
      // Divides the remaining bins among the remaining points in equal ratios.
      let ratio = pow(Double(power.count) / Double(start), 1 / Double(limit - points.count))
      let end = min(power.count, max(start + 1, Int((Double(start) * ratio).rounded())))
      let middle = Double(start + end - 1) / 2 * profile.frequency(ofBin: 1)
      points.append((middle, power[start..<end].reduce(0, +) / Double(end - start)))
      start = end
    }
    self.init(points)
  }

  private init(_ points: [(hertz: Double, power: Double)]) {
    frequencies = points.map { ($0.hertz * 100).rounded() / 100 }
    powerDB = points.map { ((10 * log10(max($0.power, 1e-20))) * 100).rounded() / 100 }
  }

  private static func power(of profile: NoiseProfile) -> [Double] {
    let length = Double(AnalysisFrame(sampleRate: profile.sampleRate).length)
    let scale = 4 / (length * length * Double(profile.power.count))
    let summed = profile.summed
    return summed.indices.map { bin in
      let isEdge = bin == 0 || bin == summed.count - 1
      return Double(summed[bin]) * scale * (isEdge ? 0.5 : 1)
    }
  }
}
