import AudioIO
import Media
import Processing
import Storage
import Terms

/// Reads a whole recording: writes its waveform and, if needed, its working copy, and finds its actual length and its
/// noise regions.
enum WaveformJob: JobDefinition {
  /// Measured for MP3.
  private static let samplesPerSecond = 40e6
  static let threadLimit = Int.max

  static func cost(samples: Double) -> JobSchedule.Work { .init(seconds: samples / samplesPerSecond, isWaveform: true) }

  static func writtenRecording(of job: Job) -> RecordingID? { job.recording }

  static func work(of attempt: JobAttempt) -> (work: WorkerRequest.Work, source: String)? {
    let copy = attempt.source.mediaFacts.map { WorkingCopy($0, at: attempt.path("working")) }
    let work = WaveformWork(
      pyramid: attempt.path("pyramid"), copy: copy, soundMap: copy == nil ? attempt.path("map") : nil,
      findsNoiseRegions: true)
    return (work: .waveform(work), source: attempt.original)
  }

  static func record(_ outcome: JobOutcome) throws(StorageError) -> Job? {
    let job = outcome.job
    guard case .waveform(let work) = outcome.request.work, case .analyzed(let analysis) = outcome.report,
      let recording = try outcome.catalog.recording(job.recording)
    else { return nil }
    outcome.settings.willAddFiles(job.id)
    if let map = work.soundMap, let audio = recording.audioFile {
      outcome.store.move(map, to: job.recording, name: SampleWindow.mapPath(of: audio))
    }
    var working: StoredFile?
    if let path = work.copy?.path {
      let ending = recording.audioFormat?.fileExtension ?? "wav"
      // Replaces a file with the same content, so that readers that have its path can continue.
      working = try outcome.add(path, as: recording.workingFile ?? "working-\(job.id).\(ending)")
    }
    let file = try outcome.add(work.pyramid, as: job.pyramidName)
    return try outcome.finish(JobResult(recording: job.recording)) {
      $0.waveformState = .ready
      $0.waveformFile = file.name
      if let working { ($0.workingFile, $0.workingBytes) = (working.name, working.bytes) }
      $0.format.setLength(frames: analysis.frames)
      if $0.derivedFrom == nil {
        $0.warnings = analysis.warnings
      } else {
        // The job that produced the recording has already reported its warnings.
        $0.warnings.removeAll { $0.code == Warning.damagedWaveformCode }
      }
      $0.noiseRegions = analysis.noiseRegions
    }
  }
}
