import Testing

@testable import Jobs

/// Tests only the order; there is no clock and there are no threads.
struct FairQueueTests {
  private let crowd = Client(key: "crowd")
  private let other = Client(key: "other")
  private let third = Client(key: "third")

  /// Returns the entries in the order they began, with one place: each entry ends before the next begins.
  private func drain(_ queue: inout FairQueue<String>, _ count: Int = .max) -> [String] {
    var begun: [String] = []
    while begun.count < count, let next = queue.begin() {
      begun.append(next.element)
      queue.end(next.client)
    }
    return begun
  }

  @Test func aClientsEntriesKeepTheirOrder() {
    var queue = FairQueue<String>()
    for number in 0..<5 { queue.append("\(number)", for: crowd) }
    #expect(queue.count == 5 && queue.count(of: crowd) == 5 && queue.count(of: other) == 0)
    #expect(drain(&queue) == ["0", "1", "2", "3", "4"])
    #expect(queue.isEmpty && queue.begin() == nil)
  }

  @Test func clientsTakeTurns() {
    var queue = FairQueue<String>()
    for number in 0..<4 { queue.append("a\(number)", for: crowd) }
    for number in 0..<2 { queue.append("b\(number)", for: other) }
    queue.append("c0", for: third)
    #expect(drain(&queue) == ["a0", "b0", "c0", "a1", "b1", "a2", "a3"])
  }

  @Test("a newcomer goes next, however many others wait and run", arguments: [1, 2, 5])
  func newcomer(places: Int) {
    var queue = FairQueue<String>()
    for number in 0..<1000 { queue.append("a\(number)", for: crowd) }
    for _ in 0..<places { _ = queue.begin() }
    queue.append("b", for: other)
    queue.end(crowd)
    let next = queue.begin()
    #expect(next?.element == "b")
  }

  /// A client that sends each request as soon as the last is answered isn't served more often than one that sent all at
  /// once.
  @Test func noClientIsPassedForever() {
    var queue = FairQueue<String>()
    for _ in 0..<10 { queue.append("crowd", for: crowd) }
    var begun: [String] = []
    for client in [other, third] { queue.append(client.key, for: client) }
    for _ in 0..<30 {
      guard let next = queue.begin() else { break }
      begun.append(next.element)
      queue.end(next.client)
      if next.client != crowd { queue.append(next.client.key, for: next.client) }
    }
    #expect(begun.filter { $0 == "crowd" }.count == 10)
  }

  /// Any number of newcomers, each with one entry, don't delay clients that came before them.
  @Test func newcomersWaitForEarlierClients() {
    var queue = FairQueue<String>()
    for _ in 0..<3 { queue.append("crowd", for: crowd) }
    var begun: [String] = []
    for number in 0..<9 {
      queue.append("new", for: Client(key: "\(number)"))
      begun += drain(&queue, 1)
    }
    #expect(begun.filter { $0 == "crowd" }.count == 3)
  }

  @Test func aClientAtItsLimitIsSkipped() {
    var queue = FairQueue<String>()
    for number in 0..<3 { queue.append("a\(number)", for: crowd) }
    #expect([queue.begin(limit: 2)?.element, queue.begin(limit: 2)?.element] == ["a0", "a1"])
    #expect(queue.begin(limit: 2) == nil && queue.servedCount(of: crowd) == 2)
    queue.append("b", for: other)
    #expect(queue.begin(limit: 2)?.element == "b")
    queue.end(crowd)
    #expect(queue.begin(limit: 2)?.element == "a2")
  }

  @Test func aRemovedEntryIsNotBegun() {
    var queue = FairQueue<String>()
    let first = queue.append("a0", for: crowd)
    queue.append("a1", for: crowd)
    let last = queue.append("b", for: other)
    #expect(queue[first] == "a0" && queue.remove(first) == "a0" && queue.remove(first) == nil && queue[first] == nil)
    #expect(queue.remove(last) == "b" && queue.count == 1 && queue.count(of: other) == 0)
    #expect(drain(&queue) == ["a1"])
  }

  @Test func aClientWhoseEntriesCannotBeginDoesNotDelayOthers() {
    var queue = FairQueue<String>()
    queue.append("long", for: crowd)
    queue.append("short", for: other)
    #expect(queue.begin { $0.firstIndex(of: "short") }?.element == "short")
    #expect(queue.begin { $0.firstIndex(of: "short") } == nil)
    #expect(queue.begin()?.element == "long")
  }
}
