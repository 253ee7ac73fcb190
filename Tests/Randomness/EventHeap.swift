/// A queue of events by time; events of the same time come in the order in which they were added.
///
/// Its code is inlinable, so that simulations get a version for their own events: a version for any type takes several
/// times as long.
public struct EventHeap<Event> {
  @usableFromInline
  struct Item {
    @usableFromInline let time: Int64
    @usableFromInline let number: Int
    @usableFromInline let event: Event

    @usableFromInline
    init(time: Int64, number: Int, event: Event) { (self.time, self.number, self.event) = (time, number, event) }
  }

  @usableFromInline var items: [Item] = []
  @usableFromInline var number = 0

  /// Creates an empty queue.
  @inlinable
  public init() {}

  /// Adds an event.
  @inlinable
  public mutating func push(_ event: Event, at time: Int64) {
    items.append(Item(time: time, number: number, event: event))
    number += 1
    var child = items.count - 1
    while child > 0, isBefore(child, (child - 1) / 2) {
      items.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  /// Removes and returns the earliest event.
  @inlinable
  public mutating func pop() -> (time: Int64, event: Event)? {
    guard let first = items.first else { return nil }
    let last = items.removeLast()
    guard !items.isEmpty else { return (first.time, first.event) }
    items[0] = last
    var parent = 0
    while true {
      let (left, right) = (2 * parent + 1, 2 * parent + 2)
      guard left < items.count else { break }
      let least = right < items.count && isBefore(right, left) ? right : left
      guard isBefore(least, parent) else { break }
      items.swapAt(least, parent)
      parent = least
    }
    return (first.time, first.event)
  }

  @inlinable
  func isBefore(_ a: Int, _ b: Int) -> Bool {
    (items[a].time, items[a].number) < (items[b].time, items[b].number)
  }
}
