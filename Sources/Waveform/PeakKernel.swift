// The sums of one whole point: 256 interleaved frames to min, max, Σx² and Σ|x| for each channel.
//
// Samples are taken W at a time (W = 16 or 24, a multiple of the channel count), sample i of each W into accumulator
// lane i; at the end the lanes i, i + channels, i + 2·channels … fold into channel i. So the inner loops have a fixed
// length and no dependence between lanes, which LLVM turns into plain SSE2.
//
// Squares: two samples' squares are added as UInt32 (2 · 2^30 fits) before they are widened to UInt64: half the
// widening of the naive way. Absolute values of a whole point fit UInt32 (256 · 2^15 = 2^23).

enum PeakKernel {
  /// Frames of a point of the finest level.
  static let pointFrames = 256

  /// Adds a whole point to `sums[first ..< first + channels]`.
  ///
  /// `samples`: exactly `256 * channels` interleaved values.
  static func addPoint(_ samples: Span<Int16>, channels: Int, to sums: inout [PointSums], at first: Int) {
    if 16 % channels == 0 {
      fold16(samples, channels: channels, to: &sums, at: first)
    } else if 24 % channels == 0 {
      fold24(samples, channels: channels, to: &sums, at: first)
    } else {
      addFrames(samples, channels: channels, to: &sums, at: first)
    }
  }

  /// Adds any number of frames: what begins and ends an append, and channel counts without a kernel.
  static func addFrames(_ samples: Span<Int16>, channels: Int, to sums: inout [PointSums], at first: Int) {
    for channel in 0..<channels {
      var sum = sums[first + channel]
      var index = channel
      while index < samples.count {
        sum.add(samples[index])
        index += channels
      }
      sums[first + channel] = sum
    }
  }

  /// The mix of whole frames: Σ channels / channels, truncated toward zero as audiowaveform does, per frame.
  ///
  /// `mix` receives `samples.count / channels` values, 256 at most.
  static func downmix(_ samples: Span<Int16>, channels: Int, to mix: inout InlineArray<256, Int16>) {
    let frames = samples.count / channels
    precondition(frames <= pointFrames, "a point has at most 256 frames")
    if channels == 2 {
      for frame in 0..<frames {
        let sum = Int32(samples[2 &* frame]) &+ Int32(samples[2 &* frame &+ 1])
        // Half, toward zero: one is added to negative sums before the shift.
        mix[frame] = Int16(truncatingIfNeeded: (sum &- (sum >> 31)) >> 1)
      }
    } else {
      let divisor = Int32(channels)
      for frame in 0..<frames {
        var sum: Int32 = 0
        for index in frame &* channels..<frame &* channels &+ channels { sum &+= Int32(samples[index]) }
        mix[frame] = Int16(truncatingIfNeeded: sum / divisor)
      }
    }
  }

  private static func fold16(_ samples: Span<Int16>, channels: Int, to sums: inout [PointSums], at first: Int) {
    var lanes = Lanes<16>()
    var base = 0
    while base < samples.count {
      lanes.add(samples, at: base)
      base += 32
    }
    lanes.fold(channels: channels, to: &sums, at: first)
  }

  private static func fold24(_ samples: Span<Int16>, channels: Int, to sums: inout [PointSums], at first: Int) {
    var lanes = Lanes<24>()
    var base = 0
    while base < samples.count {
      lanes.add(samples, at: base)
      base += 48
    }
    lanes.fold(channels: channels, to: &sums, at: first)
  }
}

private struct Lanes<let width: Int> {
  var low = InlineArray<width, Int16>(repeating: .max)
  var high = InlineArray<width, Int16>(repeating: .min)
  var squares = InlineArray<width, UInt64>(repeating: 0)
  var absolutes = InlineArray<width, UInt32>(repeating: 0)

  /// Adds `2 * width` samples from index `base`.
  @inline(__always)
  mutating func add(_ samples: Span<Int16>, at base: Int) {
    let left = samples.extracting(base..<base + width)
    let right = samples.extracting(base + width..<base + 2 * width)
    for lane in 0..<width {
      low[lane] = min(low[lane], min(left[lane], right[lane]))
      high[lane] = max(high[lane], max(left[lane], right[lane]))
    }
    for lane in 0..<width {
      let (one, two) = (Int32(left[lane]), Int32(right[lane]))
      squares[lane] &+= UInt64(UInt32(bitPattern: one &* one) &+ UInt32(bitPattern: two &* two))
      absolutes[lane] &+= UInt32(bitPattern: abs(one)) &+ UInt32(bitPattern: abs(two))
    }
  }

  @inline(__always)
  func fold(channels: Int, to sums: inout [PointSums], at first: Int) {
    for lane in 0..<width {
      let part = PointSums(
        low: low[lane], high: high[lane], squares: Int64(squares[lane]), absolutes: Int64(absolutes[lane]))
      sums[first + lane % channels].merge(part)
    }
  }
}
