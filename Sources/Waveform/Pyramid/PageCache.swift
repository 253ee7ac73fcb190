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
    let number: Int64
    let page: PyramidPage
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
  func keep(_ pages: [(number: Int64, page: PyramidPage)], of table: PageTable) {
    let evicted = state.withLock { state in
      pages.compactMap { insert(Entry(table: table, number: $0.number, page: $0.page), &state) }
    }
    for entry in evicted { entry.table.remove(entry.number, entry.page) }
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
      guard !oldest.page.isUsed.exchange(false, ordering: .relaxed) else { continue }
      state.entries[state.hand] = entry
      return oldest
    }
  }
}

/// A file's verified pages, by number.
final class PageTable: Sendable {
  private static let chunk: Int64 = 256
  private let chunks = Mutex<[Int64: [PyramidPage?]]>([:])

  init() {}

  /// Returns the pages with these numbers, in order, nil for those that are missing, and marks them as used.
  func pages(_ numbers: [Int64]) -> [PyramidPage?] {
    chunks.withLock { chunks in
      var found: [PyramidPage?] = []
      found.reserveCapacity(numbers.count)
      var (current, key): ([PyramidPage?]?, Int64) = (nil, -1)
      for number in numbers {
        if number / Self.chunk != key {
          key = number / Self.chunk
          current = chunks[key]
        }
        let page = current?[Int(number % Self.chunk)]
        // Check before storing, because a store for every use would bounce the cache line between cores.
        if let page, !page.isUsed.load(ordering: .relaxed) { page.isUsed.store(true, ordering: .relaxed) }
        found.append(page)
      }
      return found
    }
  }

  /// Inserts pages and returns those that were missing; if two readers fill the same gap, the first one wins.
  func insert(_ pages: [(number: Int64, page: PyramidPage)]) -> [(number: Int64, page: PyramidPage)] {
    chunks.withLock { chunks in
      pages.filter { number, page in
        let (key, index) = (number / Self.chunk, Int(number % Self.chunk))
        guard chunks[key]?[index] == nil else { return false }
        chunks[key, default: Array(repeating: nil, count: Int(Self.chunk))][index] = page
        return true
      }
    }
  }

  func remove(_ number: Int64, _ page: PyramidPage) {
    chunks.withLock { chunks in
      let (key, index) = (number / Self.chunk, Int(number % Self.chunk))
      guard let chunk = chunks[key], chunk[index] === page else { return }
      chunks[key]?[index] = nil
      if chunks[key]?.allSatisfy({ $0 == nil }) == true { chunks[key] = nil }
    }
  }
}
