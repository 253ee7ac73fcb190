/// A queue that serves its clients in turn, and each client's own entries in the order they came.
///
/// The next client is the one served least recently, counting from when one of its entries last began or ended, or from
/// when it joined the queue. A client that joins behind another's thousand entries is thus served soon, because each
/// entry that ends moves that other client behind it. A client that was just served goes to the back, so no client
/// starves.
///
/// This is a value without a clock or limits; its owner limits the number of entries in service. Adding and ending an
/// entry take constant time. Beginning one may visit every waiting entry, and removing one is linear in the client's
/// entries.
struct FairQueue<Element> {
  /// Identifies an entry while it waits.
  struct Ticket: Hashable, Sendable {
    let client: Client
    fileprivate let number: UInt64
  }

  /// The limits of clients that have their own; nil for those that don't.
  struct OwnLimits {
    let of: (Client) -> Int?
  }

  private struct Line {
    var waiting: [(number: UInt64, element: Element)] = []
    /// Entries that have begun but not ended.
    var served = 0
    /// The step at which the client joined or was last served.
    var since: UInt64
  }

  /// Only clients with waiting or running entries.
  private var lines: [Client: Line] = [:]
  private var steps: UInt64 = 0
  /// The number of waiting entries.
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// The number of a client's waiting entries.
  func count(of client: Client) -> Int { lines[client]?.waiting.count ?? 0 }

  /// The number of a client's entries that have begun but not ended.
  func servedCount(of client: Client) -> Int { lines[client]?.served ?? 0 }

  /// A waiting entry; nil if it has already begun or been removed.
  subscript(_ ticket: Ticket) -> Element? {
    lines[ticket.client]?.waiting.first { $0.number == ticket.number }?.element
  }

  private mutating func step() -> UInt64 {
    steps += 1
    return steps
  }

  /// Adds an entry behind the client's other entries.
  @discardableResult
  mutating func append(_ element: Element, for client: Client) -> Ticket {
    let number = step()
    lines[client, default: Line(since: number)].waiting.append((number, element))
    count += 1
    return Ticket(client: client, number: number)
  }

  /// Removes and returns a waiting entry; nil if it has already begun or been removed.
  @discardableResult
  mutating func remove(_ ticket: Ticket) -> Element? {
    let index = lines[ticket.client]?.waiting.firstIndex { $0.number == ticket.number }
    guard let index else { return nil }
    return take(index, of: ticket.client)
  }

  /// Begins the next entry, which is in service until `end`. Returns nil if none can begin.
  ///
  /// Clients with `limit` entries in service, or as many as their own limit says, are skipped. `choose` picks from a
  /// client's waiting entries, given in order, or returns nil if none of them can begin now.
  mutating func begin(
    limit: Int = .max, own limits: OwnLimits? = nil, choosing choose: (_ waiting: [Element]) -> Int? = { _ in 0 }
  ) -> (client: Client, element: Element)? {
    var next: (client: Client, index: Int, since: UInt64)?
    for (client, line) in lines where !line.waiting.isEmpty && line.served < limits?.of(client) ?? limit {
      if let next, next.since < line.since { continue }
      guard let index = choose(line.waiting.map(\.element)) else { continue }
      next = (client, index, line.since)
    }
    guard let next else { return nil }
    // Before `take`, which might remove the line.
    let now = step()
    lines[next.client]?.served += 1
    lines[next.client]?.since = now
    return (next.client, take(next.index, of: next.client))
  }

  /// Counts an entry that is in service elsewhere, until `end`.
  mutating func beginElsewhere(_ client: Client) {
    let now = step()
    lines[client, default: Line(since: now)].served += 1
    lines[client]?.since = now
  }

  /// Ends one of the client's entries in service.
  mutating func end(_ client: Client) {
    guard let line = lines[client], line.served > 0 else { preconditionFailure("the client has no entry in service") }
    let now = step()
    lines[client]?.served -= 1
    lines[client]?.since = now
    dropLine(of: client)
  }

  private mutating func take(_ index: Int, of client: Client) -> Element {
    guard let entry = lines[client]?.waiting.remove(at: index) else { preconditionFailure("the entry isn't waiting") }
    count -= 1
    dropLine(of: client)
    return entry.element
  }

  private mutating func dropLine(of client: Client) {
    if let line = lines[client], line.waiting.isEmpty, line.served == 0 { lines[client] = nil }
  }
}
