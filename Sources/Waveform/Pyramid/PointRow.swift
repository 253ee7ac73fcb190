/// The peaks of consecutive points of one level and lane, copied from their pages.
struct PointRow {
  /// The level of the points.
  let level: Int
  /// The number of the first point.
  let first: Int64
  /// The points, and others that the loops may read but that don't count.
  let points: [PointPeaks]

  /// What the loops may read after the last point.
  private static let padding = 16

  /// Copies a level's points from the pages of consecutive blocks, which begin with block `firstBlock` of their group.
  init(of pages: [PagePoints], level: Int, firstBlock: Int64) {
    let perBlock = 256 >> (level & 7)
    self.level = level
    first = firstBlock * Int64(perBlock)
    let word = PyramidLayout.word(level: level, point: 0)
    var points: [PointPeaks] = []
    points.reserveCapacity(pages.count * perBlock + Self.padding)
    for page in pages { page.append(word..<word + perBlock, to: &points) }
    points.append(contentsOf: repeatElement(PointPeaks(word: 0), count: Self.padding))
    self.points = points
  }

  /// The number after the last point's.
  var end: Int64 { first + Int64(points.count - Self.padding) }
}
