// Pixels of any scale, computed from points at powers of two.
//
// A pixel consists of points a ..< b of level 0. Its dyadic cover is found bottom-up. If a is odd, point a of this
// level is taken and a increases; if b is odd, point b − 1 is taken and b decreases. Then both are halved for the next
// level. So at most two points per level are taken. If b is the end of the whole recording, it is rounded up instead,
// because the next level has a partial point for it.
//
// Peaks of peaks are exact. RMS and average are weighted by the points' actual frames:
//   rms = √(Σ fᵢ·rᵢ² / Σ fᵢ),  average = Σ fᵢ·aᵢ / Σ fᵢ
//
// Levels 0 … 7 are in lower blocks, 8 … 15 in upper ones. Within each group's levels, the left edge of a cover takes
// points only from the block in which it begins, and none if it begins at a block's start; the same holds for the right
// edge and the block in which it ends. A pixel has at most 65536 points, which is 256 lower blocks or one upper one. So
// it reads at most two pages per group and lane.

/// Reads any measures of a window. The reference for `PeakReader`, which reads only peaks.
struct PointReader {
  private let layout: PyramidLayout
  private let window: WaveformWindow
  /// Number of existing points of level 0, including the partial one, which exists only in a complete recording.
  private let points: Int64
  private let frames: Int64
  private let lanes: Range<Int>

  init(layout: PyramidLayout, window: WaveformWindow) {
    self.layout = layout
    self.window = window
    frames = window.extent.availableFrames
    points = window.extent.isComplete ? (frames + 255) / 256 : frames / 256
    lanes = window.lanes(of: layout)
  }

  // MARK: Batches

  /// Consecutive pixels and the blocks that they need.
  struct Batch {
    fileprivate(set) var pixels: Range<Int64>
    fileprivate var lower: [Int64] = []
    fileprivate var upper: [Int64] = []
    /// The pages of these blocks: all lanes of each block, lower blocks first.
    fileprivate(set) var pages: [Int64] = []
  }

  /// Maximum number of pages in a batch, 2 MB: a slice may need many more than fit into memory at once. A single pixel
  /// may need more if there are many lanes.
  private static let batchPages = 512

  /// Returns the maximum number of blocks in a batch.
  static func blocksPerBatch(lanes: Int) -> Int { max(batchPages / lanes, 4) }

  func forEachBatch(_ body: (Batch) throws(WaveformError) -> Void) throws(WaveformError) {
    var pixel = window.firstPixel
    let end = pixel + Int64(window.pixelCount)
    while pixel < end {
      let batch = batch(pixel..<end)
      try body(batch)
      pixel = batch.pixels.upperBound
    }
  }

  /// Returns a batch with as many of the first pixels as fit.
  private func batch(_ pixels: Range<Int64>) -> Batch {
    var batch = Batch(pixels: pixels)
    let limit = Self.blocksPerBatch(lanes: lanes.count)
    for pixel in pixels {
      let cover = Blocks(range(of: pixel), atEnd: isAtEnd(range(of: pixel)))
      // A pixel adds at most four blocks.
      guard batch.lower.count + batch.upper.count + 4 <= limit || pixel == pixels.lowerBound else {
        batch.pixels = pixels.lowerBound..<pixel
        break
      }
      Self.add(cover.lower, to: &batch.lower)
      Self.add(cover.upper, to: &batch.upper)
    }
    batch.pages.reserveCapacity((batch.lower.count + batch.upper.count) * lanes.count)
    for block in batch.lower { request(block, upper: false, from: &batch) }
    for block in batch.upper { request(block, upper: true, from: &batch) }
    return batch
  }

  /// Blocks come in ascending order, also from pixel to pixel.
  private static func add(_ edges: Blocks.Edges, to blocks: inout [Int64]) {
    if let left = edges.left, blocks.last != left { blocks.append(left) }
    if let right = edges.right, blocks.last != right { blocks.append(right) }
  }

  private func request(_ block: Int64, upper: Bool, from batch: inout Batch) {
    let first = layout.page(upper: upper, block: block)
    for lane in lanes { batch.pages.append(first + Int64(lane)) }
  }

  /// The points of level 0 that form a pixel.
  private func range(of pixel: Int64) -> Range<Int64> {
    let scale = Int64(window.scale)
    return pixel * scale / 256..<min((pixel + 1) * scale / 256, points)
  }

  private func isAtEnd(_ range: Range<Int64>) -> Bool { window.extent.isComplete && range.upperBound == points }

  // MARK: Pixels

  /// Appends a batch's pixels. `pages` are its pages.
  func read(_ batch: Batch, _ pages: Span<PagePoints?>, into slice: inout WaveformSlice) {
    var slots = Slots(batch, lanes: lanes.count)
    for pixel in batch.pixels {
      let range = range(of: pixel)
      let isAtEnd = isAtEnd(range)
      slots.move(to: Blocks(range, atEnd: isAtEnd))
      for lane in 0..<lanes.count { slice.append(self.pixel(pages, slots, range, lane: lane, isAtEnd: isAtEnd)) }
    }
  }

  private func pixel(
    _ pages: Span<PagePoints?>, _ slots: Slots, _ range: Range<Int64>, lane: Int, isAtEnd: Bool
  ) -> WaveformPoint {
    if range.count == 1 { return point(pages, slots, 0, range.lowerBound, lane) }
    if range.count.nonzeroBitCount == 1, !isAtEnd {
      // The cover of a whole point is that point.
      let level = range.count.trailingZeroBitCount
      if level < PyramidLayout.levels, range.lowerBound & (Int64(range.count) - 1) == 0 {
        return point(pages, slots, level, range.lowerBound >> Int64(level), lane)
      }
    }
    var cover = Cover()
    var (low, high, level) = (range.lowerBound, range.upperBound, 0)
    while low < high {
      if level == PyramidLayout.levels - 1 {
        for index in low..<high { take(pages, slots, level, index, lane, into: &cover) }
        break
      }
      if low & 1 == 1 {
        take(pages, slots, level, low, lane, into: &cover)
        low += 1
      }
      if high & 1 == 1 {
        if isAtEnd {
          high += 1
        } else if low < high {
          high -= 1
          take(pages, slots, level, high, lane, into: &cover)
        }
      }
      (low, high, level) = (low >> 1, high >> 1, level + 1)
    }
    return cover.point
  }

  @inline(__always)
  private func take(
    _ pages: Span<PagePoints?>, _ slots: Slots, _ level: Int, _ index: Int64, _ lane: Int, into cover: inout Cover
  ) {
    let length = Int64(PeakKernel.pointFrames) << Int64(level)
    cover.add(point(pages, slots, level, index, lane), frames: min(length, frames - index * length))
  }

  @inline(__always)
  private func point(_ pages: Span<PagePoints?>, _ slots: Slots, _ level: Int, _ index: Int64, _ lane: Int)
    -> WaveformPoint
  {
    let page = slots.page(level: level, block: PyramidLayout.block(level: level, point: index)) + lane
    guard let points = pages[page] else { preconditionFailure("a page of the batch is missing") }
    return points[PyramidLayout.word(level: level, point: index)]
  }
}

extension WaveformWindow {
  /// The lanes of the file that the window shows.
  func lanes(of layout: PyramidLayout) -> Range<Int> {
    switch query.channels {
    case .mix: 0..<1
    case .split: layout.channels == 1 ? 0..<1 : 1..<layout.lanes
    case .channel(let channel): layout.channels == 1 ? 0..<1 : channel + 1..<channel + 2
    }
  }
}

/// The blocks that a pixel needs.
private struct Blocks {
  /// The blocks in which the cover begins and ends; nil if no points are taken there.
  struct Edges {
    var left: Int64?
    var right: Int64?
  }

  var lower = Edges()
  var upper = Edges()

  init(_ range: Range<Int64>, atEnd: Bool) {
    let (first, last) = (range.lowerBound, range.upperBound)
    if last - first == 1 {
      lower.left = first >> 8
      return
    }
    if first & 255 != 0 { lower.left = first >> 8 }
    if last & 255 != 0, !atEnd { lower.right = last >> 8 }
    let (low, high) = ((first + 255) >> 8, atEnd ? (last + 255) >> 8 : last >> 8)
    if low < high {
      upper.left = low >> 8
      upper.right = (high - 1) >> 8
    }
  }
}

/// Maps a batch's blocks to its pages, for one pixel after the other.
private struct Slots {
  private let lanes: Int
  private let lower: [Int64]
  private let upper: [Int64]
  private var lowerSlot = 0
  private var upperSlot = 0

  init(_ batch: PointReader.Batch, lanes: Int) {
    (lower, upper) = (batch.lower, batch.upper)
    self.lanes = lanes
  }

  mutating func move(to blocks: Blocks) {
    if let first = blocks.lower.left ?? blocks.lower.right { while lower[lowerSlot] < first { lowerSlot += 1 } }
    if let first = blocks.upper.left { while upper[upperSlot] < first { upperSlot += 1 } }
  }

  /// The page of a block's first lane. The block must be the pixel's left one or the one right after it.
  @inline(__always)
  func page(level: Int, block: Int64) -> Int {
    if level < PyramidLayout.levelsPerBlock {
      return (lower[lowerSlot] == block ? lowerSlot : lowerSlot + 1) * lanes
    }
    return (lower.count + (upper[upperSlot] == block ? upperSlot : upperSlot + 1)) * lanes
  }
}

/// Accumulates the points of a pixel.
private struct Cover {
  private var low = Int16.max
  private var high = Int16.min
  private var frames = 0.0
  private var squares = 0.0
  private var absolutes = 0.0

  @inline(__always)
  mutating func add(_ point: WaveformPoint, frames count: Int64) {
    low = min(low, point.minimum)
    high = max(high, point.maximum)
    let (weight, rms) = (Double(count), Double(point.rms))
    frames += weight
    squares += weight * rms * rms
    absolutes += weight * Double(point.average)
  }

  var point: WaveformPoint {
    WaveformPoint(
      minimum: low, maximum: high, rms: UInt16((squares / frames).squareRoot() + 0.5),
      average: UInt16(absolutes / frames + 0.5))
  }
}
