// The sums of one whole point: min, max, Σx², and Σ|x| of 256 interleaved frames for each channel.
//
// Samples are processed W at a time (W = 16 to 32, a multiple of the channel count that divides 256 of them). Sample i
// of each W goes to accumulator lane i; at the end, lanes i, i + channels, i + 2·channels … are folded into channel i.
// So the inner loops have a fixed length and no dependencies between lanes, and LLVM turns them into plain SSE2 despite
// the bounds checks.
//
// Three passes over samples that the first one has loaded into the L1 cache are faster than a single pass that runs out
// of registers. For the same reason the accumulators are local variables: as members of a struct they were four times
// slower. A lane receives at most 256 samples of a point, so Σ|x| fits 32 bits, and Σx² does as two sums, of the
// squares' low and high 16 bits (each below 2^24). Measured per sample, including the sums: 0.31 ns for two channels,
// 0.26 for sixteen; 1.2 for the plain loop. One channel, and two with their mix, are handled by PeakLoops.

enum PeakKernel {
  /// Frames per point at the finest level.
  static let pointFrames = 256

  /// Adds a whole point to `sums[first ..< first + channels]`.
  ///
  /// `samples`: exactly `256 * channels` interleaved values.
  static func addPoint(_ samples: Span<Int16>, channels: Int, to sums: inout [PointSums], at first: Int) {
    switch channels {
    case 1, 2, 4, 8, 16: fold(accumulate(samples) as InlineArray<16, PointSums>, channels, to: &sums, at: first)
    case 3, 6, 12, 24: fold(accumulate(samples) as InlineArray<24, PointSums>, channels, to: &sums, at: first)
    case 5, 10, 20: fold(accumulate(samples) as InlineArray<20, PointSums>, channels, to: &sums, at: first)
    case 7, 14, 28: fold(accumulate(samples) as InlineArray<28, PointSums>, channels, to: &sums, at: first)
    case 9, 18: fold(accumulate(samples) as InlineArray<18, PointSums>, channels, to: &sums, at: first)
    case 11, 22: fold(accumulate(samples) as InlineArray<22, PointSums>, channels, to: &sums, at: first)
    case 13, 26: fold(accumulate(samples) as InlineArray<26, PointSums>, channels, to: &sums, at: first)
    case 15, 30: fold(accumulate(samples) as InlineArray<30, PointSums>, channels, to: &sums, at: first)
    case 32: fold(accumulate(samples) as InlineArray<32, PointSums>, channels, to: &sums, at: first)
    default: addFrames(samples, channels: channels, to: &sums, at: first)
    }
  }

  /// Adds any number of frames: for the partial points at the ends of an append, and for channel counts without a
  /// kernel.
  static func addFrames(_ samples: Span<Int16>, channels: Int, to sums: inout [PointSums], at first: Int) {
    for channel in 0..<channels {
      var sum = sums[first + channel]
      for index in stride(from: channel, to: samples.count, by: channels) { sum.add(samples[index]) }
      sums[first + channel] = sum
    }
  }

  @inline(__always)
  private static func fold<let width: Int>(
    _ lanes: InlineArray<width, PointSums>, _ channels: Int, to sums: inout [PointSums], at first: Int
  ) {
    for channel in 0..<channels {
      var sum = sums[first + channel]
      for lane in stride(from: channel, to: width, by: channels) { sum.merge(lanes[lane]) }
      sums[first + channel] = sum
    }
  }

  @inline(never)
  private static func accumulate<let width: Int>(_ samples: Span<Int16>) -> InlineArray<width, PointSums> {
    var low = InlineArray<width, Int16>(repeating: .max)
    var high = InlineArray<width, Int16>(repeating: .min)
    for base in stride(from: 0, to: samples.count, by: width) {
      let run = samples.extracting(base..<base + width)
      for lane in 0..<width {
        low[lane] = min(low[lane], run[lane])
        high[lane] = max(high[lane], run[lane])
      }
    }
    var absolutes = InlineArray<width, UInt32>(repeating: 0)
    for base in stride(from: 0, to: samples.count, by: width) {
      let run = samples.extracting(base..<base + width)
      for lane in 0..<width { absolutes[lane] &+= UInt32(run[lane].magnitude) }
    }
    var lowSquares = InlineArray<width, UInt32>(repeating: 0)
    var highSquares = InlineArray<width, UInt32>(repeating: 0)
    // The sum of two squares fits 32 bits, so it is split only once.
    for base in stride(from: 0, to: samples.count, by: 2 * width) {
      let run = samples.extracting(base..<base + 2 * width)
      for lane in 0..<width {
        let (one, other) = (Int32(run[lane]), Int32(run[lane + width]))
        let squares = UInt32(bitPattern: one &* one) &+ UInt32(bitPattern: other &* other)
        lowSquares[lane] &+= squares & 0xffff
        highSquares[lane] &+= squares >> 16
      }
    }
    return InlineArray { lane in
      PointSums(
        low: low[lane], high: high[lane], squares: Int64(highSquares[lane]) << 16 + Int64(lowSquares[lane]),
        absolutes: Int64(absolutes[lane]))
    }
  }
}
