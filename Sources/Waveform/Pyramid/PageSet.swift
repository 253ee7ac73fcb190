/// The pages needed for a slice, in memory as long as the set exists.
struct PageSet {
  /// What owns the pages: parts of a table, and pages that were read just now.
  private var chunks: [PageChunk] = []
  private var pages: [PyramidPage] = []
  private var points: [PagePoints?] = []
  private let count: Int
  /// The number of missing pages.
  private(set) var missingCount = 0

  /// Creates an empty set for `count` pages.
  init(of count: Int) {
    self.count = count
    points.reserveCapacity(count)
  }

  /// Appends pages of a chunk that the set already owns, and missing ones. `write` returns how many are missing.
  mutating func append(_ write: (inout OutputSpan<PagePoints?>) -> Int) {
    points.append(addingCapacity: count - points.count) { missingCount += write(&$0) }
  }

  /// Makes the set an owner of a chunk's pages.
  mutating func own(_ chunk: PageChunk) { chunks.append(chunk) }

  /// Whether a page is missing.
  func isMissing(_ index: Int) -> Bool { points[index] == nil }

  /// Fills a gap.
  mutating func fill(_ index: Int, with page: PyramidPage) {
    if isMissing(index) { missingCount -= 1 }
    pages.append(page)
    points[index] = page.points
  }

  /// Calls `body` with the points of all pages. None may be missing.
  func read<Result>(_ body: (Span<PagePoints?>) -> Result) -> Result {
    precondition(missingCount == 0, "all pages are there")
    return withExtendedLifetime((chunks, pages)) { body(points.span) }
  }
}
