import HTTP
import Storage

/// What every handler needs.
struct Context: Sendable {
  let configuration: Configuration
  let catalog: Catalog
  let store: MediaStore
  let runner: JobRunner
  let probes: ProbeLane
  let waveforms: WaveformTable
  let work: WorkQueue
  let log: ServiceLog
  let metrics: Metrics

  /// The recording a path names. Throws where it is none.
  func recording(_ parameters: PathParameters) async throws -> Recording {
    let text = parameters["id"]
    guard let id = RecordingID(text) else { throw ServiceError.noSuchRecording(text) }
    let catalog = catalog
    guard let recording = try await work.run({ () throws(StorageError) in try catalog.recording(id) }) else {
      throw ServiceError.noSuchRecording(text)
    }
    return recording
  }

  /// The job a path names. Throws where it is none.
  func job(_ parameters: PathParameters) async throws -> Job {
    let text = parameters["id"]
    guard let id = JobID(text) else { throw ServiceError.noSuchJob(text) }
    let catalog = catalog
    guard let job = try await work.run({ () throws(StorageError) in try catalog.job(id) }) else {
      throw ServiceError.noSuchJob(text)
    }
    return job
  }

  func document(_ recording: Recording) -> RecordingDocument {
    RecordingDocument(recording, live: runner.live.job(writing: recording.id))
  }

  func document(_ job: Job) -> JobDocument { JobDocument(job, live: runner.live[job.id]) }
}
