import AudioIO
import Media
import Processing
import Storage
import Terms

/// Turns what a child left into rows and files.
struct JobOutcome {
  private let job: Job
  private let report: WorkerReport
  private let request: WorkerRequest
  private let store: MediaStore
  private let settings: JobSettings

  init(
    _ job: Job, _ report: WorkerReport, of request: WorkerRequest, store: MediaStore, _ settings: JobSettings
  ) {
    self.job = job
    self.report = report
    self.request = request
    self.store = store
    self.settings = settings
  }

  /// Makes the files durable, then job and recording finished in one transaction. The job as it is then, nil where it
  /// is gone. A job that was cancelled meanwhile stays so, and its files go with the folder they are in.
  func record(in catalog: Catalog) throws(StorageError) -> Job? {
    switch (request.work, report) {
    case (.waveform(let work), .analyzed(let analysis)): try record(analysis, of: work, in: catalog)
    case (.denoise(let work), .denoised(let outcome)): try record(outcome, of: work, in: catalog)
    case (.convert(let work), .converted): try recordConversion(work, in: catalog)
    default: nil
    }
  }

  private func record(_ analysis: Analysis, of work: WaveformWork, in catalog: Catalog) throws(StorageError) -> Job? {
    guard let recording = try catalog.recording(job.recording) else { return nil }
    settings.willAddFiles(job.id)
    if let map = work.soundMap, let audio = recording.audioFile {
      store.move(map, to: job.recording, name: SampleWindow.mapPath(of: audio))
    }
    var working: StoredFile?
    if let path = work.copy?.path {
      let ending = recording.audioFormat?.fileExtension ?? "wav"
      // One that is there holds the same: whoever has its path reads on.
      working = try adopt(path, name: recording.workingFile ?? "working-\(job.id).\(ending)")
    }
    let file = try adopt(work.pyramid, name: job.pyramidName)
    return try finish(JobResult(recording: job.recording), recording: job.recording, in: catalog) {
      $0.waveformState = .ready
      $0.waveformFile = file.name
      if let working { ($0.workingFile, $0.workingBytes) = (working.name, working.bytes) }
      $0.format.setLength(frames: analysis.frames)
      if $0.derivedFrom == nil {
        $0.warnings = analysis.warnings
      } else {
        // What its own job said is not said again by a reading of what that made.
        $0.warnings.removeAll { $0.code == Warning.damagedWaveformCode }
      }
      $0.noiseRegions = analysis.noiseRegions
    }
  }

  /// Adds a file to the folder of the job's recording. Throws if the recording has been deleted meanwhile and its
  /// folder is gone; a folder that is still there goes with all that is in it.
  private func adopt(_ path: String, name: String) throws(StorageError) -> StoredFile {
    try store.adopt(path: path, as: job.recording, name: name, makesFolder: false)
  }

  /// The conversion's row comes first: after a crash in between the job runs again, and its file takes the place of
  /// this.
  private func recordConversion(_ work: ConvertWork, in catalog: Catalog) throws(StorageError) -> Job? {
    guard try catalog.recording(job.recording) != nil else { return nil }
    settings.willAddFiles(job.id)
    let stored = try adopt(work.output, name: "converted-\(job.id).\(work.format)")
    let conversion = Conversion(
      recording: job.recording, format: work.format.rawValue, file: stored.name, bytes: stored.bytes,
      sha256: stored.sha256)
    guard let forgotten = try catalog.keep(conversion, limit: settings.maximumConversionBytes) else { return nil }
    for one in forgotten { store.remove(one.file, of: one.recording) }
    return try catalog.update(job.id) { job in
      guard !job.state.isFinished else { return }
      job.state = .succeeded
      job.progress = 1
      job.finishedAt = .now
      job.result = RowJSON.text(JobResult(recording: job.recording))
    }
  }

  private func record(_ outcome: DenoiseOutcome, of work: DenoiseWork, in catalog: Catalog) throws(StorageError) -> Job?
  {
    guard let output = job.output, let made = try catalog.recording(output), let path = work.pyramid else { return nil }
    settings.willAddFiles(job.id)
    let fileExtension = made.fileExtension ?? "audio"
    let audio = try store.adopt(
      path: work.replacement?.output ?? work.output, as: output, name: "audio.\(fileExtension)")
    let pyramid = try store.adopt(path: path, as: output, name: job.pyramidName)
    var working: StoredFile?
    if work.replacement != nil {
      let ending = made.audioFormat?.fileExtension ?? "wav"
      working = try store.adopt(path: work.output, as: output, name: "working-\(job.id).\(ending)")
    }
    let result = JobResult(
      recording: output, noise: outcome.noise, profile: outcome.profile, clippedSamples: outcome.clippedSamples)
    let warnings = try self.warnings(of: outcome, in: catalog)
    return try finish(result, recording: output, in: catalog) {
      $0.waveformState = .ready
      $0.waveformFile = pyramid.name
      $0.warnings = warnings
      $0.noiseRegions = outcome.noiseRegions
      $0.audioFile = audio.name
      if let working { ($0.workingFile, $0.workingBytes) = (working.name, working.bytes) }
      $0.bytes = audio.bytes
      $0.sha256 = audio.sha256
      $0.format.setLength(frames: outcome.frames)
    }
  }

  /// What the job told, and what its source's first reading did, where the job read a working copy, which has no
  /// faults. What is wrong with the source's file alone is not said of the result's.
  private func warnings(of outcome: DenoiseOutcome, in catalog: Catalog) throws(StorageError) -> [Warning] {
    let told = outcome.warnings.filter { Warning.isOfSound($0.code) || Warning.isOfResult($0.code) }
    guard let source = try catalog.recording(job.recording) else { return told }
    let keepsKind = RowJSON.value(DenoiseParameters.self, from: job.parameters)?.format == .same
    let changed = keepsKind ? source.mediaFacts.map(Warning.ofKind) ?? source.audioFormat.map(Warning.ofKind) ?? [] : []
    guard let facts = source.mediaFacts else { return told + changed }
    // Beside the cleaned track the others stay.
    let keepsTracks = keepsKind && facts.writtenCodec != nil && !told.contains { $0.code == "tracks_left_out" }
    return told + changed
      + source.warnings.filter { known in
        (Warning.isOfSound(known.code) || keepsTracks && known.code == "audio_tracks_left_out")
          && !told.contains { $0.code == known.code }
      }
  }

  /// A job that was cancelled meanwhile makes nothing finished. If the recording that it was making has been deleted,
  /// its folder, which adopting the files has made, is removed.
  private func finish(
    _ result: JobResult, recording: RecordingID, in catalog: Catalog, _ change: (inout Recording) -> Void
  ) throws(StorageError) -> Job? {
    var isWanted = false
    let ended = try catalog.finish(
      job: job.id,
      { job in
        guard !job.state.isFinished else { return }
        isWanted = true
        job.state = .succeeded
        job.progress = 1
        job.finishedAt = .now
        job.result = RowJSON.text(result)
      }, recording: recording, { if isWanted { change(&$0) } })
    if ended.recording == nil, recording == job.output { try store.remove(recording) }
    return ended.job
  }
}

extension Job {
  /// The name of the waveform that it writes, in the recording's folder.
  var pyramidName: String { "waveform-\(id).pyramid" }
}

extension Warning {
  /// The warning of a waveform that was given up, until it is built again.
  package static let damagedWaveformCode = "waveform_damaged"
}

extension Recording {
  /// What is known of a file that ffmpeg reads.
  package var mediaFacts: MediaFacts? { media.flatMap(MediaFacts.init(json:)) }

  /// What the names of its own file end in.
  package var fileExtension: String? { mediaFacts?.fileExtension ?? audioFormat?.fileExtension }

  /// The media type of its own file, as sound.
  package var mediaType: String { mediaFacts?.mediaType ?? audioFormat?.mediaType ?? "application/octet-stream" }

  /// The format that its sound is read in, in AudioIO's terms; FLAC's depth is not kept and counts as 16 bits.
  package var audioFormat: AudioFormat? {
    if media != nil { return mediaFacts?.workingFormat }
    guard let container = AudioContainer(rawValue: format.container),
      let codec = AudioCodec.allCases.first(where: { $0.name == format.codec && $0 != .flacS8 })
    else { return nil }
    return AudioFormat(container: container, codec: codec, sampleRate: format.sampleRate, channels: format.channels)
  }
}
