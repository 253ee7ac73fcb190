// The sums of a whole point in one lane, eight samples at a time. It is fast on baseline x86-64 (SSE2) because samples
// aren't widened individually:
//
//   Σx²    pmaddwd squares eight samples and adds them in pairs of at most 2^31. This keeps two sums: S, the sum of the
//          pairs modulo 2^32, and U, that of their upper 16 bits (at most 32 · 2^15). The rest,
//          S − 2^16·U, is less than 32 · 2^16, so it is exact modulo 2^32, and Σ = 2^16·U + (S − 2^16·U).
//   Σ|x|   likewise in 16 bits: |x| ≤ 2^15, S modulo 2^16, U the sum of the upper 8 bits, S − 2^8·U < 32 · 2^8.
//
// LLVM turns the products of the even and odd halves, as written here, into one pmaddwd, and the replacements into
// pminsw and pmaxsw. Measured per sample and lane: 0.22 ns, compared with 0.43 to 0.48 for 32-bit lane accumulators
// (PeakKernel).

/// Minimum, maximum and sums of the 256 samples of a point.
struct LaneSums {
  private var low = SIMD8<Int16>(repeating: .max)
  private var high = SIMD8<Int16>(repeating: .min)
  private var absolutes = SIMD8<UInt16>(repeating: 0)
  private var upperAbsolutes = SIMD8<UInt16>(repeating: 0)
  private var squares = SIMD4<UInt32>(repeating: 0)
  private var upperSquares = SIMD4<UInt32>(repeating: 0)

  private init() {}

  /// Returns the sums of 256 Int16 in native byte order.
  @inline(never)
  static func of(_ samples: RawSpan) -> PointSums {
    precondition(samples.byteCount == 2 * PeakKernel.pointFrames, "a whole point")
    var lanes = LaneSums()
    for run in 0..<PeakKernel.pointFrames / 8 { lanes.add(samples.eight(run)) }
    return lanes.total
  }

  @inline(__always)
  private mutating func add(_ samples: SIMD8<Int16>) {
    low.replace(with: samples, where: samples .< low)
    high.replace(with: samples, where: samples .> high)
    let sign = samples &>> 15
    let magnitudes = SIMD8<UInt16>(truncatingIfNeeded: (samples ^ sign) &- sign)
    absolutes &+= magnitudes
    upperAbsolutes &+= magnitudes &>> 8
    let (even, odd) = (
      SIMD4<Int32>(truncatingIfNeeded: samples.evenHalf), SIMD4<Int32>(truncatingIfNeeded: samples.oddHalf)
    )
    let pairs = SIMD4<UInt32>(truncatingIfNeeded: even &* even &+ odd &* odd)
    squares &+= pairs
    upperSquares &+= pairs &>> 16
  }

  @inline(__always)
  private var total: PointSums {
    let lowerSquares = squares &- upperSquares &<< 16
    let lowerAbsolutes = absolutes &- upperAbsolutes &<< 8
    return PointSums(
      low: low.min(), high: high.max(),
      squares: Int64(upperSquares.wrappedSum()) << 16 + Int64(lowerSquares.wrappedSum()),
      absolutes: Int64(upperAbsolutes.wrappedSum()) << 8 + Int64(lowerAbsolutes.wrappedSum()))
  }
}

/// The lanes of a point of stereo, separated.
struct StereoPoint {
  private typealias Lane = InlineArray<32, SIMD8<Int16>>

  private var mix = Lane(repeating: SIMD8(repeating: 0))
  private var left = Lane(repeating: SIMD8(repeating: 0))
  private var right = Lane(repeating: SIMD8(repeating: 0))

  /// Adds 256 interleaved frames to the sums of the mix and of the left and right channels.
  mutating func add(_ samples: Span<Int16>, to sums: inout [PointSums]) {
    precondition(samples.count == 2 * PeakKernel.pointFrames, "a whole point")
    split(unsafe samples.bytes)
    sums[0].merge(LaneSums.of(unsafe mix.span.bytes))
    sums[1].merge(LaneSums.of(unsafe left.span.bytes))
    sums[2].merge(LaneSums.of(unsafe right.span.bytes))
  }

  /// The mix is (l + r) / 2 rounded toward zero: ⌊(l + r) / 2⌋ = (l & r) + ((l ^ r) >> 1), plus 1 if that is negative
  /// and l + r is odd.
  @inline(never)
  private mutating func split(_ samples: RawSpan) {
    for run in 0..<PeakKernel.pointFrames / 8 {
      let (first, second) = (samples.eight(2 * run), samples.eight(2 * run + 1))
      let l = SIMD8(lowHalf: first.evenHalf, highHalf: second.evenHalf)
      let r = SIMD8(lowHalf: first.oddHalf, highHalf: second.oddHalf)
      let floor = l & r &+ (l ^ r) &>> 1
      let isNegative = SIMD8<Int16>(truncatingIfNeeded: SIMD8<UInt16>(truncatingIfNeeded: floor) &>> 15)
      mix[run] = floor &+ (l ^ r) & isNegative
      left[run] = l
      right[run] = r
    }
  }
}

extension RawSpan {
  /// Returns samples 8·`run` … 8·`run` + 7. Any bytes are valid samples, and the span checks bounds.
  @inline(__always)
  fileprivate func eight(_ run: Int) -> SIMD8<Int16> {
    unsafe unsafeLoadUnaligned(fromByteOffset: 16 * run, as: SIMD8<Int16>.self)
  }
}
