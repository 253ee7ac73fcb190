import Glibc
import Processing
import Storage
import Terms

/// What is done for an attempt before its child starts. Everything blocks, on a worker thread.
struct JobPreparation: Sendable {
  let settings: JobSettings
  let catalog: Catalog
  let store: MediaStore
  let log: any JobLog

  /// What came of claiming a job.
  enum Claim {
    /// The job's row says running; with its source.
    case claimed(Job, Recording)
    /// The job has finished, or is gone; the job if it was cancelled.
    case refused(Job?)
    /// Nothing could be written: the failure, if it is for good.
    case failed(WorkerFailure?)
  }

  /// What came of preparing an attempt.
  enum Preparation {
    /// A child can be started.
    case ready(WorkerRequest, WorkerFence)
    /// It can't: the failure, if it is for good.
    case failed(WorkerFailure?)
  }

  /// Writes that a job runs, and counts an attempt.
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

  /// Checks the source's files, says what is being built, and makes the job's folder.
  func prepare(_ job: Job, _ source: Recording) -> Preparation {
    do {
      var source = source
      let files = MissingFiles(catalog: catalog, store: store)
      if let fault = try files.settle(source) { return .failed(fault.failure) }
      // The child makes one for itself.
      if files.hasLostWorkingCopy(source) { source.workingFile = nil }
      if let written = job.kind.definition.writtenRecording(of: job) {
        _ = try catalog.update(written) { $0.waveformState = .building }
      }
      let attempt = JobAttempt(
        job: job, source: source, sourceFolder: store.folder(of: source.id),
        folder: try store.makeWorkFolder(of: job.id))
      let request = try WorkerRequest(attempt, settings.workers)
      guard let fence = request.fence else { preconditionFailure("a job's worker is fenced in") }
      return .ready(request, fence)
    } catch { return .failed(failure(job.id, error)) }
  }

  /// nil if the job may be tried again.
  private func failure(_ id: JobID, _ error: any Error) -> WorkerFailure? {
    switch error {
    case StorageError.diskFull: return .diskFull
    case StorageError.io(_, _, EROFS): return Self.diskIsReadOnly
    default:
      log.failure("a job could not be begun", ["job": id.text, "error": "\(error)"])
      return nil
    }
  }

  private static let diskIsReadOnly = WorkerFailure(
    code: "io_error", detail: "The service can't write to its disk now; nothing is wrong with the file.", retry: false)
}
