import Glibc

// The power of a profile as people draw it. With X the spectrum of a frame of N samples under √Hann, whose squares add
// up to N / 2, the power of bin k is
//
//   P[k] = 4 |X[k]|² / N²      half of that at 0 Hz and at half the sample rate
//
// so that the powers of all bins add up to the mean square of the sound, and white noise of −40 dBFS lies 30 dB lower
// where there are 1,000 bins.

/// Mean power by frequency, the mean of all channels.
package struct PowerSpectrum: Sendable, Equatable, Codable {
  /// In Hz, rising.
  package let frequencies: [Double]
  /// Of one bin at each frequency, in dB of full scale; −200 stands for none.
  package let powerDB: [Double]

  private enum CodingKeys: String, CodingKey {
    case frequencies
    // Snake case makes power_db of this, and this again of that.
    case powerDB = "powerDb"
  }

  /// Every bin of a profile, from 0 Hz to half the sample rate.
  package init(_ profile: NoiseProfile) {
    let power = Self.power(of: profile)
    self.init(power.indices.map { (profile.frequency(ofBin: $0), power[$0]) })
  }

  /// A profile in at most `limit` points, 0 Hz left out: each the mean of the bins of its range, all ranges of one
  /// ratio but for those that would be narrower than a bin.
  package init(_ profile: NoiseProfile, upTo limit: Int) {
    precondition(limit > 0, "a spectrum has points")
    let power = Self.power(of: profile)
    var points: [(Double, Double)] = []
    var start = 1
    while start < power.count {
      // What is left, over the points that are left, in equal ratios.
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
