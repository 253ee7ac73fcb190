import CPeaks
import Synchronization

// A slice of a long recording looks up thousands of pages. So a table keeps those of one lane together, in the order of
// their blocks: with a group of blocks at hand (PyramidLayout.swift), the page of a frame is found with a shift and a
// load.
//
// A slice owns all of a table's pages with one reference, to the directory. A directory that is shared never changes,
// and neither does a chunk that is; a page that is added or removed meanwhile is added to a copy, or removed from one.
// A reference to each chunk took as long as a quarter of the lookups, since every thread counts in the same memory.

/// A page in a table.
struct CachedPage: Sendable {
  let page: PyramidPage
  fileprivate let key: Int64
  fileprivate let index: Int
  fileprivate let marks: UseMarks

  /// Removes the page's mark; returns whether it had one.
  func takeMark() -> Bool { marks.take(index) }
}

/// A file's verified pages, by number.
final class PageTable: Sendable {
  private let directory: Mutex<PageDirectory>

  init(_ layout: PyramidLayout) { directory = Mutex(PageDirectory(layout)) }

  /// The pages that are here now.
  var current: PageDirectory { directory.withLock { $0 } }

  /// Whether no page is here now.
  var isEmpty: Bool { directory.withLock { $0.isEmpty } }

  /// Inserts pages and returns those that were missing; if two readers fill the same gap, the first one wins.
  func insert(_ pages: [(number: Int64, page: PyramidPage)]) -> [CachedPage] {
    directory.withLock { directory in
      pages.compactMap { number, page in
        let (key, index) = directory.place(of: number)
        guard directory.page(key, index) == nil else { return nil }
        let marks = Self.own(&directory).set(key, index, page)
        return CachedPage(page: page, key: key, index: index, marks: marks)
      }
    }
  }

  func remove(_ cached: CachedPage) {
    directory.withLock { directory in
      guard directory.page(cached.key, cached.index) === cached.page else { return }
      Self.own(&directory).set(cached.key, cached.index, nil)
    }
  }

  /// Returns the directory, or a copy in its place if a reader has it.
  private static func own(_ directory: inout PageDirectory) -> PageDirectory {
    if !isKnownUniquelyReferenced(&directory) { directory = PageDirectory(copying: directory) }
    return directory
  }
}

/// The pages of a table at one moment. A reader that has a reference owns them.
///
/// Sendable because only a table changes it, behind its lock and while nothing else refers to it.
final class PageDirectory: @unchecked Sendable {
  private let layout: PyramidLayout
  /// By group and lane.
  private var chunks: [Int64: PageChunk] = [:]
  /// Those of `chunks`, for readers: without references to count.
  private var views: [Int64: PageView] = [:]

  fileprivate init(_ layout: PyramidLayout) { self.layout = layout }

  fileprivate init(copying other: PageDirectory) {
    (layout, chunks, views) = (other.layout, other.chunks, other.views)
  }

  fileprivate var isEmpty: Bool { chunks.isEmpty }

  /// Returns the pages with these numbers, in order, as far as they are here, and marks them as used. The plain version
  /// of `pages(_: PageNumbers)`.
  func pages(_ numbers: [Int64]) -> PageSet {
    unsafe PageSet(of: numbers.count, in: self) { found in
      var missing = 0
      for (place, number) in numbers.enumerated() {
        let (key, index) = self.place(of: number)
        let page = views[key]?.use(index)
        unsafe found.initializeElement(at: place, to: page)
        if page == nil { missing += 1 }
      }
      return missing
    }
  }

  /// Returns the pages with these numbers, like the other.
  func pages(_ numbers: PageNumbers) -> PageSet {
    unsafe PageSet(of: numbers.underestimatedCount, in: self) { found in
      let step = numbers.lanes.count
      var missing = 0
      for lane in numbers.lanes {
        var place = lane - numbers.lanes.lowerBound
        var search = numbers.search
        while search.count > 0 {
          let rest = search.count
          missing += unsafe view(search.frame >> 24, lane).find(&search, found.extracting(place...), step: step)
          place += (rest - search.count) * step
        }
        for group in numbers.upper {
          let page = view(group, lane).use(0)
          unsafe found.initializeElement(at: place, to: page)
          if page == nil { missing += 1 }
          place += step
        }
      }
      return missing
    }
  }

  private func view(_ group: Int64, _ lane: Int) -> PageView { views[key(group, lane)] ?? PageChunk.empty.view }

  fileprivate func page(_ key: Int64, _ index: Int) -> PyramidPage? { chunks[key]?.pages[index] }

  /// Changes a page of a chunk, or of a copy if another directory has the chunk. Returns the chunk's marks.
  @discardableResult
  fileprivate func set(_ key: Int64, _ index: Int, _ page: PyramidPage?) -> UseMarks {
    // Removed while it's changed, so that this is the only reference.
    var chunk = chunks.removeValue(forKey: key) ?? PageChunk()
    if !isKnownUniquelyReferenced(&chunk) { chunk = PageChunk(copying: chunk) }
    chunk.set(index, page)
    chunks[key] = chunk.count == 0 ? nil : chunk
    views[key] = chunk.count == 0 ? nil : chunk.view
    return chunk.marks
  }

  private func key(_ group: Int64, _ lane: Int) -> Int64 { group * Int64(layout.lanes) + Int64(lane) }

  fileprivate func place(of number: Int64) -> (key: Int64, index: Int) {
    let (group, index, lane) = layout.place(page: number)
    return (key(group, lane), index)
  }
}

/// The pages of one lane in a group of blocks, as far as they are in memory: that of the upper block, then those of the
/// lower ones.
///
/// Sendable because only a directory changes it, while nothing else refers to it.
@safe
private final class PageChunk: @unchecked Sendable {
  static let size = Int(PyramidLayout.blocksPerGroup)
  static let empty = PageChunk()

  private(set) var pages: [PyramidPage?]
  private let points = UnsafeMutableBufferPointer<PagePoints?>.allocate(capacity: size)
  private(set) var count = 0
  let marks: UseMarks

  init() {
    pages = Array(repeating: nil, count: Self.size)
    marks = UseMarks()
    unsafe points.initialize(repeating: nil)
  }

  init(copying other: PageChunk) {
    (pages, count, marks) = (other.pages, other.count, other.marks)
    _ = unsafe points.initialize(fromContentsOf: other.points)
  }

  deinit { unsafe points.deallocate() }

  var view: PageView { unsafe PageView(points: points, marks: marks.bytes) }

  func set(_ index: Int, _ page: PyramidPage?) {
    count += (page == nil ? 0 : 1) - (pages[index] == nil ? 0 : 1)
    pages[index] = page
    unsafe points[index] = page?.points
  }
}

/// What readers need of a chunk, which must exist for as long.
///
/// Sendable because the points don't change while the chunk is shared, and the marks are only used atomically.
@safe
private struct PageView: @unchecked Sendable {
  private let points: UnsafeMutableBufferPointer<PagePoints?>
  private let marks: UnsafeMutableBufferPointer<UInt8>

  init(points: UnsafeMutableBufferPointer<PagePoints?>, marks: UnsafeMutableBufferPointer<UInt8>) {
    unsafe self.points = points
    unsafe self.marks = marks
  }

  /// Returns a page, and marks it as used.
  func use(_ index: Int) -> PagePoints? {
    precondition(index >= 0 && index < PageChunk.size, "a page lies in its chunk")
    guard let found = unsafe points[index], let first = unsafe marks.baseAddress else { return nil }
    unsafe peak_mark(first + index)
    return found
  }

  /// Stores the pages of those blocks of a search that are in this group in every `step`th place of `found`, and marks
  /// them as used. Returns the number of missing ones.
  func find(
    _ search: inout peak_search, _ found: UnsafeMutableBufferPointer<PagePoints?>, step: Int
  ) -> Int {
    precondition((search.count - 1) * step < found.count, "each page has room")
    guard let pages = unsafe UnsafeRawPointer(points.baseAddress), let first = unsafe marks.baseAddress,
      let target = UnsafeMutableRawPointer(found.baseAddress)
    else { return 0 }
    return unsafe peak_find(
      &search, pages.assumingMemoryBound(to: UnsafePointer<UInt32>?.self), first,
      target.assumingMemoryBound(to: UnsafePointer<UInt32>?.self), step)
  }
}

/// Which pages of a chunk were used since the cache last checked: marking the pages of a slice must not touch the
/// memory of each.
///
/// Sendable because the bytes are only used atomically.
@safe
private final class UseMarks: @unchecked Sendable {
  /// One byte per page: 1 if it was used.
  let bytes = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: PageChunk.size)

  init() { unsafe bytes.initialize(repeating: 0) }

  deinit { unsafe bytes.deallocate() }

  func take(_ index: Int) -> Bool {
    precondition(index >= 0 && index < PageChunk.size, "a page lies in its chunk")
    guard let first = unsafe bytes.baseAddress else { return false }
    return unsafe peak_take_mark(first + index)
  }
}
