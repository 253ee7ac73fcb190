extension PeakKernel {
  /// Computes the mix of whole frames: Σ channels / channels per frame, truncated toward zero like audiowaveform's.
  ///
  /// `mix` receives `samples.count / channels` values, at most 256. A whole point of stereo is handled by PeakLoops
  /// instead.
  static func downmix(_ samples: Span<Int16>, channels: Int, to mix: inout InlineArray<256, Int16>) {
    let frames = samples.count / channels
    precondition(frames <= pointFrames, "a point has at most 256 frames")
    if channels == 2 { return downmixStereo(samples, to: &mix) }
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
  private static func downmixStereo(_ samples: Span<Int16>, to mix: inout InlineArray<256, Int16>) {
    for frame in 0..<samples.count / 2 {
      let sum = Int32(samples[2 &* frame]) &+ Int32(samples[2 &* frame &+ 1])
      // The shift rounds down; adding 1 to a negative sum makes that toward zero.
      mix[frame] = Int16(truncatingIfNeeded: (sum &- (sum >> 31)) >> 1)
    }
  }
}
