import Storage
import Workers

extension WorkerRequest {
  /// Creates the request for an attempt's worker. Throws if the job's row can't be read, or a
  /// file can't be fetched.
  init(_ attempt: JobAttempt, _ settings: WorkerSettings) throws {
    let (job, source) = (attempt.job, attempt.source)
    // Another version may have written facts that this one can't read.
    guard source.media == nil || source.mediaFacts != nil, let asked = try job.kind.definition.work(of: attempt) else {
      throw JobsError.unreadableParameters(job.id)
    }
    var fence = WorkerFence.job(on: source, settings)
    // The networks work at 48 kHz, whatever the recording's rate is.
    if case .denoise(let work) = asked.work, work.parameters.settings.method == .voice {
      let seconds = source.format.duration ?? settings.audioLimits.durationSeconds
      fence.processorSeconds += Int64(min(seconds, 1e9))
    }
    self.init(asked.work, on: asked.source, in: attempt.folder, fence: fence, settings)
  }

  /// Creates a request with the service's limits and ffmpeg.
  package init(
    _ work: Work, on source: String, in folder: String? = nil, fence: WorkerFence, _ settings: WorkerSettings
  ) {
    self.init(
      work, on: source, in: folder, limits: settings.audioLimits, fence: fence, ffmpeg: settings.ffmpeg,
      voice: settings.voice)
  }
}
