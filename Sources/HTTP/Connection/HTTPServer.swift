import Synchronization

/// A self-contained HTTP/1.1 server on sockets and Dispatch.
///
///     let server = HTTPServer(configuration, responder: Router(routes: [...], problem: ...))
///     let address = try server.start()
///     await server.stop(within: 10)
package final class HTTPServer: Sendable {
  private let core: ServerCore

  private struct Running {
    var listener: ListeningSocket
    var workers: [LoopWorker]
  }
  private let running = Mutex<Running?>(nil)

  /// A server that does not run yet.
  package init(_ configuration: HTTPServerConfiguration, responder: any HTTPResponder) {
    core = ServerCore(configuration, responder)
  }

  /// Sees to it that the process may open as many descriptors as so many connections need. Before the server is made,
  /// which takes no more connections than there are descriptors.
  package static func raiseDescriptorLimit(forConnections count: Int) {
    ProcessLimits.raiseDescriptors(forConnections: count)
  }

  /// Listens and serves; returns at once, with the address that is listened on. Ignores SIGPIPE for the process.
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
          loop: try EventLoop.take(index: index, readBytes: configuration.limits.readBytes), core: core,
          tally: core.tallies[index], listener: listener))
    }
    for worker in started { worker.start(among: started) }
    running.withLock { [started] in $0 = Running(listener: listener, workers: started) }
    return listener.address
  }

  /// Stops accepting, finishes what runs, closes idle connections, and breaks off what takes longer than that.
  /// Afterwards the server can be started again.
  package func stop(within seconds: Double) async {
    let stopping = running.withLock { running in
      defer { running = nil }
      return running
    }
    guard let stopping else { return }
    stopping.listener.refuse()
    for worker in stopping.workers { worker.stop(within: seconds) }
    for worker in stopping.workers { await worker.ended() }
  }

  /// Open connections, requests and so on, now.
  package var statistics: ServerStatistics { core.statistics }
}
