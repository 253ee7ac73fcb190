import Dispatch
import Synchronization

/// One loop's share of the server: accepts connections, assigns each to the loop that has the fewest, and keeps its
/// own. Confined to the loop's queue except for `load`.
final class LoopWorker: EventHandler, @unchecked Sendable {
  let loop: EventLoop
  private let core: ServerCore
  private let tally: AnswerTally
  private let listener: ListeningSocket
  /// All of the server's workers; set before accepting begins.
  private var workers: [LoopWorker] = []
  private var listenerToken: EventLoop.Token?
  private var retry: RetryTimer?
  private var connections: [ObjectIdentifier: HTTPConnection] = [:]
  private var isStopping = false
  private var stopTimer: RetryTimer?
  private var whenEmpty: CheckedContinuation<Void, Never>?
  /// Whether the stop no longer waits for handlers, which may hang.
  private var hasGivenUp = false
  /// Handlers outlive their connections: one whose client has gone may still have a file to remove.
  private var handlerCount = 0
  private let load = Atomic<Int>(0)

  /// How long to leave clients in the backlog if descriptors run out and no connection closes.
  private static let retrySeconds = 0.1
  /// After the time for stopping is up: how long handlers may take to answer and clean up, and then to end.
  private static let cleanUpSeconds = 1.0

  init(loop: EventLoop, core: ServerCore, tally: AnswerTally, listener: ListeningSocket) {
    (self.loop, self.core, self.tally, self.listener) = (loop, core, tally, listener)
  }

  /// Starts accepting.
  func start(among workers: [LoopWorker]) {
    loop.start()
    loop.async { [self] in
      self.workers = workers
      listenerToken = loop.addShared(listener.descriptor, self)
    }
  }

  // MARK: Accepting

  /// The maximum number of connections accepted before connected clients have their turn. With 8, the last of 1,000
  /// clients that connected together waited for a second: as more are connected, turns take longer.
  private static let acceptedInARow = 64

  func handle(_ readiness: Readiness) {
    for _ in 0..<Self.acceptedInARow {
      switch listener.accept() {
      case .connection(let descriptor, let peer): assign(descriptor, peer)
      case .none: return
      case .outOfDescriptors: return pauseAccepting()
      // The socket stays readable forever, so a loop that kept watching it would use a whole core until the server
      // stops.
      case .refused: return leaveListener()
      }
    }
  }

  func deadlineReached(_ deadline: Instant) {}

  /// Accepts the connections that wait to be accepted. They are given to their loops before whatever is asked of these
  /// afterwards.
  func acceptWaiting() async {
    await withCheckedContinuation { continuation in
      loop.async { [self] in
        while case .connection(let descriptor, let peer) = listener.accept() { assign(descriptor, peer) }
        continuation.resume()
      }
    }
  }

  private func assign(_ descriptor: Int32, _ peer: SocketAddress) {
    let client = core.configuration.client(peer)
    let decision = core.connections.take(for: client)
    if decision == .hangUp { return Socket(adopting: descriptor).close() }
    let worker = workers.min { $0.load.load(ordering: .relaxed) < $1.load.load(ordering: .relaxed) } ?? self
    worker.load.wrappingAdd(1, ordering: .relaxed)
    let socket = Socket(adopting: descriptor)
    let peer = peer.description
    worker.loop.execute { worker.adopt(socket, peer, of: client, decision) }
  }

  private func adopt(_ socket: Socket, _ peer: String, of client: String?, _ decision: ConnectionTally.Decision) {
    loop.refreshNow()
    let connection = HTTPConnection(socket, peer: peer, client: client, loop: loop, core: core, tally: tally)
    connection.worker = self
    connections[ObjectIdentifier(connection)] = connection
    if case .refuse(let refusal) = decision {
      connection.open(refusing: refusal)
    } else {
      connection.open()
    }
    // Another loop has accepted it in the last moment.
    if isStopping { connection.stop() }
  }

  func closed(_ connection: HTTPConnection) {
    dispatchPrecondition(condition: .onQueue(loop.queue))
    connections[ObjectIdentifier(connection)] = nil
    load.wrappingSubtract(1, ordering: .relaxed)
    if retry != nil { resumeAccepting() }
    finishIfEmpty()
  }

  func handlerBegan() { handlerCount += 1 }

  func handlerEnded() {
    handlerCount -= 1
    finishIfEmpty()
  }

  /// Out of descriptors: stops watching the listener, so that the loop doesn't spin, until a descriptor may be free.
  private func pauseAccepting() {
    guard listenerToken != nil else { return }
    leaveListener()
    let timer = RetryTimer { [weak self] in self?.resumeAccepting() }
    retry = timer
    timer.token = loop.schedule(after: Self.retrySeconds, timer)
  }

  private func leaveListener() {
    if let token = listenerToken { loop.remove(token, listener.descriptor) }
    listenerToken = nil
  }

  private func resumeAccepting() {
    if let token = retry?.token { loop.forget(token) }
    retry = nil
    guard listenerToken == nil, !isStopping else { return }
    listenerToken = loop.addShared(listener.descriptor, self)
  }

  // MARK: Stopping

  /// Stops accepting, lets connections finish their current request, and breaks off those that take longer. Returns
  /// immediately and needs no free thread.
  func stop(within seconds: Double) {
    loop.async { [self] in beginStop(seconds) }
  }

  /// Waits until the last connection has ended. Call it once, after `stop`.
  func ended() async {
    await withCheckedContinuation { continuation in
      loop.async { [self] in
        whenEmpty = continuation
        finishIfEmpty()
      }
    }
  }

  private func beginStop(_ seconds: Double) {
    isStopping = true
    loop.refreshNow()
    leaveListener()
    later(seconds) { $0.giveUp() }
    for connection in Array(connections.values) { connection.stop() }
    finishIfEmpty()
  }

  private func giveUp() {
    later(Self.cleanUpSeconds) { $0.breakOffAll() }
    for connection in Array(connections.values) { connection.giveUp() }
  }

  private func breakOffAll() {
    later(Self.cleanUpSeconds) { worker in
      worker.hasGivenUp = true
      worker.finishIfEmpty()
    }
    for connection in Array(connections.values) { connection.breakOff() }
  }

  /// Schedules the next step of stopping, unless everything ends earlier.
  private func later(_ seconds: Double, _ step: @escaping (LoopWorker) -> Void) {
    if let token = stopTimer?.token { loop.forget(token) }
    let timer = RetryTimer { [weak self] in self.map(step) }
    stopTimer = timer
    timer.token = loop.schedule(after: seconds, timer)
  }

  private func finishIfEmpty() {
    if isStopping, hasGivenUp || connections.isEmpty && handlerCount == 0 { finish() }
  }

  private func finish() {
    guard let continuation = whenEmpty else { return }
    for timer in [retry, stopTimer] { if let token = timer?.token { loop.forget(token) } }
    (retry, stopTimer, whenEmpty) = (nil, nil, nil)
    workers = []
    loop.end()
    continuation.resume()
  }
}

/// A deadline that doesn't belong to a connection.
private final class RetryTimer: EventHandler {
  var token: EventLoop.Token?
  private let action: () -> Void

  init(_ action: @escaping () -> Void) {
    self.action = action
  }

  func handle(_ readiness: Readiness) {}
  func deadlineReached(_ deadline: Instant) { action() }
}
