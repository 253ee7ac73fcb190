import Synchronization

/// Verified pages of all open pyramids, within one limit. A page that was verified once is served from memory, even if
/// the disk corrupts the file later.
///
/// Each file has its own table of pages, so a slice takes only that file's lock, for a lookup of a few nanoseconds per
/// page. The cache itself is involved only when pages are added. When the limit is reached, the clock algorithm, an
/// approximation of least recently used, selects the page to evict: the oldest one, except that a page used since the
/// hand last passed stays for another round.
final class PageCache: Sendable {
  /// The cache of the process. It holds the overview of 20 hours of mono sound, or the finest level of 7 hours.
  static let shared = PageCache(limit: 64 << 20)

  private struct Entry {
    let table: PageTable
    let page: CachedPage
  }

  private struct State {
    var entries: [Entry] = []
    var hand = 0
  }

  private let limit: Int
  private let state = Mutex(State())

  /// Creates a cache of `limit` bytes.
  init(limit: Int) { self.limit = limit / PyramidPage.cost }

  /// Total size in bytes of the pages in the cache.
  var byteCount: Int { state.withLock { $0.entries.count } * PyramidPage.cost }

  /// Adds verified pages of a file that are already in `table`.
  func keep(_ pages: [CachedPage], of table: PageTable) {
    let evicted = state.withLock { state in
      pages.compactMap { insert(Entry(table: table, page: $0), &state) }
    }
    for entry in evicted { entry.table.remove(entry.page) }
  }

  /// Inserts an entry and returns the one evicted for it, if any.
  private func insert(_ entry: Entry, _ state: inout State) -> Entry? {
    guard state.entries.count >= limit else {
      state.entries.append(entry)
      return nil
    }
    guard limit > 0 else { return entry }
    // Every step clears a mark, so this takes at most one full round.
    while true {
      if state.hand >= limit { state.hand = 0 }
      defer { state.hand += 1 }
      let oldest = state.entries[state.hand]
      guard !oldest.page.takeMark() else { continue }
      state.entries[state.hand] = entry
      return oldest
    }
  }
}

/// A page in a table.
struct CachedPage: Sendable {
  let number: Int64
  let page: PyramidPage
  fileprivate let marks: UseMarks

  /// Removes the page's mark; returns whether it had one.
  fileprivate func takeMark() -> Bool { marks.take(PageChunk.index(of: number)) }
}

/// 256 consecutive pages of a file, as far as they are in memory. A reader that has a reference owns its pages: a chunk
/// that is shared never changes, so a page that is removed meanwhile is removed from a copy. So owning costs one
/// reference per chunk instead of one per page.
///
/// Sendable because only a table changes it, behind its lock and while nothing else refers to it.
@safe
final class PageChunk: @unchecked Sendable {
  static let size = 256
  fileprivate static let empty = PageChunk()

  fileprivate private(set) var pages: [PyramidPage?]
  /// Those of `pages`, for readers. Not an array: counting its references as well took as long as reading it.
  private let points = UnsafeMutableBufferPointer<PagePoints?>.allocate(capacity: size)
  fileprivate private(set) var count = 0
  fileprivate let marks: UseMarks

  fileprivate init() {
    pages = Array(repeating: nil, count: Self.size)
    marks = UseMarks()
    unsafe points.initialize(repeating: nil)
  }

  fileprivate init(copying other: PageChunk) {
    (pages, count, marks) = (other.pages, other.count, other.marks)
    _ = unsafe points.initialize(fromContentsOf: other.points)
  }

  deinit { unsafe points.deallocate() }

  fileprivate static func index(of number: Int64) -> Int { Int(number & Int64(size - 1)) }
  fileprivate static func key(of number: Int64) -> Int64 { number >> 8 }

  /// Appends the points of pages of this chunk to a set, and marks them as used. `number`: the first one's; `rest`:
  /// those that follow. Returns the first one that isn't of this chunk, or nil at the end.
  @inline(__always)
  fileprivate func append(
    _ number: Int64, _ rest: inout some IteratorProtocol<Int64>, to set: inout PageSet
  ) -> Int64? {
    let first = Self.key(of: number) << 8
    var used = InlineArray<4, UInt64>(repeating: 0)
    // The bits of one word are collected before they are stored: otherwise each page would wait for the one before.
    var (word, bits) = (0, UInt64(0))
    var (next, missing) = (Int64?.some(number), 0)
    set.append { output in
      while let number = next {
        let index = Int(truncatingIfNeeded: number &- first)
        guard index >= 0, index < Self.size else { break }
        let found = unsafe points[index]
        output.append(found)
        if index >> 6 != word {
          used[word] |= bits
          (word, bits) = (index >> 6, 0)
        }
        if found == nil { missing += 1 } else { bits |= 1 << UInt64(truncatingIfNeeded: index & 63) }
        next = rest.next()
      }
      return missing
    }
    used[word] |= bits
    marks.set(used)
    return next
  }

  fileprivate func set(_ index: Int, _ page: PyramidPage?) {
    count += (page == nil ? 0 : 1) - (pages[index] == nil ? 0 : 1)
    pages[index] = page
    unsafe points[index] = page?.points
  }
}

extension [Int64: PageChunk] {
  /// Changes a page of a chunk, or of a copy if a reader has the chunk.
  fileprivate mutating func set(_ number: Int64, _ page: PyramidPage?) {
    let key = PageChunk.key(of: number)
    guard let place = index(forKey: key) else {
      let new = PageChunk()
      new.set(PageChunk.index(of: number), page)
      self[key] = new
      return
    }
    if !isKnownUniquelyReferenced(&values[place]) { values[place] = PageChunk(copying: values[place]) }
    values[place].set(PageChunk.index(of: number), page)
  }
}

/// Which pages of a chunk were used since the cache last checked, a bit each: marking the pages of a slice must not
/// touch the memory of each.
private final class UseMarks: Sendable {
  private let words = InlineArray<4, Atomic<UInt64>> { _ in Atomic(0) }

  func set(_ used: InlineArray<4, UInt64>) {
    // Check before storing, because a store for every use would bounce the cache line between cores.
    for index in 0..<4 where used[index] & ~words[index].load(ordering: .relaxed) != 0 {
      words[index].bitwiseOr(used[index], ordering: .relaxed)
    }
  }

  func take(_ index: Int) -> Bool {
    let bit = UInt64(1) << UInt64(index & 63)
    return words[index >> 6].bitwiseAnd(~bit, ordering: .relaxed).oldValue & bit != 0
  }
}

/// A file's verified pages, by number.
final class PageTable: Sendable {
  private let chunks = Mutex<[Int64: PageChunk]>([:])

  init() {}

  /// Returns the pages with these numbers, in order, as far as they are here, and marks them as used. `numbers` must
  /// know their count.
  func pages(_ numbers: some Sequence<Int64>) -> PageSet {
    var set = PageSet(of: numbers.underestimatedCount)
    var rest = numbers.makeIterator()
    var next = rest.next()
    while let number = next {
      let chunk = chunks.withLock { $0[PageChunk.key(of: number)] }
      if let chunk { set.own(chunk) }
      next = (chunk ?? .empty).append(number, &rest, to: &set)
    }
    return set
  }

  /// Inserts pages and returns those that were missing; if two readers fill the same gap, the first one wins.
  func insert(_ pages: [(number: Int64, page: PyramidPage)]) -> [CachedPage] {
    chunks.withLock { chunks in
      pages.compactMap { number, page in
        let (key, index) = (PageChunk.key(of: number), PageChunk.index(of: number))
        guard chunks[key]?.pages[index] == nil else { return nil }
        chunks.set(number, page)
        return chunks[key].map { CachedPage(number: number, page: page, marks: $0.marks) }
      }
    }
  }

  func remove(_ cached: CachedPage) {
    chunks.withLock { chunks in
      let (key, index) = (PageChunk.key(of: cached.number), PageChunk.index(of: cached.number))
      guard chunks[key]?.pages[index] === cached.page else { return }
      chunks.set(cached.number, nil)
      if chunks[key]?.count == 0 { chunks[key] = nil }
    }
  }
}
