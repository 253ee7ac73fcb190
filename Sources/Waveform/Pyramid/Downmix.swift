extension PeakKernel {
  /// The mix of whole frames: Σ channels / channels, truncated toward zero as audiowaveform does, per frame.
  ///
  /// `mix` receives `samples.count / channels` values, 256 at most. A whole point of stereo goes another way
  /// (StereoPoint).
  static func downmix(_ samples: Span<Int16>, channels: Int, to mix: inout InlineArray<256, Int16>) {
    let frames = samples.count / channels
    precondition(frames <= pointFrames, "a point has at most 256 frames")
    var frame = 0
    // Division by multiplication, five times as fast: ⌊s·m / 2^40⌋ with m = ⌊2^40 / c⌋ + 1 is ⌊s / c⌋ where
    // s·c < 2^40, and s ≤ 1024 · 2^15 = 2^25, c ≤ 2^10.
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
