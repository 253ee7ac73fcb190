import CPeaks

/// The loops over samples and points for one instruction set (CPeaks). Those over whole points of mono and stereo give
/// the same sums as PeakKernel; `PeakLoops+Slices` has those of slices.
@safe
struct PeakLoops: @unchecked Sendable {
  /// Points to a constant.
  let loops: UnsafePointer<peak_loops>

  /// The fastest loops for this processor.
  static let best = unsafe PeakLoops(loops: peak_loops_best())

  /// All loops that this processor can run, for tests.
  static var all: [PeakLoops] {
    var all: [PeakLoops] = []
    while let loops = unsafe peak_loops_of_set(Int32(all.count)) { unsafe all.append(PeakLoops(loops: loops)) }
    return all
  }

  /// Returns the sums of 256 samples.
  func mono(_ samples: Span<Int16>) -> PointSums {
    precondition(samples.count == PeakKernel.pointFrames, "a whole point")
    var sums = peak_sums()
    unsafe samples.withUnsafeBufferPointer { samples in
      guard let first = samples.baseAddress else { return }
      unsafe loops.pointee.mono_point(&sums, first)
    }
    return PointSums(sums)
  }

  /// Returns the sums of the mix, left, and right channel of 256 interleaved frames.
  @inline(__always)
  func stereo(_ samples: Span<Int16>) -> InlineArray<3, PointSums> {
    precondition(samples.count == 2 * PeakKernel.pointFrames, "a whole point")
    var sums = (peak_sums(), peak_sums(), peak_sums())
    unsafe samples.withUnsafeBufferPointer { samples in
      guard let first = samples.baseAddress else { return }
      unsafe withUnsafeMutableBytes(of: &sums) { sums in
        guard let target = sums.baseAddress else { return }
        unsafe loops.pointee.stereo_point(target.assumingMemoryBound(to: peak_sums.self), first)
      }
    }
    return [PointSums(sums.0), PointSums(sums.1), PointSums(sums.2)]
  }
}

extension PointSums {
  @inline(__always)
  fileprivate init(_ sums: peak_sums) {
    self.init(low: sums.low, high: sums.high, squares: sums.squares, absolutes: sums.absolutes)
  }
}
