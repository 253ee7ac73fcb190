/// A queue of events by time; events of the same time come in the order in which they were added.
public struct EventHeap<Event> {
  private var items: [(time: Int64, number: Int, event: Event)] = []
  private var number = 0

  /// Creates an empty queue.
  public init() {}

  /// Adds an event.
  public mutating func push(_ event: Event, at time: Int64) {
    items.append((time, number, event))
    number += 1
    var child = items.count - 1
    while child > 0, isBefore(child, (child - 1) / 2) {
      items.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  /// Removes and returns the earliest event.
  public mutating func pop() -> (time: Int64, event: Event)? {
    guard let first = items.first else { return nil }
    let last = items.removeLast()
    if !items.isEmpty {
      items[0] = last
      var parent = 0
      while true {
        let children = [2 * parent + 1, 2 * parent + 2].filter { $0 < items.count }
        guard let least = children.min(by: { isBefore($0, $1) }), isBefore(least, parent) else { break }
        items.swapAt(least, parent)
        parent = least
      }
    }
    return (first.time, first.event)
  }

  private func isBefore(_ a: Int, _ b: Int) -> Bool {
    (items[a].time, items[a].number) < (items[b].time, items[b].number)
  }
}
