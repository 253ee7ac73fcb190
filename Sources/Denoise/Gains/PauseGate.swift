import Glibc

// Where a recording fluctuates no more than the noise did in the region it was learned from, every gain goes to the
// floor. Noise that swells, such as a fan's, rain, or traffic, is otherwise let through at its peaks, which is heard as
// musical noise: the rest fluctuates more than the noise did.
//
//   g[t,b] = mean of |Y[t]|² / λ over the bins of band b    b: the bands of NoiseBands from 100 Hz to 7.6 kHz
//   d[t,b] = g − 1 − ln g, or 0 where g ≤ 1
//   D[t]   = the largest over b of the mean of d over 12 frames on each side
//   U      = the largest D in the region the noise was learned from, at most 3 times the median of D there: noise
//            returns to its level, so anything higher is another sound in the region; 0 for a profile without a region,
//            and G is then unchanged
//   p      = 0 up to D = 2 U, 1 from 4 U on, and linear between; then the largest of 4 frames on each side
//   G      ← floor + p (G − floor)
//
// g − 1 − ln g is the logarithm of the likelihood ratio of speech with the SNR g − 1 to noise (Sohn, Kim & Sung, "A
// statistical model-based voice activity detection", IEEE Signal Processing Letters 6, 1999). One band that stands out
// is enough, so faint notes stay. Figures are in Tests/Benchmarks/denoise.md.
struct PauseGate: Sendable {
  /// Frames on each side.
  private static let meanReach = 12
  private static let largestReach = 4

  private let bands: [Range<Int>]

  /// - Parameter hasNoise: whether a bin has noise; a band without noise in one of its bins doesn't count.
  init(frame: AnalysisFrame, sampleRate: Int, hasNoise: (Int) -> Bool) {
    bands = Hiss.bands(frame: frame, sampleRate: sampleRate, lowest: 100).filter { $0.allSatisfy(hasNoise) }
  }

  /// Returns d of each band of a frame.
  /// - Parameter power: |Y|² / λ of each bin, divided by `scale`.
  func excess(_ power: Span<Float>, scale: Float = 1) -> [Float] {
    bands.map { band in
      var sum: Float = 0
      for bin in band { sum += power[bin] }
      let ratio = scale * sum / Float(band.count)
      return ratio > 1 ? ratio - 1 - log(ratio) : 0
    }
  }

  /// Returns D of consecutive frames.
  private static func largestMeans(_ excess: [[Float]]) -> [Float] {
    excess.indices.map { index in
      let near = max(0, index - meanReach)..<min(excess.count, index + meanReach + 1)
      return excess[index].indices.reduce(0) { largest, band in
        max(largest, near.reduce(0) { $0 + excess[$1][band] } / Float(near.count))
      }
    }
  }

  /// Returns U.
  /// - Parameter excess: d of the region's frames.
  static func liveliness(_ excess: [[Float]]) -> Float {
    let sorted = largestMeans(excess).sorted()
    return sorted.isEmpty ? 0 : min(sorted[sorted.count - 1], 3 * sorted[sorted.count / 2])
  }

  /// Returns p of each frame of a segment, and of four before it.
  /// - Parameters:
  ///   - context: the frames of the segment and around it, whose γ is read.
  ///   - scale: the factor from γ to |Y|² / λ.
  func shares(
    _ segment: Range<Int64>, context: Range<Int64>, scale: Float, noise: FrameNoise, _ posterior: PosteriorRows
  ) -> [Float] {
    let wanted = (segment.lowerBound - Int64(Self.largestReach))..<segment.upperBound
    let reach = Int64(Self.meanReach + Self.largestReach)
    let frames = ((wanted.lowerBound - reach)..<(wanted.upperBound + reach)).clamped(to: context)
    let excess = frames.map { frame in
      unsafe self.excess(Span(_unsafeStart: posterior[frame], count: noise.levels[0].count), scale: scale)
    }
    let shares = zip(frames, Self.largestMeans(excess)).map { frame, mean -> Float in
      let liveliness = noise.liveliness(of: frame)
      return liveliness > 0 ? min(1, max(0, 0.5 * mean / liveliness - 1)) : 1
    }
    return wanted.map { frame in
      let place = Int(frame - frames.lowerBound)
      let near = max(0, place - Self.largestReach)..<min(shares.count, place + Self.largestReach + 1)
      return near.isEmpty ? 1 : shares[near].max() ?? 1
    }
  }
}
