import Denoise
import HTTP
import Jobs
import Storage
import Terms
import Workers

/// The Recording object of the API.
struct RecordingDocument: Encodable, Sendable {
  struct Format: Encodable, Sendable {
    var container, codec: String
    var sampleRate, channels: Int
    @Nullable var frames: Int64?
    @Nullable var duration: Double?
  }

  struct Waveform: Encodable, Sendable {
    var state: String
    var progress: Double
    /// Seconds of the waveform that can be read now.
    var available: Double
    @Nullable var job: String?
    var scales: [Int]
  }

  struct Video: Encodable, Sendable {
    var codec: String
    var width, height: Int
  }

  /// What the file says of itself.
  struct Tags: Encodable, Sendable {
    var title, artist, album, albumArtist, composer, date, track, genre, comment, language, encoder: String?
    var timeReference: Int64?
  }

  struct Cover: Encodable, Sendable {
    var type: String
    var bytes: Int64
    var width, height: Int
  }

  struct DerivedFrom: Encodable, Sendable {
    var recording, job, operation: String
  }

  var id, name, createdAt: String
  @Nullable var bytes: Int64?
  @Nullable var sha256: String?
  var format: Format
  var waveform: Waveform
  @Nullable var video: Video?
  @Nullable var tags: Tags?
  @Nullable var cover: Cover?
  var warnings: [Warning]
  @Nullable var derivedFrom: DerivedFrom?

  init(_ recording: Recording, live: LiveJob?) {
    id = recording.id.text
    name = recording.name
    createdAt = recording.createdAt.rfc3339
    bytes = recording.bytes
    sha256 = recording.sha256
    let format = recording.format
    self.format = Format(
      container: format.container, codec: format.codec, sampleRate: format.sampleRate, channels: format.channels,
      frames: format.frames, duration: format.duration)
    waveform = Waveform(
      state: recording.waveformState.rawValue, progress: 0, available: 0, job: recording.waveformJob?.text,
      scales: Self.scales(frames: format.frames ?? format.estimatedFrames ?? 0))
    if recording.waveformState == .ready {
      (waveform.progress, waveform.available) = (1, format.duration ?? 0)
    } else if let live, recording.waveformState != .failed {
      waveform.state = live.isRunning ? "building" : "queued"
      waveform.progress = live.fraction
      waveform.available = Double(live.progress?.readyFrames ?? 0) / Double(format.sampleRate)
    }
    video = recording.mediaFacts?.video.map { Video(codec: $0.codec, width: $0.width, height: $0.height) }
    tags = recording.tags.flatMap { tags in
      tags.isEmpty
        ? nil
        : Tags(
          title: tags.title, artist: tags.artist, album: tags.album, albumArtist: tags.albumArtist,
          composer: tags.composer, date: tags.date, track: tags.track, genre: tags.genre, comment: tags.comment,
          language: tags.language, encoder: tags.encoder, timeReference: tags.timeReference)
    }
    cover = recording.tags?.cover.map { Cover(type: $0.type, bytes: $0.bytes, width: $0.width, height: $0.height) }
    warnings = recording.warnings
    derivedFrom = recording.derivedFrom.map {
      DerivedFrom(recording: $0.recording.text, job: $0.job.text, operation: $0.operation)
    }
  }

  /// The scales kept ready: 256 frames per pixel and its doublings, up to the first that shows the whole recording in
  /// one pixel.
  private static func scales(frames: Int64) -> [Int] {
    var scales = [256]
    while Int64(scales[scales.count - 1]) < frames, scales[scales.count - 1] < 1 << 24 {
      scales.append(scales[scales.count - 1] * 2)
    }
    return scales
  }
}

/// The Job object of the API.
struct JobDocument: Encodable, Sendable {
  struct Result: Encodable, Sendable {
    var recording: String
    @Nullable var noise: NoiseUsed?
    var profile: PowerSpectrum?
    var link: ChannelLink?
    var clippedSamples: Int64?
    var noiseLevel: NoiseLevelsDocument?
    var voice: VoiceUsed?
    var loudness: LoudnessChangeDocument?
    var warnings: [Warning]?
    var measured: LoudnessDocument?
  }

  struct Failure: Encodable, Sendable {
    var type, title: String
    var status: Int
    var detail, code: String
  }

  var id, kind, recording, state: String
  var progress: Double
  /// Estimated seconds left.
  @Nullable var eta: Double?
  var createdAt: String
  @Nullable var startedAt: String?
  @Nullable var finishedAt: String?
  var attempts: Int
  @Nullable var result: Result?
  @Nullable var error: Failure?

  init(_ job: Job, live: LiveJob?, base: BasePath = .root) {
    id = job.id.text
    kind = job.kind.rawValue
    recording = job.recording.text
    state = job.state.rawValue
    progress = job.progress
    createdAt = job.createdAt.rfc3339
    startedAt = job.startedAt?.rfc3339
    finishedAt = job.finishedAt?.rfc3339
    attempts = job.attempts
    if !job.state.isFinished, let live {
      // All values come from the same moment. The row counts an attempt slightly before its child starts: with that
      // count, the earlier attempt's progress would be shown as the new one's, and the new one's would then look old.
      state = live.isRunning ? "running" : "queued"
      attempts = live.attempts
      if attempts == 0 { startedAt = nil }
      progress = live.fraction
      eta = live.secondsLeft.map { ($0 * 1000).rounded() / 1000 }
    }
    // The recording that a failed or canceled job was producing was removed when the job ended, so it's not named.
    if ![.failed, .cancelled].contains(job.state), let result = RowJSON.value(JobResult.self, from: job.result) {
      self.result = Result(
        recording: result.recording.text,
        noise: result.noise,
        profile: result.profile,
        link: result.link,
        clippedSamples: result.clippedSamples,
        noiseLevel: result.noiseLevel.map(NoiseLevelsDocument.init),
        voice: result.voice,
        loudness: result.loudness.map(LoudnessChangeDocument.init),
        warnings: result.warnings,
        measured: result.measured.map(LoudnessDocument.init))
    }
    error = RowJSON.value(JobError.self, from: job.error).map {
      Failure(
        type: base.absolute(Problem.page(of: $0.code)), title: $0.title, status: $0.status, detail: $0.detail,
        code: $0.code)
    }
  }
}

/// A page of jobs, newest first.
struct JobList: Encodable, Sendable {
  var jobs: [JobDocument]
  @Nullable var nextCursor: String?
}
