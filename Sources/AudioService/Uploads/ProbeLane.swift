import Media
import Processing

/// Short children that answer an upload, apart from the hours that jobs take. What ffmpeg has to look at has a lane of
/// its own: a file can keep ffmpeg busy for as long as it is let, and the sound files that libsndfile reads never wait
/// for that.
final class ProbeLane: Sendable {
  private let configuration: Configuration
  private let work: WorkQueue
  let sounds: WorkerLane
  let media: WorkerLane

  init(_ configuration: Configuration, work: WorkQueue) {
    self.configuration = configuration
    self.work = work
    let waiting = WorkerLane.WaitingLimits(
      name: "waiting_probes", total: configuration.maximumWaitingProbes,
      perClient: configuration.maximumWaitingProbesPerClient)
    sounds = WorkerLane(configuration, label: "sound probes", waiting: waiting)
    media = WorkerLane(configuration, label: "media probes", waiting: waiting)
  }

  /// What the file at `path`, of `bytes` bytes, holds.
  ///
  /// Throws `.rejectedByProbe` if it is no sound, breaks a limit or takes too much processor time, `.workerUnavailable`
  /// if the service could not look at it, and what `WorkerLane.run` throws. A look that failed is tried once more: it
  /// may have met a moment without memory. A decoder that fails on the same file again is to blame if it fails on any
  /// sound, else the file is: a hostile one is not to be sent again forever.
  func probe(path: String, bytes: Int64, for client: Client) async throws -> Probe {
    // A look at the first bytes; nothing is decoded here.
    let isMedia = await work.run { Demuxer(path: path) != nil }
    let limits = ProbeLimits(isMedia: isMedia, bytes: bytes)
    var verdict = try await look(at: path, limits, for: client)
    if verdict.isWorthAnother { verdict = try await look(at: path, limits, for: client) }
    switch verdict {
    case .holds(let probe): return probe
    case .refused(let code, let detail): throw ServiceError.rejectedByProbe(code: code, detail: detail)
    case .failed(let reason), .timedOut(let reason): throw ServiceError.workerUnavailable(reason: reason)
    case .decoderFailed(let isFFmpeg):
      if isFFmpeg, try await !ffmpegWorks(limits, for: client) {
        throw ServiceError.workerUnavailable(reason: "ffmpeg fails on a known sound as it does on this file")
      }
      throw ServiceError.rejectedByProbe(
        code: "unsupported_media", detail: "The file looks like sound, but the decoder failed on it.")
    }
  }

  private func look(at path: String, _ limits: ProbeLimits, for client: Client) async throws -> ProbeVerdict {
    ProbeVerdict(try await run(.probe, on: path, limits, for: client))
  }

  private func ffmpegWorks(_ limits: ProbeLimits, for client: Client) async throws -> Bool {
    let ending = try await run(.ffmpegCheck, on: "/dev/null", limits, for: client)
    return ending.exit == .status(0) && ending.report == .ffmpegWorks(true)
  }

  private func run(
    _ work: WorkerRequest.Work, on path: String, _ limits: ProbeLimits, for client: Client
  ) async throws -> WorkerLane.Ending {
    let fence = WorkerFence.probe(configuration, processorSeconds: limits.processorSeconds)
    return try await (limits.isMedia ? media : sounds).run(
      WorkerRequest(work, on: path, fence: fence, configuration), for: client, timeoutSeconds: limits.seconds)
  }
}

/// How long a probe may take: five seconds of processor time and ten by the clock.
///
/// Of a file that libsndfile reads (MP3, Ogg and FLAC) every byte is looked at, so that a longer one gets more: as much
/// as a debug build needs for it. ffmpeg looks at the head alone, with two programs beside the probe itself, which
/// share its time.
struct ProbeLimits: Equatable {
  /// Whether ffmpeg has to look at it.
  let isMedia: Bool
  /// Of each process.
  let processorSeconds: Int64
  /// From the child's start on.
  let seconds: Double

  private static let bytesPerSecond: Int64 = 20_000_000

  init(isMedia: Bool, bytes: Int64) {
    self.isMedia = isMedia
    let more = isMedia ? 0 : max(bytes, 0) / Self.bytesPerSecond
    processorSeconds = isMedia ? 2 : 5 + more
    seconds = 10 + 2 * Double(more)
  }
}
