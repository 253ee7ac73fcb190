import Synchronization

/// A self-contained HTTP/1.1 server on sockets and Dispatch.
///
///     let server = HTTPServer(configuration, responder: Router(routes: [...], problem: ...))
///     let address = try server.start()
///     await server.stop(within: 10)
package final class HTTPServer: Sendable {
  private let core: ServerCore

  struct Running {
    var listener: ListeningSocket
    var workers: [LoopWorker]
  }
  let running = Mutex<Running?>(nil)

  /// Creates a server without starting it.
  package init(_ configuration: HTTPServerConfiguration, responder: any HTTPResponder) {
    core = ServerCore(configuration, responder)
  }

  /// Raises the process's descriptor limit to fit this many connections. Call this before creating the server, which
  /// accepts no more connections than the limit allows.
  package static func raiseDescriptorLimit(forConnections count: Int) {
    ProcessLimits.raiseDescriptors(forConnections: count)
  }

  /// Starts listening and serving, and returns the address listened on. Does not block. Makes the process ignore
  /// SIGPIPE.
  package func start() throws(HTTPServerError) -> SocketAddress {
    guard running.withLock({ $0 == nil }) else { throw .alreadyStarted }
    ProcessLimits.ignoreBrokenPipes()
    let configuration = core.configuration
    let listener = try ListeningSocket(
      host: configuration.host, port: configuration.port, backlog: configuration.limits.backlog)
    var started: [LoopWorker] = []
    for index in 0..<max(1, configuration.loopCount) {
      started.append(
        LoopWorker(
          loop: try EventLoop.take(
            index: index, readBytes: configuration.limits.readBytes, clock: configuration.clock), core: core,
          tally: core.tallies[index], listener: listener))
    }
    for worker in started { worker.start(among: started) }
    running.withLock { [started] in $0 = Running(listener: listener, workers: started) }
    return listener.address
  }

  /// Stops accepting, closes idle connections, and lets current requests finish for up to `seconds` before breaking
  /// them off. Afterwards the server can be started again.
  package func stop(within seconds: Double) async {
    let stopping = running.withLock { running in
      defer { running = nil }
      return running
    }
    guard let stopping, let first = stopping.workers.first else { return }
    // Clients that have connected may have sent a request, which is answered. Those that connect now find another
    // server when they try again, or none.
    stopping.listener.pause()
    await first.acceptWaiting()
    stopping.listener.refuse()
    for worker in stopping.workers { worker.stop(within: seconds) }
    for worker in stopping.workers { await worker.ended() }
  }

  /// The current counters: open connections, requests, and so on.
  package var statistics: ServerStatistics { core.statistics }
}
