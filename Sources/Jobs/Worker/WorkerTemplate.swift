import CLinux
import Dispatch
import Glibc
import Synchronization
import Terms
import Workers

/// A child process that has loaded the program and becomes workers by copying itself, which takes a tenth of the time
/// of starting the program anew.
///
/// It runs `stillwave worker-template`, has one thread, and never sees what a client has sent: a copy reads its request
/// itself, and fences itself in as every worker does. Copies are children of this process, not of the template. All
/// copies have the same addresses in memory, as the workers of one service.
///
/// The service sends an order over a pair of sockets: a message with the worker's niceness, the words for process
/// listings, and the worker's standard input and output. The copy, in its own session by then, answers with its process
/// ID; the template answers an order that it can't follow with 0.
///
/// A template that dies, or whose copy doesn't answer, is replaced. So is one whose copy has crashed: a file that tries
/// out addresses in memory must not find the same ones again.
package final class WorkerTemplate: Sendable {
  /// The number with which a template says that it has loaded the program. No process has it as its ID.
  package static let isReady: Int32 = -1

  private enum State {
    /// There is none, or it has ended. Another is not started before this time.
    case missing(until: Clock.Instant)
    /// It hasn't said that it's ready.
    case loading(Template)
    case ready(Template)
  }

  private struct Template {
    let identifier: pid_t
    let socket: Int32
    let launch: Clock.Instant
  }

  /// How long it may take to follow an order. It takes a millisecond, but longer on a busy machine.
  private static let patienceSeconds = 5
  /// The shortest time between the starts of two templates.
  private static let pause = Duration.seconds(1)
  /// Templates are processes, which take real time to start.
  private static let clock = Clock.system

  private let program: String
  private let state = Mutex(State.missing(until: WorkerTemplate.clock.now))

  /// Starts a template of the program at this path.
  package init(program: String) {
    self.program = program
    state.withLock { launch(&$0) }
  }

  deinit {
    state.withLock { state in
      if case .loading(let template) = state { end(template) }
      if case .ready(let template) = state { end(template) }
    }
  }

  /// What became of an order.
  enum Answer: Equatable {
    /// The worker with this process ID works on it.
    case started(pid_t)
    /// Nobody has received it.
    case notSent
    /// A copy may have received it, and its descriptors; it's being ended.
    case lost
  }

  /// Orders a worker with these descriptors for standard input and output. `words`: for process listings.
  func start(_ words: [String], niceness: UInt8, input: Int32, output: Int32) -> Answer {
    state.withLock { state in
      if case .missing(let pause) = state, pause <= Self.clock.now { launch(&state) }
      // Ready by now?
      if case .loading(let template) = state {
        switch answer(from: template, MSG_DONTWAIT) {
        case Self.isReady: state = .ready(template)
        case nil where errno == EAGAIN: break
        default: remove(template, &state)
        }
      }
      guard case .ready(let template) = state else { return .notSent }
      let order = [niceness] + Array(words.map { $0 + "\0" }.joined().utf8)
      let failure = unsafe order.withUnsafeBytes { order in
        unsafe stillwave_send_order(template.socket, order.baseAddress, order.count, input, output)
      }
      guard failure == 0 else {
        remove(template, &state)
        return .notSent
      }
      guard let worker = answer(from: template, 0) else {
        remove(template, &state)
        return .lost
      }
      return worker > 0 ? .started(worker) : .notSent
    }
  }

  /// Replaces the template before the next order.
  func renew() {
    state.withLock { state in if case .ready(let template) = state { remove(template, &state) } }
  }

  /// Receives a number. Returns nil, with errno, if the template has ended or takes too long.
  private func answer(from template: Template, _ flags: Int) -> Int32? {
    var number: Int32 = 0
    while true {
      let count = unsafe recv(template.socket, &number, MemoryLayout<Int32>.size, Int32(flags))
      if count == MemoryLayout<Int32>.size { return number }
      if count == 0 { errno = ECONNRESET }
      guard count < 0, errno == EINTR else { return nil }
    }
  }

  private func launch(_ state: inout State) {
    let now = Self.clock.now
    state = .missing(until: now + Self.pause)
    var sockets: [Int32] = [-1, -1]
    let kind = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue)
    guard unsafe socketpair(AF_UNIX, kind, 0, &sockets) == 0 else { return }
    defer { close(sockets[1]) }
    var patience = timeval(tv_sec: Self.patienceSeconds, tv_usec: 0)
    unsafe setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    // The last word makes room for the words of its copies.
    let words = ["worker-template", String(repeating: ".", count: 256)]
    guard case .success(let identifier) = SpawnedChild.spawn(program, words, input: sockets[1], output: sockets[1])
    else {
      close(sockets[0])
      return
    }
    state = .loading(Template(identifier: identifier, socket: sockets[0], launch: now))
  }

  private func remove(_ template: Template, _ state: inout State) {
    end(template)
    state = .missing(until: template.launch + Self.pause)
  }

  /// Ends the template and a copy that hasn't answered.
  private func end(_ template: Template) {
    // Copies are in its process group until they are about to answer.
    kill(-template.identifier, SIGKILL)
    // From here on, a copy can't answer, and exits.
    shutdown(template.socket, Int32(SHUT_RDWR))
    var late: [pid_t] = []
    while let copy = answer(from: template, MSG_DONTWAIT), copy > 0 { late.append(copy) }
    close(template.socket)
    for copy in late { kill(-copy, SIGKILL) }
    // The end of a process whose program is on a hanging disk may take a while.
    DispatchQueue.global().async { [late] in
      var status: Int32 = 0
      for copy in late { while unsafe waitpid(copy, &status, 0) < 0 && errno == EINTR {} }
      // All children of its group.
      while unsafe waitpid(-template.identifier, &status, 0) > 0 || errno == EINTR {}
    }
  }
}
