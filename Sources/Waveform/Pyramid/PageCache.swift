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

  /// Removes all pages of a file that is being closed. O(pages in the cache): 20 µs.
  func removeAll(of table: PageTable) {
    guard !table.isEmpty else { return }
    state.withLock { state in state.entries.removeAll { $0.table === table } }
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
