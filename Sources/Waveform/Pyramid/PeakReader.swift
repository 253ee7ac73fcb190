// Peaks of any scale without a branch per point: branches that the processor can't predict took most of a slice's time.
//
// Pixel i covers the points e ..< f of level 0, where e = ⌊i·scale / 256⌋ is its edge and f the next pixel's. A whole
// level, scale = 256·2^n, is copied: pixel i is point i of level n. For any other scale let L be even, with
//
//   2^L ≤ ⌊scale / 256⌋ < 4·2^L
//
// Points are compared in fours: the four points of level k (k = 0, 2, 4 … L) with the same parent two levels up. Edge e
// is in the four of point p = ⌊e / 2^k⌋, of which r = p mod 4 points come before p. At levels below L,
//
//   the r points before p      belong to the pixel that ends at e
//   the points after p         belong to the pixel that begins there; at level 0, so does p itself
//
// and p is divided at the level below. Together these are the points between e and the ends of its point of level L.
// What remains of a pixel are the points of level L between those of its two edges. There are at most 3, so they are in
// the fours of the two edges, which are neighbors or the same.
//
// Points that don't count are replaced by the largest number before the minimum is taken (PointPeaks), so every pixel
// costs the same L/2 + 1 fours. A point may be compared twice.
//
// An edge needs its lower block, and from L = 8 its upper one. At the window's last edge no block is needed that begins
// there: all its points would be replaced. Any page takes its place.
//
// From L = 8 each edge is in another page, and reading memory takes much of the time. So the points of levels 0 to 3
// are found in the sixteen points of level 0 around the edge, which are one cache line.
//
// Measured: a quarter to a third of the plain version's time, which is then that of reading memory.

/// Reads the peaks of a window. PointReader.swift is the plain version.
struct PeakReader {
  /// The number of pixels that it reads: all of the window's but the recording's last one, if that is cut short.
  let pixelCount: Int
  private let layout: PyramidLayout
  private let firstPixel: Int64
  fileprivate let scale: Int64
  fileprivate let lanes: Range<Int>
  /// L, or the level to copy.
  private let level: Int
  private let isWholeLevel: Bool
  /// Whether a pixel is at least a lower block long, so that each edge is in another one.
  private let hasBlockPerEdge: Bool

  /// nil if the window shows anything but peaks, or at a scale that no level divides well.
  init?(layout: PyramidLayout, window: WaveformWindow) {
    guard window.query.measures == .peak, window.scale >= PeakKernel.pointFrames, window.scale < 1 << 24 else {
      return nil
    }
    let points = Int64(window.scale / PeakKernel.pointFrames)
    let log = 63 - points.leadingZeroBitCount
    self.layout = layout
    lanes = window.lanes(of: layout)
    scale = Int64(window.scale)
    isWholeLevel = scale == 256 << Int64(log)
    level = isWholeLevel ? log : log & ~1
    hasBlockPerEdge = level >= PyramidLayout.levelsPerBlock && !isWholeLevel
    firstPixel = window.firstPixel
    let frames = window.extent.availableFrames
    let available = window.extent.isComplete ? (frames + 255) / 256 : frames / 256
    pixelCount = max(0, min(window.pixelCount, Int(clamping: (available * 256 + 255) / scale - firstPixel)))
  }

  /// The number of points before a pixel.
  private func edge(_ pixel: Int64) -> Int64 { (pixel &* scale) >> 8 }

  // MARK: Batches

  /// Consecutive pixels and the pages that they need: all lanes of each block, lower blocks first.
  struct Batch {
    fileprivate(set) var pixels: Range<Int64>
    fileprivate(set) var pages: [Int64] = []
    /// The blocks of the pages. Lower blocks are consecutive, or the edges' if there is one per edge.
    fileprivate var firstLower: Int64 = 0
    fileprivate var lowerCount = 0
    fileprivate var firstUpper: Int64 = 0
    fileprivate var upperCount = 0

    /// Returns the place of a lower block, or of the last one if it isn't needed.
    @inline(__always)
    fileprivate func lower(_ block: Int64) -> Int { min(Int(truncatingIfNeeded: block &- firstLower), lowerCount &- 1) }

    @inline(__always)
    fileprivate func lower(ofEdge number: Int) -> Int { min(number, lowerCount &- 1) }

    @inline(__always)
    fileprivate func upper(_ block: Int64) -> Int {
      lowerCount &+ min(Int(truncatingIfNeeded: block &- firstUpper), upperCount &- 1)
    }
  }

  func forEachBatch(_ body: (Batch) throws(WaveformError) -> Void) throws(WaveformError) {
    let pixelsPerBatch = Int64(PointReader.blocksPerBatch(lanes: lanes.count)) * max(1, 256 * 255 / scale)
    var pixel = firstPixel
    let end = firstPixel + Int64(pixelCount)
    while pixel < end {
      let last = min(pixel + pixelsPerBatch, end)
      try body(batch(pixel..<last))
      pixel = last
    }
  }

  private func batch(_ pixels: Range<Int64>) -> Batch {
    var batch = Batch(pixels: pixels)
    let (first, last) = (edge(pixels.lowerBound), edge(pixels.upperBound) - 1)
    var lower: [Int64] = []
    if hasBlockPerEdge {
      lower.reserveCapacity(pixels.count + 1)
      for pixel in pixels { lower.append(edge(pixel) >> 8) }
      if (last + 1) & 255 != 0 { lower.append((last + 1) >> 8) }
    } else if level < PyramidLayout.levelsPerBlock {
      batch.firstLower = first >> 8
      lower = Array(first >> 8...last >> 8)
    }
    batch.lowerCount = lower.count
    var upper = 0..<Int64(0)
    if level >= PyramidLayout.levelsPerBlock {
      upper = first >> 16..<(last >> 16) + 1
      (batch.firstUpper, batch.upperCount) = (upper.lowerBound, upper.count)
    }
    batch.pages.reserveCapacity((lower.count + upper.count) * lanes.count)
    for block in lower { add(layout.page(upper: false, block: block), to: &batch.pages) }
    for block in upper { add(layout.page(upper: true, block: block), to: &batch.pages) }
    return batch
  }

  private func add(_ first: Int64, to pages: inout [Int64]) {
    for lane in lanes { pages.append(first + Int64(lane)) }
  }

  // MARK: Pixels

  /// Writes a batch's pixels to `data`, from byte `start` on: the minimum and maximum of each lane of each pixel, as
  /// `Int16`. `pages` are the batch's pages.
  func read(_ batch: Batch, _ pages: Span<PagePoints?>, into data: inout MutableRawSpan, at start: Int) {
    for lane in 0..<lanes.count {
      if isWholeLevel {
        copy(batch, pages, lane, into: &data, at: start + 4 * lane)
      } else {
        fold(batch, pages, lane, into: &data, at: start + 4 * lane)
      }
    }
  }

  private func copy(
    _ batch: Batch, _ pages: Span<PagePoints?>, _ lane: Int, into data: inout MutableRawSpan, at start: Int
  ) {
    let perPage = Int64(256 >> (level & 7))
    let step = 4 * lanes.count
    var (pixel, place) = (batch.pixels.lowerBound, start)
    while pixel < batch.pixels.upperBound {
      let end = min((pixel / perPage + 1) * perPage, batch.pixels.upperBound)
      let block = PyramidLayout.block(level: level, point: pixel)
      let number = level < PyramidLayout.levelsPerBlock ? batch.lower(block) : batch.upper(block)
      guard let points = pages[number * lanes.count + lane] else { preconditionFailure("a page is missing") }
      let word = PyramidLayout.word(level: level, point: pixel)
      for offset in 0..<Int(end - pixel) {
        data.storeBytes(of: points.peaks(word &+ offset).extremes, toByteOffset: place, as: UInt32.self)
        place &+= step
      }
      pixel = end
    }
  }

  /// A copy of the loop for each level, so that all shifts are constants.
  private func fold(
    _ batch: Batch, _ pages: Span<PagePoints?>, _ lane: Int, into data: inout MutableRawSpan, at start: Int
  ) {
    switch level {
    case 0: PeakFold<0>(self, batch, lane).run(pages, into: &data, at: start)
    case 2: PeakFold<2>(self, batch, lane).run(pages, into: &data, at: start)
    case 4: PeakFold<4>(self, batch, lane).run(pages, into: &data, at: start)
    case 6: PeakFold<6>(self, batch, lane).run(pages, into: &data, at: start)
    case 8: PeakFold<8>(self, batch, lane).run(pages, into: &data, at: start)
    case 10: PeakFold<10>(self, batch, lane).run(pages, into: &data, at: start)
    case 12: PeakFold<12>(self, batch, lane).run(pages, into: &data, at: start)
    default: PeakFold<14>(self, batch, lane).run(pages, into: &data, at: start)
    }
  }
}

/// Folds one lane of a batch into pixels. `level` is L.
private struct PeakFold<let level: Int> {
  private let firstPixel: Int64
  private let count: Int
  private let scale: Int64
  private let lanes: Int
  private let lane: Int
  private let batch: PeakReader.Batch

  init(_ reader: PeakReader, _ batch: PeakReader.Batch, _ lane: Int) {
    (firstPixel, count) = (batch.pixels.lowerBound, batch.pixels.count)
    (scale, lanes) = (reader.scale, reader.lanes.count)
    (self.batch, self.lane) = (batch, lane)
  }

  @inline(never)
  func run(_ pages: Span<PagePoints?>, into data: inout MutableRawSpan, at start: Int) {
    let table = FourMasks.all
    let masks = table.span
    var place = start
    var left = edge(0, pages, masks)
    for number in 1...count {
      let right = edge(number, pages, masks)
      let peaks = PointPeaks(left.peaks(to: right, level: level, masks))
      data.storeBytes(of: peaks.extremes, toByteOffset: place, as: UInt32.self)
      place &+= 4 &* lanes
      left = right
    }
  }

  /// Returns the points of a lane's page. `block`: its place in the batch.
  @inline(__always)
  private func points(_ pages: Span<PagePoints?>, _ block: Int) -> PagePoints {
    guard let points = pages[block &* lanes &+ lane] else { preconditionFailure("a page is missing") }
    return points
  }

  /// `number`: the edge's number in the batch.
  @inline(__always)
  private func edge(_ number: Int, _ pages: Span<PagePoints?>, _ masks: Span<FourPeaks>) -> Edge {
    let perBlock = PyramidLayout.levelsPerBlock
    let point = ((firstPixel &+ Int64(number)) &* scale) >> 8
    let lower = points(pages, level < perBlock ? batch.lower(point >> 8) : batch.lower(ofEdge: number))
    let upper = level < perBlock ? lower : points(pages, batch.upper(point >> 16))
    var (before, after) = (FourMasks.nothing, FourMasks.nothing)
    var below = 0
    if level >= perBlock {
      let (first, rank) = (Int(truncatingIfNeeded: point) & 0xf0, Int(truncatingIfNeeded: point) & 15)
      for part in 0..<4 {
        let four = lower.fourPeaks(first &+ 4 &* part)
        before = pointwiseMin(before, FourMasks.first(rank &- 4 &* part, of: four, masks))
        after = pointwiseMin(after, FourMasks.from(rank &- 4 &* part, of: four, masks))
      }
      below = 4
    }
    while below < level {
      let four = (below < perBlock ? lower : upper).four(level: below, point: point >> Int64(below))
      let rank = Int(truncatingIfNeeded: point >> Int64(below)) & 3
      before = pointwiseMin(before, FourMasks.first(rank, of: four, masks))
      after = pointwiseMin(after, FourMasks.from(below == 0 ? rank : rank &+ 1, of: four, masks))
      below &+= 2
    }
    let place = point >> Int64(level)
    let top = (level < perBlock ? lower : upper).four(level: level, point: place)
    return Edge(before: before, after: after, top: top, place: place)
  }
}

/// The points around an edge between two pixels.
private struct Edge {
  /// Those below level L, before and after the edge.
  let before: FourPeaks
  let after: FourPeaks
  /// The four of level L that contains the edge's point, and that point's number.
  let top: FourPeaks
  let place: Int64

  /// Returns the peaks of the pixel from this edge to the next one.
  @inline(__always)
  func peaks(to next: Edge, level: Int, _ masks: Span<FourPeaks>) -> FourPeaks {
    let first = Int(truncatingIfNeeded: place) & 3 + (level == 0 ? 0 : 1)
    let end = Int(truncatingIfNeeded: next.place) & 3
    let isSameFour = place >> 2 == next.place >> 2
    let ours = FourMasks.first(isSameFour ? end : 4, of: FourMasks.from(first, of: top, masks), masks)
    let theirs = FourMasks.from(isSameFour ? first : 0, of: FourMasks.first(end, of: next.top, masks), masks)
    return pointwiseMin(pointwiseMin(after, next.before), pointwiseMin(ours, theirs))
  }
}

/// Replaces some points of a four by the largest number.
private enum FourMasks {
  @inline(__always)
  static var nothing: FourPeaks { FourPeaks(repeating: .max) }

  /// Those that keep the first −12 … 19 points of four, then those that replace as many. In memory, because computing
  /// one takes as long as the rest of a level.
  static let all: [FourPeaks] = {
    let ranks = FourPeaks(0, 0, 1, 1, 2, 2, 3, 3)
    let counts = Int16(-12)..<20
    return counts.map { nothing.replacing(with: .min, where: ranks .< $0) }
      + counts.map { nothing.replacing(with: .min, where: ranks .>= $0) }
  }()

  /// Returns only the first `count` points.
  @inline(__always)
  static func first(_ count: Int, of four: FourPeaks, _ masks: Span<FourPeaks>) -> FourPeaks {
    pointwiseMax(four, masks[12 &+ count])
  }

  /// Returns only the points from number `rank` on.
  @inline(__always)
  static func from(_ rank: Int, of four: FourPeaks, _ masks: Span<FourPeaks>) -> FourPeaks {
    pointwiseMax(four, masks[44 &+ rank])
  }
}

extension PagePoints {
  /// Returns the peaks of the four points of a level that contain this one. The level's number is even.
  @inline(__always)
  fileprivate func four(level: Int, point: Int64) -> FourPeaks {
    fourPeaks(PyramidLayout.word(level: level, point: point) & ~3)
  }
}
