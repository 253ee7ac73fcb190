import Glibc
import Terms
import Workers

/// Why the service killed a worker.
enum Overrun: Sendable, Equatable {
  /// It reported no progress for this long.
  case stalled(seconds: Double)
  /// It ran for longer than this limit.
  case tooLong(seconds: Double)
  /// The disk was almost full.
  case diskFull
}

extension WorkerFailure {
  /// Creates the failure, with a text for the client, of a worker that ended without reporting one itself.
  init(_ exit: WorkerExit, _ overrun: Overrun?, _ fence: WorkerFence) {
    let work = "The work on this recording"
    switch (overrun, exit) {
    case (.stalled(let seconds), _):
      self.init(code: "stalled", detail: "\(work) made no progress for \(Self.shown(seconds)) s.", retry: true)
    case (.tooLong(let seconds), _):
      self.init(code: "time_limit", detail: "\(work) took more than \(Self.shown(seconds)) s.", retry: true)
    case (.diskFull, _):
      self = .diskFull
    case (nil, .signal(SIGXCPU)):
      self.init(
        code: "cpu_limit", detail: "\(work) took more than \(fence.processorSeconds) s of processor time.", retry: true)
    case (nil, .signal(SIGXFSZ)):
      self.init(
        code: "output_limit", detail: "\(work) wrote a file of more than \(fence.outputBytes) bytes.", retry: true)
    case (nil, .signal(SIGKILL)):
      self.init(
        code: "worker_failed",
        detail: "\(work) was killed (signal 9), perhaps by the system because memory ran out.", retry: true)
    case (nil, .signal(let number)) where [SIGILL, SIGTRAP].contains(number):
      self.init(
        code: "worker_failed", detail: "\(work) ended by a fault of the service (signal \(number)).", retry: true)
    case (nil, .signal(let number)):
      self.init(
        code: "worker_failed", detail: "\(work) crashed (signal \(number)); the file may be damaged.", retry: true)
    case (nil, .exceeded(.bytes(let limit))):
      self.init(code: "output_limit", detail: "\(work) wrote files of more than \(limit) bytes in all.", retry: true)
    case (nil, .exceeded(.files(let limit))):
      self.init(code: "output_limit", detail: "\(work) wrote more than \(limit) files.", retry: true)
    case (nil, .exceeded(.threads(let limit))):
      self.init(code: "worker_failed", detail: "\(work) started more than \(limit) threads.", retry: true)
    case (nil, .status(let status)):
      self.init(code: "worker_failed", detail: "\(work) ended without a result (status \(status)).", retry: true)
    case (nil, .notStarted(let number)):
      self.init(code: "worker_failed", detail: "\(work) could not be started (errno \(number)).", retry: true)
    }
  }

  private static func shown(_ seconds: Double) -> String {
    seconds >= 1 ? "\(Int64(min(seconds, 1e12)))" : "\(seconds)"
  }
}
