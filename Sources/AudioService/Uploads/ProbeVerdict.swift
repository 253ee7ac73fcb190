import Glibc
import Processing
import Terms

/// The outcome of one probe of a file.
enum ProbeVerdict: Sendable, Equatable {
  case holds(Intake)
  /// The file is at fault; `detail` is for the client.
  case refused(code: String, detail: String)
  /// A decoder crashed or ran out of memory, because of the file or a fault of its own.
  case decoderFailed(isFFmpeg: Bool)
  /// The service is at fault; `reason` is for the log.
  case failed(reason: String)
  /// The machine was too busy: had the child had the processor, it would have reached its processor time limit first.
  /// `reason` is for the log.
  case timedOut(reason: String)

  init(_ ending: WorkerLane.Ending) {
    let (report, exit) = (ending.report, ending.exit)
    switch report {
    case .probed(let probe) where exit == .status(0):
      self = .holds(Intake(probe: probe))
      return
    case .takenIn(let intake) where exit == .status(0):
      self = .holds(intake)
      return
    default: break
    }
    if let failure = report?.failure, !failure.retry {
      self = .refused(code: failure.code, detail: failure.detail)
      return
    }
    switch exit {
    case .signal where ending.tookTooLong: self = .timedOut(reason: "the probe took too long")
    case .notStarted(let number): self = .failed(reason: "the probe could not be started (errno \(number))")
    case .signal(SIGKILL): self = .failed(reason: "the probe was killed from outside")
    case .signal(SIGXCPU):
      self = .refused(code: WorkerFailure.probeTooSlow.code, detail: WorkerFailure.probeTooSlow.detail)
    case .signal: self = .decoderFailed(isFFmpeg: false)
    case .status where ["decoder_failed", "memory_limit"].contains(report?.failure?.code):
      self = .decoderFailed(isFFmpeg: true)
    case .status: self = .failed(reason: report?.failure?.detail ?? "the probe gave no answer")
    }
  }

  /// Whether a second probe may succeed.
  var isWorthAnother: Bool {
    switch self {
    case .holds, .refused, .timedOut: false
    case .decoderFailed, .failed: true
    }
  }
}
