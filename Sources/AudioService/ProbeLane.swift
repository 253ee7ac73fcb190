import Dispatch
import Processing

/// Short children that answer an upload: a lane of their own, so that none waits behind hours of audio.
final class ProbeLane: Sendable {
  private let program: String
  private let limitArguments: [String]
  private let queue = DispatchQueue(label: "probes")
  private let places: AsyncPlaces
  private let timeoutSeconds = 30

  init(_ configuration: Configuration) {
    program = configuration.program
    limitArguments = configuration.limitArguments
    places = AsyncPlaces(count: max(2, configuration.workerCount))
  }

  /// What the file at `path` holds.
  ///
  /// Throws `.rejectedByProbe` where it is no sound or breaks a limit, `.workerUnavailable` where the child died of it.
  func probe(path: String) async throws(ServiceError) -> Probe {
    await places.take()
    let (report, exit) = await run(["probe", path, "--until-standard-input-closes"] + limitArguments)
    places.give()
    if let probe = report.probe, exit == .status(0) { return probe }
    if let failure = report.error, !failure.retry {
      throw .rejectedByProbe(code: failure.code, detail: failure.detail)
    }
    switch exit {
    case .signal:
      throw .rejectedByProbe(
        code: "unsupported_media", detail: "The file looks like sound, but the decoder failed on it.")
    case .notStarted(let number): throw .workerUnavailable(reason: "the probe could not be started (errno \(number))")
    case .status: throw .workerUnavailable(reason: report.error?.detail ?? "the probe gave no answer")
    }
  }

  private func run(_ arguments: [String]) async -> (WorkerReport, WorkerExit) {
    await withCheckedContinuation { continuation in
      queue.async { [self] in
        let last = LastReport()
        let worker = WorkerProcess.start(
          program: program, arguments: arguments, queue: queue, onReport: { last.report = $0 },
          onExit: { continuation.resume(returning: (last.report, $0)) })
        queue.asyncAfter(deadline: .now() + .seconds(timeoutSeconds)) { [weak worker] in worker?.kill() }
      }
    }
  }

  private final class LastReport: @unchecked Sendable {  // touched on `queue` only
    var report = WorkerReport()
  }
}
