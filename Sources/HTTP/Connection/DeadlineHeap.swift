/// The deadlines of a loop's connections: a binary heap, earliest first.
///
/// Entries are never moved or removed when a deadline changes; each owner has a `Reminder` that knows its valid entry.
struct DeadlineHeap {
  /// A deadline and its owner.
  struct Entry: Equatable {
    var deadline: Instant
    var owner: UInt64
  }

  private var entries: [Entry] = []

  /// The earliest deadline.
  var first: Instant? { entries.first?.deadline }

  var count: Int { entries.count }

  mutating func insert(_ entry: Entry) {
    entries.append(entry)
    var child = entries.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard entries[child].deadline < entries[parent].deadline else { return }
      entries.swapAt(child, parent)
      child = parent
    }
  }

  /// Removes and returns the earliest entry if it is due.
  mutating func popDue(at now: Instant) -> Entry? {
    guard let first = entries.first, first.deadline <= now else { return nil }
    entries.swapAt(0, entries.count - 1)
    entries.removeLast()
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2]
      where child < entries.count && entries[child].deadline < entries[least].deadline {
        least = child
      }
      if least == parent { return first }
      entries.swapAt(parent, least)
      parent = least
    }
  }
}

/// The entry of one owner that is valid: the latest inserted, which is the earliest.
///
/// The entry is at or before the owner's deadline. When it comes due, the owner checks whether the deadline has moved
/// and inserts a new entry. A deadline that only moves later, as a persistent connection's does with every request,
/// costs nothing. An entry that was superseded by an earlier one must not insert another when it comes due, or each
/// would live forever.
struct Reminder {
  private var entry: Instant?

  /// Returns the time for a new entry, or nil if the current entry is early enough.
  mutating func newEntry(for deadline: Instant?) -> Instant? {
    guard let deadline, entry.map({ deadline < $0 }) ?? true else { return nil }
    entry = deadline
    return deadline
  }

  /// Whether the entry that came due is the valid one. If so, the next deadline needs a new entry.
  mutating func hasCome(_ deadline: Instant) -> Bool {
    guard deadline == entry else { return false }
    entry = nil
    return true
  }
}
