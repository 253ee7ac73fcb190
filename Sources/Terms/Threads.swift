import Dispatch
import Glibc
import Synchronization

/// Threads for work beside the calling thread's.
///
/// What workers run doesn't use Dispatch's threads. Dispatch watches those of its global queues once a second by
/// opening `/proc/<tid>/stat`, and ends the process if that fails, as it does in a fence. And a fence also prevents
/// starting threads, after which Dispatch waits forever for one.
package final class Threads: Sendable {
  /// The threads of this process.
  package static let shared = Threads()

  private typealias Work = @Sendable () -> Void

  private final class Waiting: Sendable {
    let work = Mutex<Work?>(nil)
    let hasWork = DispatchSemaphore(value: 0)
  }

  /// The number of threads that are kept for later work.
  private static let mostIdle = 8
  /// Decoders need more than what some systems and settings give to threads.
  private static let stackBytes = 8 << 20

  /// Threads without work, the last used at the end.
  private let idle = Mutex<[Waiting]>([])

  /// Creates a set of threads, of which none has started.
  package init() {}

  /// The number of threads that wait for work. For tests.
  package var idleCount: Int { idle.withLock(\.count) }

  /// Starts this number of threads, at most 8, which wait for work.
  package func prepare(_ count: Int) {
    precondition(count <= Self.mostIdle, "more threads than are kept")
    for _ in 0..<count {
      let waiting = Waiting()
      idle.withLock { $0.append(waiting) }
      guard Self.start({ [self] in serve(waiting) }) else { return idle.withLock { $0.removeAll { $0 === waiting } } }
    }
  }

  /// Runs `work`, which may block, on a thread of its own. Returns false if no thread is free and none can be started;
  /// then `work` isn't run.
  package func run(_ work: @escaping @Sendable () -> Void) -> Bool {
    if let waiting = idle.withLock({ $0.popLast() }) {
      waiting.work.withLock { $0 = work }
      waiting.hasWork.signal()
      return true
    }
    return Self.start { [self] in
      work()
      let waiting = Waiting()
      if keep(waiting) { serve(waiting) }
    }
  }

  /// Does one piece of work after the other.
  private func serve(_ waiting: Waiting) {
    repeat {
      waiting.hasWork.wait()
      waiting.work.withLock { $0.take() }?()
    } while keep(waiting)
  }

  private func keep(_ waiting: Waiting) -> Bool {
    idle.withLock { idle in
      guard idle.count < Self.mostIdle else { return false }
      idle.append(waiting)
      return true
    }
  }

  private final class Start {
    let work: Work
    init(_ work: @escaping Work) { self.work = work }
  }

  /// Runs `work` on a new thread, which then ends. Returns false if none can be started.
  package static func start(_ work: @escaping @Sendable () -> Void) -> Bool {
    var attributes = pthread_attr_t()
    unsafe pthread_attr_init(&attributes)
    defer { unsafe _ = pthread_attr_destroy(&attributes) }
    unsafe pthread_attr_setstacksize(&attributes, stackBytes)
    unsafe pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    let start = unsafe Unmanaged.passRetained(Start(work))
    var thread = pthread_t()
    let failure = unsafe pthread_create(
      &thread, &attributes,
      { argument in
        if let argument = unsafe argument {
          unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().work()
        }
        return nil
      }, start.toOpaque())
    if failure != 0 { unsafe start.release() }
    return failure == 0
  }
}
