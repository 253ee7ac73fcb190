import Storage
import Terms
import Workers

/// Removes the noise from a recording. The result is a new recording with its waveform. The job's row contains
/// `DenoiseParameters`.
enum DenoiseJob: JobDefinition {
  private static let samplesPerSecond = 8e6
  static let threadLimit = 2

  static func cost(samples: Double) -> JobSchedule.Work { .init(seconds: samples / samplesPerSecond) }

  static func writtenRecording(of job: Job) -> RecordingID? { job.output }

  static func work(of attempt: JobAttempt) throws(StorageError) -> (work: WorkerRequest.Work, source: String)? {
    guard let asked = RowJSON.value(DenoiseParameters.self, from: attempt.job.parameters) else { return nil }
    let (source, copy) = try attempt.sound()
    var work = DenoiseWork(asked, output: attempt.path("audio"), findsNoiseRegions: true)
    work.noiseRegions = attempt.source.noiseRegions
    work.pyramid = attempt.path("pyramid")
    work.copy = copy
    if attempt.source.mediaFacts != nil { work.texts = attempt.source.tags?.copied }
    if profile(of: attempt.job) != nil { work.profilePath = profilePath(of: attempt) }
    if asked.format == .same, let facts = attempt.source.mediaFacts { try work.keepKind(facts, of: attempt) }
    return (work: .denoise(work), source: source)
  }

  static func prepare(_ attempt: JobAttempt, _ catalog: Catalog, _ scratch: Scratch) throws {
    guard let name = profile(of: attempt.job) else { return }
    guard let id = KeptProfileID(name),
      let profile = try catalog.of(attempt.job.tenant).noiseProfile(id, evenDeleted: true)
    else { throw JobsError.noiseProfileIsGone(name) }
    try scratch.disk.write(profile.spectrum, toWorkFile: profilePath(of: attempt))
  }

  /// Whether this node has the weights for which the job was planned, if it needs any.
  static func suits(_ job: Job, _ settings: WorkerSettings) -> Bool {
    guard let weights = RowJSON.value(DenoiseParameters.self, from: job.parameters)?.weights else { return true }
    return weights == VoiceFile.version && VoiceFile.isInstalled(at: settings.voice)
  }

  /// Returns the ID of the noise profile that the job uses, if there is one.
  private static func profile(of job: Job) -> String? {
    guard case .profile(let id) = RowJSON.value(DenoiseParameters.self, from: job.parameters)?.noise else { return nil }
    return id
  }

  private static func profilePath(of attempt: JobAttempt) -> String { attempt.path("profile.json") }

  static func record(_ outcome: JobOutcome) throws(StorageError) -> Fenced<Job>? {
    guard case .denoise(let work) = outcome.request.work, case .denoised(let cleaned) = outcome.report,
      let pyramid = work.pyramid
    else { return nil }
    let made = ResultFiles(
      output: work.output, replacement: work.replacement, pyramid: pyramid, frames: cleaned.frames,
      noiseRegions: cleaned.noiseRegions)
    let warnings = try self.warnings(cleaned, outcome)
    return try outcome.keep(made, warnings) { output in
      JobResult(
        recording: output, noise: cleaned.noise, profile: cleaned.profile, link: cleaned.link,
        clippedSamples: cleaned.clippedSamples, noiseLevel: cleaned.noiseLevel, voice: cleaned.voice,
        loudness: cleaned.loudness, warnings: warnings)
    }
  }

  /// Returns the warnings for the result: the worker's, and the source's if the worker read its working copy, in which
  /// the errors of the original file no longer show. Warnings about the source's file that don't concern its sound are
  /// left out.
  private static func warnings(_ cleaned: DenoiseOutcome, _ outcome: JobOutcome) throws(StorageError) -> [Warning] {
    var told = cleaned.warnings.filter { Warning.isOfSound($0.code) || Warning.isOfResult($0.code) }
    guard let source = try outcome.catalog.recording(outcome.job.recording) else { return told }
    let keepsKind = RowJSON.value(DenoiseParameters.self, from: outcome.job.parameters)?.format == .same
    let target = try outcome.tagTarget(from: source)
    told += Warning.ofTags(source.tags, in: target) + target.warnings
    let changed = keepsKind ? source.mediaFacts.map(Warning.ofKind) ?? source.audioFormat.map(Warning.ofKind) ?? [] : []
    guard let facts = source.mediaFacts else { return told + changed }
    // The source's other tracks are copied to the result.
    let keepsTracks = keepsKind && facts.writtenCodec != nil && !told.contains { $0.code == "tracks_left_out" }
    return told + changed
      + source.warnings.filter { known in
        (Warning.isOfSound(known.code) || keepsTracks && known.code == "audio_tracks_left_out")
          && !told.contains { $0.code == known.code }
      }
  }
}

extension DenoiseWork {
  /// Sets the result's format to the source's, if that can be written.
  fileprivate mutating func keepKind(_ facts: MediaFacts, of attempt: JobAttempt) throws(StorageError) {
    guard facts.writtenCodec == nil else {
      replacement = .init(of: try attempt.original(), facts, output: output)
      output = attempt.path("working")
      return
    }
    // If the source's kind of file can't be written, the result is WAV or FLAC. `same` would be the container of the
    // working copy, which is RF64 if it is long.
    parameters.format = facts.workingFormat.container == .flac ? .flac : .wav
  }
}
