import Synchronization

/// Verified pages of all open pyramids, within one limit: what was verified once is served from memory, and what the
/// disk does to the file afterwards does not matter.
///
/// Each file finds its pages in a table of its own, so a slice takes one lock, that of its file, for a look-up of some
/// nanoseconds a page. The cache itself sees only pages that come in. Which goes when the limit is reached is decided
/// by the clock algorithm, an approximation of least recently used: the oldest page goes, but one that was used since
/// the hand last passed stays for another round.
final class PageCache: Sendable {
  /// For the whole process: the overview of 20 hours of mono sound, or the finest level of 7 hours.
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

  /// `limit`: in bytes.
  init(limit: Int) { self.limit = limit / PyramidPage.cost }

  /// In bytes, all pages that the cache holds.
  var byteCount: Int { state.withLock { $0.entries.count } * PyramidPage.cost }

  /// Takes verified pages of a file; `table` has them already.
  func keep(_ pages: [(number: Int64, page: PyramidPage)], of table: PageTable) {
    let evicted = state.withLock { state in
      pages.compactMap { insert(Entry(table: table, number: $0.number, page: $0.page), &state) }
    }
    for entry in evicted { entry.table.remove(entry.number, entry.page) }
  }

  /// The entry that makes room, if one has to.
  private func insert(_ entry: Entry, _ state: inout State) -> Entry? {
    guard state.entries.count >= limit else {
      state.entries.append(entry)
      return nil
    }
    guard limit > 0 else { return entry }
    // Every step clears a mark, so one round at most finds none.
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

  /// The pages that are there, nil for those that are not, in the order of `numbers`, which are used from now on.
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
        // A store for every use would pass the line from core to core.
        if let page, !page.isUsed.load(ordering: .relaxed) { page.isUsed.store(true, ordering: .relaxed) }
        found.append(page)
      }
      return found
    }
  }

  /// Those that were not there; of two readers that met the same gap one comes first.
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
