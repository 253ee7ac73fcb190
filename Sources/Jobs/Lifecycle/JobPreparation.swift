import Glibc
import Storage
import Terms
import Workers

/// Prepares an attempt before its child starts. All methods block and run on a worker thread.
struct JobPreparation: Sendable {
  let settings: JobSettings
  let catalog: Catalog
  let objects: any ObjectStore
  let scratch: Scratch
  let log: any JobLog
  private let storeLog: RateLimitedLog
  /// If there are others, a job that this disk fails isn't a failure.
  private let disk: NodeDisk?

  init(settings: JobSettings, catalog: Catalog, objects: any ObjectStore, scratch: Scratch, log: any JobLog) {
    (self.settings, self.catalog, self.objects, self.scratch, self.log) = (settings, catalog, objects, scratch, log)
    storeLog = RateLimitedLog(log, catalog.clock)
    disk =
      catalog.isShared ? NodeDisk(scratch, reservedBytes: settings.reservedDiskBytes, catalog.clock) : nil
  }

  /// The outcome of claiming a job.
  enum Claim {
    /// The job's row has been set to running.
    case claimed(ClaimedJob)
    /// The job can't be claimed.
    case refused(JobLifecycle.Refusal)
    /// The row couldn't be updated. Without a failure, the job may be tried again.
    case failed(WorkerFailure?)
  }

  /// The outcome of preparing an attempt.
  enum Preparation {
    /// A child can be started.
    case ready(WorkerRequest, SourceFiles, WorkerFence)
    /// A child can't be started. Without a failure, the job may be tried again.
    case failed(WorkerFailure?)
    /// The store of media can't give the source now, or this node's disk can't take it while another node's may. The
    /// failure is for a job that this happens to too often.
    case storeFailed(WorkerFailure)
  }

  /// Sets a job's row to running, counts an attempt, and marks the waveform that the job writes as being built.
  ///
  /// If the store of media can't be used, or beside other nodes this node's disk or what the job needs, the row stays:
  /// the attempt would fail, and take the job from a node that can do it. `failed` is the number of this node's last
  /// attempt at the job, if that has failed.
  func claim(_ id: JobID, failed: Int?) -> Claim {
    do {
      try objects.checkReachable()
      try disk?.check()
      let claim = try catalog.claim(
        id, failed: failed, if: { disk == nil || $0.kind.definition.suits($0, settings.workers) },
        building: { $0.kind.definition.writtenRecording(of: $0) })
      switch claim {
      case .written(let claimed): return .claimed(claimed)
      case .refused(let job): return .refused(JobLifecycle.Refusal(job, at: catalog.time))
      }
    } catch { return .failed(failure(id, error)) }
  }

  /// Checks the source's files and creates the job's folder.
  func prepare(_ claimed: ClaimedJob) -> Preparation {
    let job = claimed.job
    do {
      var source = claimed.source
      let files = MissingFiles(catalog: catalog, objects: objects)
      if let fault = try files.settle(source) { return .failed(fault.failure) }
      // The child writes one for itself.
      if files.hasLostWorkingCopy(source) { source.workingKey = nil }
      // Only finished recordings get jobs.
      guard let audio = source.audioKey else { return .failed(MissingFiles.Fault.missing.failure) }
      var attempt = JobAttempt(
        job: job, token: claimed.token, source: source, audio: audio, files: SourceFiles(objects.localFile),
        folder: try scratch.makeWorkFolder(of: job.id))
      do { try job.kind.definition.prepare(attempt, catalog, scratch) } catch StorageError.damagedObject(let key)
        where key == source.workingKey?.description
      {
        attempt.source.workingKey = nil
        try job.kind.definition.prepare(attempt, catalog, scratch)
      }
      let request = try WorkerRequest(attempt, settings.workers)
      guard let fence = request.fence else { preconditionFailure("a job's request has no fence") }
      return .ready(request, attempt.files, fence)
    } catch {
      if let failure = (error as? StorageError)?.storeFailure {
        noteStore("the source of a job can't be fetched; it will be tried again", job.id, error)
        return .storeFailed(failure)
      }
      if let disk, let failure = (error as? StorageError)?.diskFailure {
        disk.suspect()
        noteStore("a job can't be prepared on this node's disk; it will be tried again", job.id, error)
        return .storeFailed(failure)
      }
      return .failed(failure(job.id, error))
    }
  }

  /// Logs that the store or this node's disk fails, in one line for all jobs that wait for it.
  private func noteStore(_ message: String, _ id: JobID, _ error: any Error) {
    storeLog.failure(message, ["job": id.text, "error": "\(error)"])
  }

  /// Returns the failure for an error; nil if the job may be tried again.
  private func failure(_ id: JobID, _ error: any Error) -> WorkerFailure? {
    switch error {
    case let error as StorageError where disk != nil && error.diskFailure != nil:
      noteStore("no job can be started on this node's disk", id, error)
      return nil
    case StorageError.diskFull: return .diskFull
    case StorageError.io(_, _, EROFS): return .diskIsUnusable
    case StorageError.damagedObject: return Self.sourceIsDamaged
    case JobsError.unreadableParameters: return Self.parametersAreUnreadable
    case JobsError.noiseProfileIsGone: return Self.noiseProfileIsGone
    case let error as StorageError where error.storeFailure != nil:
      noteStore("no job can be started", id, error)
      return nil
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
  private static let sourceIsDamaged = WorkerFailure(
    code: MissingFiles.damagedCode, detail: "The recording's file isn't the one that was uploaded.", retry: false)
}
