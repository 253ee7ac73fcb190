import Glibc
import Processing
import Storage
import Terms

/// Prepares an attempt before its child starts. All methods block and run on a worker thread.
struct JobPreparation: Sendable {
  let settings: JobSettings
  let catalog: Catalog
  let store: MediaStore
  let log: any JobLog

  /// The outcome of claiming a job.
  enum Claim {
    /// The job's row has been set to running. The recording is the job's source.
    case claimed(Job, Recording)
    /// The job has finished or been deleted. The value is the job if it was canceled.
    case refused(Job?)
    /// The row couldn't be updated. Without a failure, the job may be tried again.
    case failed(WorkerFailure?)
  }

  /// The outcome of preparing an attempt.
  enum Preparation {
    /// A child can be started.
    case ready(WorkerRequest, WorkerFence)
    /// A child can't be started. Without a failure, the job may be tried again.
    case failed(WorkerFailure?)
  }

  /// Sets a job's row to running and counts an attempt.
  func claim(_ id: JobID) -> Claim {
    do {
      let job = try catalog.update(id) { job in
        guard !job.state.isFinished else { return }
        job.state = .running
        job.attempts += 1
        job.startedAt = .now
      }
      guard let job, job.state == .running, let source = try catalog.recording(job.recording) else {
        return .refused(job?.state == .cancelled ? job : nil)
      }
      return .claimed(job, source)
    } catch { return .failed(failure(id, error)) }
  }

  /// Checks the source's files, marks the waveform that the job writes as building, and creates the job's folder.
  func prepare(_ job: Job, _ source: Recording) -> Preparation {
    do {
      var source = source
      let files = MissingFiles(catalog: catalog, store: store)
      if let fault = try files.settle(source) { return .failed(fault.failure) }
      // The child writes one for itself.
      if files.hasLostWorkingCopy(source) { source.workingFile = nil }
      if let written = job.kind.definition.writtenRecording(of: job) {
        _ = try catalog.update(written) { $0.waveformState = .building }
      }
      let attempt = JobAttempt(
        job: job, source: source, sourceFolder: store.folder(of: source.id),
        folder: try store.makeWorkFolder(of: job.id))
      try job.kind.definition.prepare(attempt, catalog, store)
      let request = try WorkerRequest(attempt, settings.workers)
      guard let fence = request.fence else { preconditionFailure("a job's request has no fence") }
      return .ready(request, fence)
    } catch { return .failed(failure(job.id, error)) }
  }

  /// Returns the failure for an error; nil if the job may be tried again.
  private func failure(_ id: JobID, _ error: any Error) -> WorkerFailure? {
    switch error {
    case StorageError.diskFull: return .diskFull
    case StorageError.io(_, _, EROFS): return Self.diskIsReadOnly
    case JobsError.unreadableParameters: return Self.parametersAreUnreadable
    case JobsError.noiseProfileIsGone: return Self.noiseProfileIsGone
    default:
      log.failure("a job could not be started", ["job": id.text, "error": "\(error)"])
      return nil
    }
  }

  private static let parametersAreUnreadable = WorkerFailure(
    code: "worker_failed", detail: "The catalog's entry for this job can't be read. Request the work again.",
    retry: false)
  private static let noiseProfileIsGone = WorkerFailure(
    code: "noise_profile_deleted", detail: "The noise profile was deleted before the job began.", retry: false)
  private static let diskIsReadOnly = WorkerFailure(
    code: "io_error", detail: "The service can't write to its disk now; the file is not at fault.", retry: false)
}
