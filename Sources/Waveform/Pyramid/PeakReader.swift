// Peaks of any scale without a branch per point: branches that the processor can't predict took most of a slice's time.
//
// Pixel i covers the points e ..< f of level 0, where e = ⌊i·scale / 256⌋ is its edge and f the next pixel's. A whole
// level, scale = 256·2^n, is copied: pixel i is point i of level n, with its loudness if that is shown, too. For any
// other scale let n = ⌊scale / 256⌋ and
//
//   L = 0 if n < 16, 4 if n < 256, else 8
//
// The points of level L that the window needs are copied into a row. If L = 0, a pixel is the points e ..< f of the
// row, which are n or n + 1. Otherwise edge e lies in point p = ⌊e / 2^L⌋ of level L, in which
//
//   the points before e      belong to the pixel that ends at e
//   the points from e on     belong to the pixel that begins there
//
// and both are found in the sixteen points of level 0 that share point ⌊e / 16⌋ of level 4 with e, which are one cache
// line, and if L = 8 also in the sixteen points of level 4 in the same block. What remains of a pixel are the points of
// level L between those of its two edges: ⌊n / 2^L⌋, or one more or less. So every pixel of a window takes the same
// steps, which are those of CPeaks (folds.h).
//
// An edge needs its lower block, and the row from L = 8 the upper ones. At the window's last edge no block is needed
// that begins there: nothing of it counts. Any page takes its place.
//
// Each edge is in another line of memory, and if L = 8 in another page. Waiting for them took four fifths of the time,
// so those of the next edges are fetched ahead.

/// Reads the peaks of a window, and of a whole level any measures. PointReader.swift is the plain version.
struct PeakReader {
  /// The number of pixels that it reads: all of the window's but the recording's last one, if that is cut short.
  let pixelCount: Int
  private let layout: PyramidLayout
  private let firstPixel: Int64
  private let scale: Int64
  private let lanes: Range<Int>
  /// L, or the level to copy.
  private let level: Int
  private let isWholeLevel: Bool
  private let loops: PeakLoops

  /// nil if the window shows anything but peaks and isn't a whole level, or has a scale that no level divides well.
  init?(layout: PyramidLayout, window: WaveformWindow, loops: PeakLoops = .best) {
    scale = Int64(window.scale)
    isWholeLevel = scale.nonzeroBitCount == 1
    guard window.query.measures == .peak || isWholeLevel, window.scale >= PeakKernel.pointFrames,
      window.scale < 1 << 24
    else { return nil }
    self.layout = layout
    self.loops = loops
    lanes = window.lanes(of: layout)
    let points = scale >> 8
    level = isWholeLevel ? points.trailingZeroBitCount : points < 16 ? 0 : points < 256 ? 4 : 8
    firstPixel = window.firstPixel
    let frames = window.extent.availableFrames
    let available = window.extent.isComplete ? (frames + 255) / 256 : frames / 256
    pixelCount = max(0, min(window.pixelCount, Int(clamping: (available * 256 + 255) / scale - firstPixel)))
  }

  /// The number of points before a pixel.
  private func edge(_ pixel: Int64) -> Int64 { (pixel &* scale) >> 8 }

  /// Whether a pixel is at least a lower block long, so that each edge is in another one.
  private var hasBlockPerEdge: Bool { level == 8 && !isWholeLevel }

  // MARK: Batches

  /// Consecutive pixels and the pages that they need. Lower blocks are consecutive, or the edges' if there is one per
  /// edge.
  struct Batch {
    let pixels: Range<Int64>
    let pages: PageNumbers
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
    let (first, last) = (edge(pixels.lowerBound), edge(pixels.upperBound) - 1)
    let upper = level < PyramidLayout.levelsPerBlock ? 0..<0 : first >> 16..<(last >> 16) + 1
    var (frame, step, lowerCount) = (first * Int64(PeakKernel.pointFrames), PyramidLayout.blockFrames, 0)
    if hasBlockPerEdge {
      (frame, step) = (pixels.lowerBound * scale, scale)
      lowerCount = pixels.count + ((last + 1) & 255 != 0 ? 1 : 0)
    } else if level < PyramidLayout.levelsPerBlock {
      lowerCount = Int(last >> 8 - first >> 8) + 1
    }
    let pages = PageNumbers(
      layout: layout, lanes: lanes, firstFrame: frame, step: step, lowerCount: lowerCount, upper: upper)
    return Batch(pixels: pixels, pages: pages)
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

  /// Appends the loudness of a batch's pixels, if the window shows it. Copies whole levels.
  func readLoudness(_ batch: Batch, _ pages: Span<PagePoints?>, into slice: inout WaveformSlice) {
    guard slice.window.query.measures != .peak else { return }
    forEachRun(of: batch) { block, words in
      for word in words {
        for lane in 0..<lanes.count { slice.append(points(pages, lane, block).loudness(word)) }
      }
    }
  }

  private func copy(
    _ batch: Batch, _ pages: Span<PagePoints?>, _ lane: Int, into data: inout MutableRawSpan, at start: Int
  ) {
    var place = start
    forEachRun(of: batch) { block, words in
      PeakLoops.copy(points(pages, lane, block), words, to: &data, at: place, step: lanes.count)
      place += 4 * lanes.count * words.count
    }
  }

  /// Calls `body` with the place in the batch of each block of a whole level, and the words of its pixels there.
  @inline(__always)
  private func forEachRun(of batch: Batch, _ body: (Int, Range<Int>) -> Void) {
    let perPage = Int64(256 >> (level & 7))
    let firstBlock = level < PyramidLayout.levelsPerBlock ? batch.pages.firstLower : batch.pages.upper.lowerBound
    var pixel = batch.pixels.lowerBound
    while pixel < batch.pixels.upperBound {
      let block = PyramidLayout.block(level: level, point: pixel)
      let count = Int(min((block + 1) * perPage, batch.pixels.upperBound) - pixel)
      let word = PyramidLayout.word(level: level, point: pixel)
      body(Int(block - firstBlock), word..<word + count)
      pixel += Int64(count)
    }
  }

  private func fold(
    _ batch: Batch, _ pages: Span<PagePoints?>, _ lane: Int, into data: inout MutableRawSpan, at start: Int
  ) {
    let lower = pages.extracting(..<(batch.pages.lowerCount * lanes.count))
    let upper = pages.extracting((batch.pages.lowerCount * lanes.count)...)
    let isLower = level < PyramidLayout.levelsPerBlock
    let row = PointRow(
      of: isLower ? lower : upper, lane: lane, lanes: lanes.count, level: level,
      firstBlock: isLower ? batch.pages.firstLower : batch.pages.upper.lowerBound)
    loops.fold(
      batch.pixels, scale: scale, row, edges: lower, lane: lane, firstBlock: batch.pages.firstLower, to: &data,
      at: start, step: lanes.count)
  }

  /// Returns the points of a lane's page. `block`: its place in the batch.
  private func points(_ pages: Span<PagePoints?>, _ lane: Int, _ block: Int) -> PagePoints {
    guard let points = pages[block &* lanes.count &+ lane] else { preconditionFailure("a page is missing") }
    return points
  }
}
