import Glibc
import Terms
import Workers

/// The outcome of one probe of a file.
enum ProbeVerdict: Sendable, Equatable {
  case holds(Intake)
  /// The file is at fault; `detail` is for the client.
  case refused(code: String, detail: String)
  /// Only ffmpeg can read the file, and this probe had none.
  case needsFFmpeg
  /// The decoder in the child crashed or ran out of memory.
  case decoderFailed
  /// The child or ffmpeg ended without an answer, because of the file, a fault of their own or a lack of memory;
  /// `reason` is for the log.
  case died(reason: String)
  /// The child ran out of time: the machine was too busy, or the file lets it wait. `reason` is for the log.
  case timedOut(reason: String)
  /// The service is at fault, whatever the file is; `reason` is for the log.
  case failed(reason: String)

  /// - Parameter isMedia: whether only ffmpeg can read the file.
  init(_ ending: WorkerLane.Ending, isMedia: Bool) {
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
    if report?.failure?.code == WorkerFailure.needsFFmpegCode {
      self = .needsFFmpeg
      return
    }
    // The service's disk is no fault of the file.
    if let failure = report?.failure, !failure.retry, failure.code != WorkerFailure.diskFull.code {
      self = .refused(code: failure.code, detail: failure.detail)
      return
    }
    switch exit {
    case .signal where ending.tookTooLong: self = .timedOut(reason: "the probe took too long")
    case .notStarted(let number): self = .failed(reason: "the probe could not be started (errno \(number))")
    case .exceeded(let excess): self = .died(reason: "the probe used more than it may (\(excess))")
    case .signal(SIGKILL): self = .died(reason: "the probe was killed from outside")
    case .signal(SIGXCPU):
      self = .refused(code: WorkerFailure.probeTooSlow.code, detail: WorkerFailure.probeTooSlow.detail)
    case .signal: self = .decoderFailed
    case .status where report?.failure?.code == "memory_limit" && !isMedia: self = .decoderFailed
    case .status where ["io_error", WorkerFailure.diskFull.code].contains(report?.failure?.code):
      self = .failed(reason: report?.failure?.detail ?? "")
    case .status: self = .died(reason: report?.failure?.detail ?? "the probe gave no answer")
    }
  }

  /// Whether a second probe may succeed.
  var isWorthAnother: Bool {
    switch self {
    case .holds, .refused, .needsFFmpeg: false
    case .decoderFailed, .died, .timedOut, .failed: true
    }
  }

  /// Returns what the probe found. `worksOnOthers`: whether the probe of a known sound succeeds, which is asked only if
  /// that decides whether the file or the service is at fault.
  func intake(worksOnOthers: () async throws -> Bool) async throws -> Intake {
    switch self {
    case .holds(let intake): return intake
    case .refused(let code, let detail): throw ServiceError.rejectedByProbe(code: code, detail: detail)
    case .failed(let reason): throw ServiceError.workerUnavailable(reason: reason)
    case .needsFFmpeg: throw ServiceError.workerUnavailable(reason: "the probe had no ffmpeg")
    case .died(let reason), .timedOut(let reason):
      guard try await worksOnOthers() else { throw ServiceError.workerUnavailable(reason: reason) }
    case .decoderFailed: break
    }
    if case .timedOut = self {
      throw ServiceError.rejectedByProbe(
        code: WorkerFailure.probeTooSlow.code, detail: WorkerFailure.probeTooSlow.detail)
    }
    throw ServiceError.rejectedByProbe(
      code: "unsupported_media", detail: "The file looks like audio, but the decoder failed on it.")
  }
}
