// Which bytes of a growing pyramid a copy on another machine fetches. PyramidLayout.swift describes the file.
//
// A copy has whole lower blocks only, from the first on, until the file is finished. To go on from `mirrored` frames to
// more, it fetches
//
//   1. the upper block that covers the next lower block, unless it comes first in 2: it has changed since;
//   2. the next lower blocks, up to a few megabytes, and the upper blocks between them.
//
// The writer reports frames as ready when all of their points are in the file, and its upper blocks then have them too.
// Once the header says that the file is finished, its last blocks follow, which aren't whole.
//
// All lower blocks of a plan are final, so their checksums prove that they are what was written. An upper block that
// isn't full has no checksum yet. What the copy has of it already must be there again, because that never changes.

/// A step by which a copy of a growing pyramid grows.
struct MirrorPlan: Equatable, Sendable {
  /// The bytes of the file that say what it is and whether it is finished. The others of its first page are zeros.
  static let headerBytes: Range<Int64> = 0..<48
  /// The size of a step, unless a block is larger: fetched in one answer, and held in memory meanwhile.
  private static let stepBytes: Int64 = 2 << 20

  /// The number of frames that the copy has before.
  let mirrored: Int64
  /// The number of frames that the copy has afterward.
  let frames: Int64
  /// Whether the copy is finished afterward.
  let isLast: Bool
  /// The bytes to fetch, in whole pages.
  let ranges: [Range<Int64>]

  /// Plans the next step. `mirrored` is a multiple of a block's frames. `ready` frames have been reported by the
  /// writer; `total` is the length of the recording according to the header, if the file is finished.
  init(_ layout: PyramidLayout, mirrored: Int64, ready: Int64, total: Int64?) {
    let blockFrames = PyramidLayout.blockFrames
    let first = mirrored / blockFrames
    let all =
      total.map { ($0 + blockFrames - 1) / blockFrames }
      ?? min(max(ready, mirrored), PyramidLayout.frameLimit) / blockFrames
    let limit = max(1, Self.stepBytes / (Int64(layout.lanes) * PyramidLayout.pageBytes))
    let end = min(all, first + limit)
    self.mirrored = mirrored
    isLast = total != nil && end == all
    frames = isLast ? total ?? 0 : end * blockFrames
    ranges = end > 0 && (end > first || isLast) ? Self.ranges(layout, first, end) : []
  }

  /// Whether there is nothing to do.
  var isEmpty: Bool { ranges.isEmpty && !isLast }

  /// The number of points of level 0 that the copy has afterward, for `PyramidLayout.isFinal`.
  var points: Int64 { isLast ? .max : frames / 256 }

  /// Returns the bytes of lower blocks and of the upper blocks that cover them. If there are no lower blocks, those of
  /// the last upper block, whose last points are made when the file is finished.
  private static func ranges(_ layout: PyramidLayout, _ first: Int64, _ end: Int64) -> [Range<Int64>] {
    let lanes = Int64(layout.lanes)
    let group = first < end ? first / 256 : (end - 1) / 256
    let upper = layout.page(upper: true, block: group)
    let stop = layout.page(upper: false, block: end - 1) + lanes
    let pages: [Range<Int64>]
    if first == end {
      pages = [upper..<upper + lanes]
    } else if first % 256 == 0 {
      pages = [upper..<stop]
    } else {
      pages = [upper..<upper + lanes, layout.page(upper: false, block: first)..<stop]
    }
    return pages.map { $0.lowerBound * PyramidLayout.pageBytes..<$0.upperBound * PyramidLayout.pageBytes }
  }
}

extension PyramidLayout {
  /// The words of a page whose points are valid once this many frames are ready, which end with a whole lower block.
  /// Only for pages of upper blocks.
  func validWords(upperPage page: Int64, frames: Int64) -> [Range<Int>] {
    let block = (page - 1) / Int64(lanes) / 257
    return (0..<Self.levelsPerBlock).compactMap { level in
      let (first, capacity) = (block << Int64(8 - level), Int64(256 >> level))
      let count = min((frames / Self.blockFrames) >> Int64(level) - first, capacity)
      let start = 512 - (512 >> level)
      return count > 0 ? start..<start + Int(count) : nil
    }
  }

  /// Whether a page belongs to an upper block.
  func isUpper(page: Int64) -> Bool { (page - 1) / Int64(lanes) % 257 == 0 }
}
