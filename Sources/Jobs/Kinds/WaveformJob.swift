import Labels
import Storage
import Terms
import Workers

/// Reads a whole recording: writes its waveform and, if needed, its working copy, and finds its actual length and its
/// noise regions.
enum WaveformJob: JobDefinition {
  /// Measured for MP3.
  private static let samplesPerSecond = 40e6
  static let threadLimit = Int.max

  static func cost(samples: Double) -> JobSchedule.Work { .init(seconds: samples / samplesPerSecond, isWaveform: true) }

  static func writtenRecording(of job: Job) -> RecordingID? { job.recording }

  static func work(of attempt: JobAttempt) throws(StorageError) -> (work: WorkerRequest.Work, source: String)? {
    let copy = attempt.source.mediaFacts.map { WorkingCopy($0, at: attempt.path("working")) }
    var work = WaveformWork(
      pyramid: attempt.path("pyramid"), copy: copy, soundMap: copy == nil ? attempt.path("map") : nil,
      findsNoiseRegions: true)
    let format = attempt.source.format
    // A cleaned recording has its source's labels.
    if attempt.source.derivedFrom == nil {
      work.labels = EmbeddedLabelsWork(
        output: attempt.path("labels"), sampleRate: format.sampleRate, codec: format.codec)
    }
    return (work: .waveform(work), source: try attempt.original())
  }

  static func record(_ outcome: JobOutcome) throws(StorageError) -> Fenced<Job>? {
    let job = outcome.job
    guard case .waveform(let work) = outcome.request.work, case .analyzed(let analysis) = outcome.report else {
      return nil
    }
    guard let recording = try outcome.catalog.recording(job.recording) else { return try outcome.refused() }
    outcome.settings.willAddFiles(job.id)
    let mapKey = recording.audioKey?.map
    var mapBytes = recording.mapBytes
    if let map = work.soundMap, let mapKey { mapBytes = outcome.blobs.offer(map, as: mapKey) ?? mapBytes }
    var working: StoredFile?
    if let path = work.copy?.path {
      let ending = recording.audioFormat?.fileExtension ?? "wav"
      working = try outcome.add(path, as: outcome.token.fileName("working", ending))
    }
    let file = try outcome.add(work.pyramid, as: outcome.token.pyramidName)
    let tracks = try embeddedTracks(of: recording, work, outcome)
    do {
      return try outcome.finish(JobResult(recording: job.recording), adding: tracks) { [working, mapBytes] in
        if let working { $0.noteWorkingCopy(working) }
        $0.mapBytes = mapBytes
        note(analysis, pyramid: file.key, bytes: file.bytes, in: &$0)
      }
    } catch {
      // The attempt's other files have its name.
      if case .limitReached = error, recording.mapBytes == nil, let mapKey { outcome.blobs.delete(mapKey) }
      throw error
    }
  }

  /// Notes in a recording that its waveform is ready.
  static func note(_ analysis: Analysis, pyramid: ObjectKey, bytes: Int64?, in recording: inout Recording) {
    recording.waveformState = .ready
    (recording.waveformKey, recording.waveformBytes) = (pyramid, bytes)
    recording.format.setLength(frames: analysis.frames)
    if recording.derivedFrom == nil {
      recording.warnings = analysis.warnings
    } else {
      // The job that produced the recording has already reported its warnings.
      recording.warnings.removeAll { $0.code == Warning.damagedWaveformCode }
    }
    recording.noiseRegions = analysis.noiseRegions
    // Only a decoder that was taken over reports something else.
    if let tags = analysis.tags, tags.isPlausible(fileBytes: recording.bytes ?? 0) { recording.tags = tags }
  }

  /// Returns the tracks that the worker found in the recording's file; none if the waveform was built before, because
  /// the user may have deleted them since.
  private static func embeddedTracks(
    of recording: Recording, _ work: WaveformWork, _ outcome: JobOutcome
  ) throws(StorageError) -> [(track: LabelTrack, chunks: [LabelChunk])] {
    guard let path = work.labels?.output else { return [] }
    let tracks = try embeddedTracks(of: recording.id, in: path, outcome.scratch, at: outcome.catalog.time)
    guard !tracks.isEmpty,
      try outcome.catalog.latestJob(kind: .waveform, state: .succeeded, of: recording.id) == nil
    else { return [] }
    return tracks
  }

  /// Returns the tracks in a file that a worker has written; none if there is no such file.
  static func embeddedTracks(
    of recording: RecordingID, in path: String, _ scratch: Scratch, at time: Timestamp
  ) throws(StorageError) -> [(track: LabelTrack, chunks: [LabelChunk])] {
    guard let bytes = try scratch.disk.contents(ofWorkFile: path, limit: Int64(EmbeddedLabels.documentLimit)),
      // Only a decoder that was taken over writes something else.
      let found = try? EmbeddedLabels(parsing: bytes)
    else { return [] }
    return found.tracks.map { embedded in
      let kind = LabelTrack.Kind(rawValue: embedded.kind.rawValue) ?? .labels
      var track = LabelTrack(
        of: recording, name: embedded.name ?? LabelTrack.name(of: kind), kind: kind, language: embedded.language,
        source: .embedded, at: time)
      let chunks = track.chunks(of: embedded.labels)
      return (track, chunks)
    }
  }
}
