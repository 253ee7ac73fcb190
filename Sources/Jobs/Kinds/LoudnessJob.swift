import Storage
import Workers

/// Measures a recording's loudness on first request. Its row keeps the result.
enum LoudnessJob: JobDefinition {
  /// Measured for stereo, with true peaks.
  private static let samplesPerSecond = 8e6
  static let threadLimit = 1

  static func cost(samples: Double) -> JobSchedule.Work { .init(seconds: samples / samplesPerSecond) }

  static func writtenRecording(of job: Job) -> RecordingID? { nil }

  static func work(of attempt: JobAttempt) throws(StorageError) -> (work: WorkerRequest.Work, source: String)? {
    let (source, copy) = try attempt.sound()
    return (work: .loudness(copy), source: source)
  }

  static func record(_ outcome: JobOutcome) throws(StorageError) -> Fenced<Job>? {
    guard case .loudness(let measured) = outcome.report else { return nil }
    return try outcome.finish(JobResult(recording: outcome.job.recording, measured: measured))
  }
}
