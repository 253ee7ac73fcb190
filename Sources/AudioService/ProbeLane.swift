import Processing

/// Short children that answer an upload: a lane of their own, so that none waits behind hours of audio.
final class ProbeLane: Sendable {
  private let limitArguments: [String]
  private let lane: WorkerLane

  init(_ configuration: Configuration) {
    limitArguments = configuration.limitArguments + WorkerFence.probe(configuration).arguments
    lane = WorkerLane(configuration, label: "probes", timeoutSeconds: 30)
  }

  /// What the file at `path` holds.
  ///
  /// Throws `.rejectedByProbe` where it is no sound or breaks a limit, `.workerUnavailable` where the child died of it.
  func probe(path: String) async throws(ServiceError) -> Probe {
    let (report, exit) = await lane.run(["probe", path, "--until-standard-input-closes"] + limitArguments)
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
}
