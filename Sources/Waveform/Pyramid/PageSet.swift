/// The pages needed for a slice, in memory as long as the set exists.
struct PageSet {
  /// What owns the pages: a table's directory, and pages that were read just now.
  private let directory: PageDirectory
  private var pages: [PyramidPage] = []
  private var points: [PagePoints?]
  /// The number of missing pages.
  private(set) var missingCount = 0

  /// Creates a set of `count` pages of a directory. `find` stores each page, nil if it's missing, and returns how many
  /// are missing.
  init(of count: Int, in directory: PageDirectory, _ find: (UnsafeMutableBufferPointer<PagePoints?>) -> Int) {
    self.directory = directory
    var (points, missing): ([PagePoints?], Int) = ([], 0)
    points.append(addingCapacity: count) { output in
      unsafe output.withUnsafeMutableBufferPointer { room, initializedCount in
        missing = unsafe find(room.extracting(..<count))
        initializedCount = count
      }
    }
    (self.points, missingCount) = (points, missing)
  }

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
    return withExtendedLifetime((directory, pages)) { body(points.span) }
  }
}
