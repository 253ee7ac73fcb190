import CPeaks

/// The loops of slices.
extension PeakLoops {
  /// Copies points as pixels to `data`, from byte `start` on: each one's minimum and maximum as `Int16`, `step` pixels
  /// apart.
  static func copy(
    _ points: PagePoints, _ range: Range<Int>, to data: inout MutableRawSpan, at start: Int, step: Int
  ) {
    check(data, start, count: range.count, step)
    unsafe points.withPeaks(range) { points in
      guard let first = points.baseAddress else { return }
      unsafe data.withUnsafeMutableBytes { data in
        unsafe peak_copy(
          Self.pixels(data, start), step, UnsafeRawPointer(first).assumingMemoryBound(to: UInt32.self), points.count)
      }
    }
  }

  /// Folds points into pixels (PeakReader.swift says how) and writes them like `copy`.
  ///
  /// `edges`: all lanes' pages of the lower blocks in which the pixels begin and end, in the order of the edges if the
  /// row's level is 8, and otherwise consecutive from `firstBlock` on. Not used for level 0.
  func fold(
    _ pixels: Range<Int64>, scale: Int64, _ row: PointRow, edges: Span<PagePoints?>, lane: Int, firstBlock: Int64,
    to data: inout MutableRawSpan, at start: Int, step: Int
  ) {
    Self.check(data, start, count: pixels.count, step)
    let level = Int64(row.level)
    precondition(
      row.first <= (pixels.lowerBound * scale) >> (8 + level) && (pixels.upperBound * scale) >> (8 + level) <= row.end
        && scale >> (8 + level) > 0 && (level == 0 || edges.count > 0),
      "the points are those of the pixels")
    unsafe row.points.withUnsafeBufferPointer { points in
      unsafe edges.withAddresses(ofLane: lane) { blocks in
        unsafe data.withUnsafeMutableBytes { data in
          guard let first = points.baseAddress else { return }
          var fold = unsafe peak_fold(
            first_pixel: pixels.lowerBound, count: pixels.count, scale: scale, level: Int32(row.level), row: first,
            row_first: row.first, blocks: blocks, block_step: step, first_block: firstBlock,
            block_count: edges.count / step, pixels: Self.pixels(data, start), step: step)
          unsafe loops.pointee.fold(&fold)
        }
      }
    }
  }

  /// Folds samples of one lane into pixels of `scale` samples and writes them like `copy`. The last pixel may be cut
  /// short.
  func fold(
    _ samples: Span<Int16>, scale: Int, to data: inout MutableRawSpan, at start: Int, step: Int
  ) {
    Self.check(data, start, count: (samples.count + scale - 1) / scale, step)
    unsafe samples.withUnsafeBufferPointer { samples in
      guard let first = samples.baseAddress else { return }
      unsafe data.withUnsafeMutableBytes { data in
        unsafe loops.pointee.sample_pixels(Self.pixels(data, start), step, first, samples.count, scale)
      }
    }
  }

  /// Extracts a lane of interleaved stereo frames into the beginning of `lane`: the mix, or one channel.
  func extract(_ channel: Int?, ofStereo frames: Span<Int16>, to lane: inout MutableSpan<Int16>) {
    let count = frames.count / 2
    precondition(count <= lane.count, "the lane has room")
    unsafe frames.withUnsafeBufferPointer { frames in
      unsafe lane.withUnsafeMutableBufferPointer { lane in
        guard let from = frames.baseAddress, let to = lane.baseAddress else { return }
        unsafe loops.pointee.stereo_lane(to, from, count, channel.map { Int32($0 + 1) } ?? 0)
      }
    }
  }

  private static func pixels(_ data: UnsafeMutableRawBufferPointer, _ start: Int) -> UnsafeMutablePointer<UInt32> {
    guard let first = data.baseAddress else { preconditionFailure("pixels have memory") }
    return unsafe (first + start).assumingMemoryBound(to: UInt32.self)
  }

  private static func check(_ data: borrowing MutableRawSpan, _ start: Int, count: Int, _ step: Int) {
    precondition(
      start >= 0 && start & 3 == 0 && step > 0
        && (count == 0 || start + 4 * ((count - 1) * step + 1) <= data.byteCount),
      "the pixels have room")
  }
}
