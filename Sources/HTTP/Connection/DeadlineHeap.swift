/// The deadlines of a loop's connections: a binary heap, earliest first.
///
/// Entries are never moved or removed when a deadline changes; their owners tell by a `Reminder` which one counts.
struct DeadlineHeap {
  /// A deadline and whose it is.
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

  /// Takes out the earliest entry if it is due.
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

/// Which of an owner's entries counts: the latest put in, which is the earliest.
///
/// It lies at or before the owner's deadline; when it comes up, the owner looks whether the deadline has moved and puts
/// in a new one. A deadline that only moves away, as a kept connection's does with every request, costs nothing. An
/// entry that an earlier one has overtaken brings no other when it comes up: else each would live for ever.
struct Reminder {
  private var entry: Instant?

  /// The time to be reminded at, where that takes a new entry.
  mutating func newEntry(for deadline: Instant?) -> Instant? {
    guard let deadline, entry.map({ deadline < $0 }) ?? true else { return nil }
    entry = deadline
    return deadline
  }

  /// Whether the entry that has come up is the one that counts; the next deadline then needs a new one.
  mutating func hasCome(_ deadline: Instant) -> Bool {
    guard deadline == entry else { return false }
    entry = nil
    return true
  }
}
