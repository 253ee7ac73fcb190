import Storage
import Terms
import Workers

/// Converts a recording's audio to another format, for downloads.
package enum ConvertJob: JobDefinition {
  /// The parameters as stored in the job's row.
  package struct Parameters: Codable, Sendable, Equatable {
    /// The format to write.
    package var format: OutputFormat

    /// Creates parameters.
    package init(format: OutputFormat) { self.format = format }
  }

  private static let samplesPerSecond = 8e6
  static let threadLimit = 1

  static func cost(samples: Double) -> JobSchedule.Work { .init(seconds: samples / samplesPerSecond) }

  static func writtenRecording(of job: Job) -> RecordingID? { nil }

  static func work(of attempt: JobAttempt) throws(StorageError) -> (work: WorkerRequest.Work, source: String)? {
    guard let asked = RowJSON.value(Parameters.self, from: attempt.job.parameters),
      let shape = attempt.source.audioFormat
    else { return nil }
    let needsFFmpeg = (try? asked.format.encoder(for: shape)) != nil
    let (source, copy) = try attempt.sound()
    var work = ConvertWork(
      output: attempt.path("audio"), format: asked.format, resampled: needsFFmpeg ? shape : nil)
    work.copy = copy
    return (work: .convert(work), source: source)
  }

  static func record(_ outcome: JobOutcome) throws(StorageError) -> Fenced<Job>? {
    let (job, catalog) = (outcome.job, outcome.catalog)
    guard case .convert(let work) = outcome.request.work, case .converted = outcome.report else { return nil }
    guard try catalog.recording(job.recording) != nil else { return try outcome.refused() }
    outcome.settings.willAddFiles(job.id)
    let stored = try outcome.add(work.output, as: outcome.token.fileName("converted", "\(work.format)"))
    let conversion = Conversion(
      recording: job.recording, format: work.format.rawValue, key: stored.key, bytes: stored.bytes,
      sha256: stored.sha256, usedAt: catalog.time)
    let kept = try catalog.keep(
      conversion, limit: outcome.settings.maximumConversionBytes, finishing: outcome.token,
      with: RowJSON.text(JobResult(recording: job.recording)), within: outcome.storedLimits)
    outcome.blobs.deleteDiscarded(kept.discarded)
    return kept.job
  }
}
