import Dispatch
import Synchronization

/// One loop's share of the server: it accepts, hands new connections to the loop that has fewest, and knows its own.
/// Confined to the loop's queue but for `connectionCount`.
final class LoopWorker: EventHandler, @unchecked Sendable {
  let loop: EventLoop
  private let core: ServerCore
  private let listener: ListeningSocket
  /// All of them, set before the loops start.
  private var workers: [LoopWorker] = []
  private var listenerToken: EventLoop.Token?
  private var retry: RetryTimer?
  private var connections: [ObjectIdentifier: HTTPConnection] = [:]
  private var isStopping = false
  private var whenEmpty: CheckedContinuation<Void, Never>?
  private let load = Atomic<Int>(0)

  /// How long to leave clients in the backlog when descriptors are short and no connection closes.
  private static let retrySeconds = 0.1
  /// Answers "503" beyond the limit, so many at a time; past that clients are only hung up on.
  private static let refusalsAtOnce = 32

  init(loop: EventLoop, core: ServerCore, listener: ListeningSocket) {
    (self.loop, self.core, self.listener) = (loop, core, listener)
  }

  /// Begins to accept.
  func start(among workers: [LoopWorker]) {
    loop.start()
    loop.async { [self] in
      self.workers = workers
      listenerToken = loop.addShared(listener.descriptor, self)
    }
  }

  // MARK: Accepting

  /// A few at a time, so that the other loops get their share and clients already served their turn.
  func handle(_ readiness: Readiness) {
    for _ in 0..<8 {
      switch listener.accept() {
      case .connection(let descriptor, let peer): assign(descriptor, peer)
      case .none: return
      case .outOfDescriptors: return pauseAccepting()
      }
    }
  }

  func deadlineReached() {}

  private func assign(_ descriptor: Int32, _ peer: SocketAddress) {
    let isAdmitted = core.admit()
    if !isAdmitted, core.openCount > core.connectionLimit + Self.refusalsAtOnce {
      core.countOut()
      return Socket(adopting: descriptor).close()
    }
    let worker = workers.min { $0.load.load(ordering: .relaxed) < $1.load.load(ordering: .relaxed) } ?? self
    worker.load.wrappingAdd(1, ordering: .relaxed)
    let socket = Socket(adopting: descriptor)
    let peer = peer.description
    worker.loop.execute { worker.adopt(socket, peer, isAdmitted: isAdmitted) }
  }

  private func adopt(_ socket: Socket, _ peer: String, isAdmitted: Bool) {
    loop.refreshNow()
    let connection = HTTPConnection(socket, peer: peer, loop: loop, core: core)
    connection.worker = self
    connections[ObjectIdentifier(connection)] = connection
    if isStopping {
      socket.close()
      core.closed(connection, on: loop)
    } else if !isAdmitted {
      connection.openBusy()
    } else {
      connection.open()
    }
  }

  func closed(_ connection: HTTPConnection) {
    dispatchPrecondition(condition: .onQueue(loop.queue))
    connections[ObjectIdentifier(connection)] = nil
    load.wrappingSubtract(1, ordering: .relaxed)
    if retry != nil { resumeAccepting() }
    finishIfEmpty()
  }

  /// Out of descriptors: the listener is left alone, so that the loop does not spin on it, until one may be free.
  private func pauseAccepting() {
    guard let token = listenerToken else { return }
    loop.remove(token, listener.descriptor)
    listenerToken = nil
    let timer = RetryTimer { [weak self] in self?.resumeAccepting() }
    retry = timer
    timer.token = loop.schedule(after: Self.retrySeconds, timer)
  }

  private func resumeAccepting() {
    if let token = retry?.token { loop.forget(token) }
    retry = nil
    guard listenerToken == nil, !isStopping else { return }
    listenerToken = loop.addShared(listener.descriptor, self)
  }

  // MARK: Stopping

  /// Stops accepting, lets the connections finish what they do, and breaks off those that take longer.
  func stop(within seconds: Double) async {
    await withCheckedContinuation { continuation in
      loop.async { [self] in beginStop(seconds, continuation) }
    }
  }

  private func beginStop(_ seconds: Double, _ continuation: CheckedContinuation<Void, Never>) {
    isStopping = true
    loop.refreshNow()
    if let token = listenerToken { loop.remove(token, listener.descriptor) }
    listenerToken = nil
    whenEmpty = continuation
    retry = RetryTimer { [weak self] in self?.breakOffAll() }
    if let retry { retry.token = loop.schedule(after: seconds, retry) }
    for connection in Array(connections.values) { connection.stop() }
    finishIfEmpty()
  }

  private func breakOffAll() {
    for connection in Array(connections.values) { connection.breakOff() }
  }

  private func finishIfEmpty() {
    guard isStopping, connections.isEmpty, let continuation = whenEmpty else { return }
    whenEmpty = nil
    workers = []
    loop.end()
    continuation.resume()
  }
}

/// A deadline that is not a connection's.
private final class RetryTimer: EventHandler {
  var token: EventLoop.Token?
  private let action: () -> Void

  init(_ action: @escaping () -> Void) {
    self.action = action
  }

  func handle(_ readiness: Readiness) {}
  func deadlineReached() { action() }
}
