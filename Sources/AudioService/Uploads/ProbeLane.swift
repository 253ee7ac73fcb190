import Jobs
import Workers

/// Runs short children that probe an upload, separately from jobs, which can take hours. Files that only ffmpeg can
/// read have a lane of their own: a file can keep ffmpeg busy for the whole time limit, and the audio files that
/// libsndfile reads must never wait for that.
final class ProbeLane: Sendable {
  private let configuration: Configuration
  let sounds: WorkerLane
  let media: WorkerLane

  init(_ configuration: Configuration) {
    self.configuration = configuration
    let waiting = WaitingLimits(
      name: "waiting_probes", total: configuration.maximumWaitingProbes,
      perClient: configuration.maximumWaitingProbesPerClient)
    sounds = WorkerLane(configuration, label: "sound probes", waiting: waiting, isBrief: true)
    media = WorkerLane(configuration, label: "media probes", waiting: waiting)
  }

  /// Returns what is in the file at `path`, which has `bytes` bytes.
  ///
  /// Throws `.rejectedByProbe` if it isn't audio, exceeds a limit, or takes too much processor time,
  /// `.workerUnavailable` if the service couldn't probe it, and the errors of `WorkerLane.run`. A failed probe is
  /// repeated once, because memory or the processor may have been short for a moment. If it fails again, a known sound
  /// is tried: if that fails too, the service is at fault, otherwise the file is, and it's rejected so that its client
  /// doesn't send it again and again.
  ///
  /// With `early`, the same worker builds the waveform if the file is short. A repeated probe doesn't, because that may
  /// be what failed.
  func probe(
    path: String, bytes: Int64, for client: Client, building early: EarlyWaveform? = nil
  ) async throws -> Intake {
    var limits = ProbeLimits(isMedia: false, bytes: bytes)
    var verdict = try await look(at: path, limits, for: client, building: early)
    // Only a worker reads even the first bytes, which tell what kind of file it is.
    if verdict == .needsFFmpeg {
      limits = ProbeLimits(isMedia: true, bytes: bytes)
      verdict = try await look(at: path, limits, for: client)
    }
    if verdict.isWorthAnother { verdict = try await look(at: path, limits, for: client) }
    return try await verdict.intake { try await ffmpegWorks(limits, for: client) }
  }

  private func look(
    at path: String, _ limits: ProbeLimits, for client: Client, building early: EarlyWaveform? = nil
  ) async throws -> ProbeVerdict {
    guard let early else {
      return ProbeVerdict(try await run(.probe, on: path, limits, for: client), isMedia: limits.isMedia)
    }
    let fence = WorkerFence.intake(configuration.workerSettings, processorSeconds: limits.processorSeconds)
    var request = WorkerRequest(
      .intake(early.work), on: path, in: early.folder, fence: fence, configuration.workerSettings)
    request.ffmpeg = WorkerRequest.noFFmpeg
    return ProbeVerdict(try await sounds.run(request, for: client, timeoutSeconds: limits.seconds), isMedia: false)
  }

  private func ffmpegWorks(_ limits: ProbeLimits, for client: Client) async throws -> Bool {
    let ending = try await run(.ffmpegCheck, on: "/dev/null", limits, for: client)
    return ending.exit == .status(0) && ending.report == .ffmpegWorks(true)
  }

  private func run(
    _ work: WorkerRequest.Work, on path: String, _ limits: ProbeLimits, for client: Client
  ) async throws -> WorkerLane.Ending {
    let fence = WorkerFence.probe(configuration.workerSettings, processorSeconds: limits.processorSeconds)
    var request = WorkerRequest(work, on: path, fence: fence, configuration.workerSettings)
    if !limits.isMedia, case .probe = work { request.ffmpeg = WorkerRequest.noFFmpeg }
    return try await (limits.isMedia ? media : sounds).run(request, for: client, timeoutSeconds: limits.seconds)
  }
}

/// Limits of a probe: five seconds of processor time and ten by the clock.
///
/// libsndfile reads every byte of an MP3, Ogg, or FLAC file, so longer files get more time: as much as a debug build
/// needs. ffmpeg reads only the head, in two programs besides the probe itself, which share its time.
struct ProbeLimits: Equatable {
  /// Whether only ffmpeg can read the file.
  let isMedia: Bool
  /// The processor time of each process.
  let processorSeconds: Int64
  /// The time from the child's start.
  let seconds: Double

  private static let bytesPerSecond: Int64 = 20_000_000

  init(isMedia: Bool, bytes: Int64) {
    self.isMedia = isMedia
    let more = isMedia ? 0 : max(bytes, 0) / Self.bytesPerSecond
    processorSeconds = isMedia ? 2 : 5 + more
    seconds = 10 + 2 * Double(more)
  }
}
