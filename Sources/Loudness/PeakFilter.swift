import Glibc

// True peak (ITU-R BS.1770-4, annex 2): the peak of the sound interpolated to several times its rate. The filter is
// libebur128's, so that a peak that is held here is also measured as such:
//
//   h[j] = sinc((j − 24) / factor) · (1 − cos(2πj / 48)) / 2,  j = 0 … 48
//   factor = 4 below 96 kHz, 2 below 192 kHz, else 1: no interpolation
//   the point at t + f / factor = Σ h[f + factor · k] · x[t + reach − k],  reach = 24 / factor

/// The interpolation filter for true peaks.
struct PeakFilter: Sendable {
  /// Number of frames that it needs after and before a frame.
  let reach: Int
  /// The taps of each point between two samples, for the newest frame first.
  private let phases: [[Float]]
  /// Maximum factor by which a point can exceed the highest sample.
  let bound: Float

  init(sampleRate: Int) {
    let factor = sampleRate < 96_000 ? 4 : sampleRate < 192_000 ? 2 : 1
    reach = factor == 1 ? 0 : 24 / factor
    let taps = (0...48).map { (j: Int) -> Float in
      let x = Double.pi * Double(j - 24) / Double(factor)
      return Float((j == 24 ? 1 : sin(x) / x) * (1 - cos(2 * .pi * Double(j) / 48)) / 2)
    }
    // Point 0 is the sample itself.
    phases = factor == 1 ? [] : (1..<factor).map { first in stride(from: first, to: 49, by: factor).map { taps[$0] } }
    bound = phases.map { $0.reduce(0) { $0 + $1.magnitude } }.max().map { max($0, 1) } ?? 1
  }

  /// Returns the highest magnitude of one channel's sample at `frame` and of the points up to the next one.
  @inline(__always)
  func peak(of samples: Span<Float>, frame: Int, channel: Int, channels: Int) -> Float {
    var peak = samples[frame * channels + channel].magnitude
    for taps in phases {
      var sum: Float = 0
      var place = (frame + reach) * channels + channel
      for tap in taps.indices {
        sum += taps[tap] * samples[place]
        place -= channels
      }
      peak = max(peak, sum.magnitude)
    }
    return peak
  }
}
