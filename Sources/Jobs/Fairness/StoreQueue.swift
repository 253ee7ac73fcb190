// Two kinds of work share the threads, so that neither keeps the other waiting for long:
//
//   brief      asks the store for little, such as a block of a waveform. It goes first, and some threads do nothing
//              else
//   transfer   carries whole files. Clients take turns, and none has all of the threads that transfers may have, so
//              that another one's needn't wait until a long one ends. A few begin even if brief work never ceases

import Dispatch
import Storage
import Synchronization

/// Runs blocking work that may wait for a store on another machine, on threads of its own: while the store hangs,
/// neither the catalog nor the disk waits for it. Thread-safe.
package final class StoreQueue: Sendable {
  /// What work asks of the store.
  package enum Load: Sendable {
    /// A few requests about little.
    case brief
    /// The bytes of a file, for a client.
    case transfer(Client)
  }

  private struct Work: Sendable {
    let body: @Sendable () -> Void
    /// Whose transfer it is; nil for brief work.
    let client: Client?
  }

  private struct State {
    /// Queues without work.
    var idle: [DispatchQueue]
    /// Nil where work has begun.
    var brief: [Work?] = []
    /// The first of `brief` that hasn't begun.
    var nextBrief = 0
    var transfers = FairQueue<Work>()
    var transfersBegun = 0
    let most, mostOfClient, least: Int

    init(_ idle: [DispatchQueue]) {
      self.idle = idle
      most = max(1, idle.count * 2 / 3)
      mostOfClient = max(1, idle.count / 2)
      least = idle.count / 6
    }

    var waitingCount: Int { brief.count - nextBrief + transfers.count }

    /// Whether work for a client begins at once; nil for brief work.
    func begins(_ client: Client?) -> Bool {
      guard !idle.isEmpty else { return false }
      guard let client else { return true }
      return transfersBegun < most && transfers.servedCount(of: client) < mostOfClient
    }

    mutating func takeNext() -> Work? {
      if transfersBegun < least, let transfer = takeTransfer() { return transfer }
      return takeBrief() ?? (transfersBegun < most ? takeTransfer() : nil)
    }

    private mutating func takeTransfer() -> Work? {
      guard !transfers.isEmpty, let next = transfers.begin(limit: mostOfClient) else { return nil }
      transfersBegun += 1
      return next.element
    }

    private mutating func takeBrief() -> Work? {
      guard nextBrief < brief.count else { return nil }
      let work = brief[nextBrief]
      // So that nothing keeps alive what it holds once it ends.
      brief[nextBrief] = nil
      nextBrief += 1
      if nextBrief == brief.count || nextBrief >= 1024 {
        brief.removeFirst(nextBrief)
        nextBrief = 0
      }
      return work
    }

    mutating func end(_ work: Work) {
      guard let client = work.client else { return }
      transfersBegun -= 1
      transfers.end(client)
    }
  }

  private let state: Mutex<State>
  private let waitingLimit: Int
  /// Does all work instead; nil if the store is on another machine.
  private let shared: WorkQueue?

  /// Creates a queue with `threads` threads, on which at most `waitingLimit` pieces of work wait, and half as many
  /// transfers of one client. Transfers have at most two thirds of the threads, those of one client a half.
  package init(threads: Int = 48, waitingLimit: Int = 1000) {
    // Serial queues, because concurrent ones share threads, of which the system starts few if they block.
    state = Mutex(State((0..<threads).map { DispatchQueue(label: "store \($0)") }))
    (self.waitingLimit, shared) = (waitingLimit, nil)
  }

  /// Creates a queue whose work is done by another one, for a store in a folder.
  package init(on shared: WorkQueue) {
    state = Mutex(State([]))
    (waitingLimit, self.shared) = (0, shared)
  }

  /// Whether its work may wait for another machine, on threads of its own.
  package var isForOtherMachine: Bool { shared == nil }

  /// Runs `body` on a thread and returns its result. Throws `.storeUnreachable` without running it if too much waits.
  package func run<R: Sendable>(
    as load: Load = .brief, _ body: @escaping @Sendable () throws -> R
  ) async throws -> R {
    if let shared { return try await shared.run { () throws(any Error) in try body() } }
    return try await withCheckedThrowingContinuation { continuation in
      let isTaken = start(as: load) { continuation.resume(with: Result { try body() }) }
      if !isTaken {
        continuation.resume(throwing: StorageError.storeUnreachable(detail: "too many requests wait for it"))
      }
    }
  }

  /// Runs `body` on a thread without waiting for it. Returns false, without running it, if too much waits.
  @discardableResult
  package func start(as load: Load = .brief, _ body: @escaping @Sendable () -> Void) -> Bool {
    if let shared {
      shared.start(body)
      return true
    }
    let client: Client? = if case .transfer(let client) = load { client } else { nil }
    let body = AuditTrail.carrying(body)
    let (isTaken, begun) = state.withLock { state -> (Bool, (DispatchQueue, Work)?) in
      guard state.begins(client) || hasRoom(for: client, state) else { return (false, nil) }
      let work = Work(body: body, client: client)
      if let client { state.transfers.append(work, for: client) } else { state.brief.append(work) }
      guard !state.idle.isEmpty, let next = state.takeNext() else { return (true, nil) }
      return (true, (state.idle.removeLast(), next))
    }
    if let begun { perform(begun.1, on: begun.0) }
    return isTaken
  }

  private func hasRoom(for client: Client?, _ state: State) -> Bool {
    guard state.waitingCount < waitingLimit else { return false }
    return client.map { state.transfers.count(of: $0) < max(1, waitingLimit / 2) } ?? true
  }

  private func perform(_ work: Work, on queue: DispatchQueue) {
    queue.async { [self] in
      work.body()
      let next = state.withLock { state -> Work? in
        state.end(work)
        let next = state.takeNext()
        if next == nil { state.idle.append(queue) }
        return next
      }
      if let next { perform(next, on: queue) }
    }
  }
}
