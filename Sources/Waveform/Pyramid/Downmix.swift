extension PeakKernel {
  /// Computes the mix of whole frames: Σ channels / channels per frame, truncated toward zero like audiowaveform's.
  ///
  /// `mix` receives `samples.count / channels` values, at most 256. A whole point of stereo is handled by StereoPoint
  /// instead.
  static func downmix(_ samples: Span<Int16>, channels: Int, to mix: inout InlineArray<256, Int16>) {
    let frames = samples.count / channels
    precondition(frames <= pointFrames, "a point has at most 256 frames")
    var frame = 0
    // Division by multiplication is five times as fast: with m = ⌊2^40 / c⌋ + 1, ⌊s·m / 2^40⌋ equals ⌊s / c⌋ if s·c <
    // 2^40; here s ≤ 1024 · 2^15 = 2^25 and c ≤ 2^10.
    let reciprocal = UInt64(1 << 40) / UInt64(channels) + 1
    while frame < frames {
      let run = samples.extracting(frame &* channels..<frame &* channels &+ channels)
      var sum: Int32 = 0
      for channel in 0..<channels { sum &+= Int32(run[channel]) }
      let quotient = Int32(truncatingIfNeeded: (UInt64(sum.magnitude) &* reciprocal) >> 40)
      mix[frame] = Int16(truncatingIfNeeded: sum < 0 ? 0 &- quotient : quotient)
      frame += 1
    }
  }
}
