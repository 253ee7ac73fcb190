/// A queue that serves its clients in turn, and each client's own entries in the order they came.
///
/// The client whose turn is next is the one that was least recently served: that began or ended an entry, or joined the
/// queue with its first one, the longest ago. So who comes to a queue of another's thousand entries goes next, since
/// each end of one of these puts that other client behind; A client that was just served goes to the back, so no client
/// starves.
///
/// A value without a clock or a limit; its owner knows how many places there are. Adding and ending take constant time,
/// beginning as long as there are clients that wait, removing as long as the client has entries.
struct FairQueue<Element> {
  /// Names an entry for as long as it waits.
  struct Ticket: Hashable, Sendable {
    let client: Client
    fileprivate let number: UInt64
  }

  private struct Line {
    var waiting: [(number: UInt64, element: Element)] = []
    /// Entries begun and not ended.
    var served = 0
    /// When it joined or was last served, by `steps`.
    var since: UInt64
  }

  /// Only of clients that wait or are served.
  private var lines: [Client: Line] = [:]
  private var steps: UInt64 = 0
  /// Entries that wait.
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// Entries of a client that wait.
  func count(of client: Client) -> Int { lines[client]?.waiting.count ?? 0 }

  /// Entries of a client that were begun and not ended.
  func servedCount(of client: Client) -> Int { lines[client]?.served ?? 0 }

  /// An entry that waits; nil where it was begun or removed already.
  subscript(_ ticket: Ticket) -> Element? {
    lines[ticket.client]?.waiting.first { $0.number == ticket.number }?.element
  }

  private mutating func step() -> UInt64 {
    steps += 1
    return steps
  }

  /// Adds an entry behind the client's others.
  @discardableResult
  mutating func append(_ element: Element, for client: Client) -> Ticket {
    let number = step()
    lines[client, default: Line(since: number)].waiting.append((number, element))
    count += 1
    return Ticket(client: client, number: number)
  }

  /// Takes back an entry that waits; nil where it was begun or removed already.
  @discardableResult
  mutating func remove(_ ticket: Ticket) -> Element? {
    let index = lines[ticket.client]?.waiting.firstIndex { $0.number == ticket.number }
    guard let index else { return nil }
    return take(index, of: ticket.client)
  }

  /// Takes back all that waits.
  mutating func removeAll() {
    for client in lines.keys { lines[client]?.waiting = [] }
    lines = lines.filter { $0.value.served > 0 }
    count = 0
  }

  /// Begins the next entry, which counts as served from then on; nil where none may be begun.
  ///
  /// Clients with `limit` entries in service are passed over. `choose` picks among a client's entries, which are given
  /// in order, and may say that none of them can be begun now.
  mutating func begin(
    limit: Int = .max, choosing choose: (_ waiting: [Element]) -> Int? = { _ in 0 }
  ) -> (client: Client, element: Element)? {
    var next: (client: Client, index: Int, since: UInt64)?
    for (client, line) in lines where !line.waiting.isEmpty && line.served < limit {
      if let next, next.since < line.since { continue }
      guard let index = choose(line.waiting.map(\.element)) else { continue }
      next = (client, index, line.since)
    }
    guard let next else { return nil }
    // Before the entry goes, or the line might go with it.
    let now = step()
    lines[next.client]?.served += 1
    lines[next.client]?.since = now
    return (next.client, take(next.index, of: next.client))
  }

  /// An entry of a client, begun earlier, has ended.
  mutating func end(_ client: Client) {
    guard let line = lines[client], line.served > 0 else { preconditionFailure("what ends was begun") }
    let now = step()
    lines[client]?.served -= 1
    lines[client]?.since = now
    dropLine(of: client)
  }

  private mutating func take(_ index: Int, of client: Client) -> Element {
    guard let entry = lines[client]?.waiting.remove(at: index) else { preconditionFailure("the entry waits") }
    count -= 1
    dropLine(of: client)
    return entry.element
  }

  private mutating func dropLine(of client: Client) {
    if let line = lines[client], line.waiting.isEmpty, line.served == 0 { lines[client] = nil }
  }
}
