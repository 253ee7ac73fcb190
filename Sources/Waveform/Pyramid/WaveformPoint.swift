// A point of a pyramid: the summary of a run of frames of one lane (the mix, or one channel).
//
// While frames are summed, exactly:             PointSums
//   low, high     Int16   smallest and largest sample
//   squares       Int64   Σ x²      (≤ 2^23 frames · 2^30 = 2^53)
//   absolutes     Int64   Σ |x|
// In the file, rounded once, 8 bytes:            WaveformPoint
//   bits  0–15  minimum   Int16
//   bits 16–31  maximum   Int16
//   bits 32–47  RMS       UInt16  √(Σx² / frames), rounded (at most 32768, so unsigned)
//   bits 48–63  average   UInt16  Σ|x| / frames, rounded
//
// Integer sums don't depend on order, so a recording gives the same points however it is split. Every level is rounded
// from its own exact sums. A rounded RMS is off by at most ½, and by Minkowski's inequality so is the weighted
// quadratic mean of such values; rounding that again stays within one step.

/// The exact sums over a run of frames of one lane.
struct PointSums: Equatable, Sendable {
  var low = Int16.max
  var high = Int16.min
  var squares: Int64 = 0
  var absolutes: Int64 = 0

  @inline(__always)
  mutating func add(_ sample: Int16) {
    let wide = Int64(sample)
    low = min(low, sample)
    high = max(high, sample)
    squares &+= wide &* wide
    absolutes &+= abs(wide)
  }

  @inline(__always)
  mutating func merge(_ other: PointSums) {
    low = min(low, other.low)
    high = max(high, other.high)
    squares &+= other.squares
    absolutes &+= other.absolutes
  }

  /// Returns the point as stored in the file, with √(Σx² / frames) and Σ|x| / frames rounded. Up to 2^53 the sums are
  /// exact as doubles, and so is multiplying by the reciprocal of a power of two.
  ///
  /// For nonnegative values, adding ½ and truncating equals `rounded()` without the call into libm.
  ///
  /// `share`: 1 / frames, a power of two.
  @inline(__always)
  func point(share: Double) -> WaveformPoint {
    point(meanSquare: Double(squares) * share, mean: Double(absolutes) * share)
  }

  /// Returns the same for any number of frames, at least 1.
  func point(frames: Int64) -> WaveformPoint {
    point(meanSquare: Double(squares) / Double(frames), mean: Double(absolutes) / Double(frames))
  }

  @inline(__always)
  private func point(meanSquare: Double, mean: Double) -> WaveformPoint {
    WaveformPoint(
      minimum: low, maximum: high, rms: UInt16(meanSquare.squareRoot() + 0.5), average: UInt16(mean + 0.5))
  }
}

/// Minimum, maximum, RMS and average of a run of frames of one lane, on the 16-bit scale.
package struct WaveformPoint: Equatable, Sendable {
  /// The smallest sample.
  package var minimum: Int16
  /// The largest sample.
  package var maximum: Int16
  /// The root of the mean square, rounded.
  package var rms: UInt16
  /// The mean of the absolute values, rounded.
  package var average: UInt16

  /// Creates a point from its values.
  package init(minimum: Int16, maximum: Int16, rms: UInt16, average: UInt16) {
    self.minimum = minimum
    self.maximum = maximum
    self.rms = rms
    self.average = average
  }

  @inline(__always)
  init(_ peaks: PointPeaks, _ loudness: PointLoudness) {
    (minimum, maximum) = (peaks.minimum, peaks.maximum)
    (rms, average) = (loudness.rms, loudness.average)
  }

  /// The point as one number, stored in the file as little-endian bytes.
  var word: UInt64 {
    UInt64(UInt16(bitPattern: minimum)) | UInt64(UInt16(bitPattern: maximum)) << 16 | UInt64(rms) << 32
      | UInt64(average) << 48
  }
}

/// A point's minimum and the complement of its maximum. The complement reverses the order, so the smaller of both
/// numbers are the peaks of two points together.
struct PointPeaks: Equatable {
  /// Both numbers, in the order of memory. As one integer, because LLVM takes a pair apart.
  private let bits: UInt32

  /// `word`: a point's word.
  @inline(__always)
  init(word: UInt64) {
    let extremes = SIMD2(Int16(truncatingIfNeeded: word), Int16(truncatingIfNeeded: word >> 16))
    bits = unsafe unsafeBitCast(extremes, to: UInt32.self) ^ Self.complement
  }

  /// Minimum and maximum, in the order of memory.
  @inline(__always)
  var extremes: UInt32 { bits ^ Self.complement }

  @inline(__always)
  var minimum: Int16 { unsafe unsafeBitCast(extremes, to: SIMD2<Int16>.self).x }
  @inline(__always)
  var maximum: Int16 { unsafe unsafeBitCast(extremes, to: SIMD2<Int16>.self).y }

  @inline(__always)
  private static var complement: UInt32 { unsafe unsafeBitCast(SIMD2<Int16>(0, -1), to: UInt32.self) }
}

/// A point's RMS and average.
struct PointLoudness: Equatable {
  let rms: UInt16
  let average: UInt16

  @inline(__always)
  init(rms: UInt16, average: UInt16) { (self.rms, self.average) = (rms, average) }

  /// `word`: a point's word.
  @inline(__always)
  init(word: UInt64) {
    rms = UInt16(truncatingIfNeeded: word >> 32)
    average = UInt16(truncatingIfNeeded: word >> 48)
  }
}
