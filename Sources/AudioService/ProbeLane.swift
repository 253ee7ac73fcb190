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
  /// Throws `.rejectedByProbe` if it is no sound or breaks a limit, `.workerUnavailable` if the service could not look at
  /// it. A look that failed is tried once more: it may have met a moment without memory. A decoder that fails on the same
  /// file again is to blame if it fails on any sound, else the file is: a hostile one is not to be sent again for ever.
  func probe(path: String) async throws(ServiceError) -> Probe {
    var verdict = await look(at: path)
    if verdict.isWorthAnother { verdict = await look(at: path) }
    switch verdict {
    case .holds(let probe): return probe
    case .refused(let code, let detail): throw .rejectedByProbe(code: code, detail: detail)
    case .failed(let reason): throw .workerUnavailable(reason: reason)
    case .decoderFailed(let isFFmpeg):
      if isFFmpeg, await !ffmpegWorks() {
        throw .workerUnavailable(reason: "ffmpeg fails on a known sound as it does on this file")
      }
      throw .rejectedByProbe(
        code: "unsupported_media", detail: "The file looks like sound, but the decoder failed on it.")
    }
  }

  private func look(at path: String) async -> ProbeVerdict {
    let (report, exit) = await lane.run(["probe", path] + Self.untilClosed + limitArguments)
    return ProbeVerdict(report, exit)
  }

  private func ffmpegWorks() async -> Bool {
    await lane.run(["check-ffmpeg"] + Self.untilClosed + limitArguments).1 == .status(0)
  }

  private static let untilClosed = ["--until-standard-input-closes"]
}
