import Storage
import Synchronization
import Terms
import Workers

/// Records how an attempt ended, in rows, files and the log. All methods block and run on a worker thread.
struct JobRecords: Sendable {
  let settings: JobSettings
  let catalog: Catalog
  let blobs: Blobs
  let scratch: Scratch
  let live: LiveJobs
  let log: any JobLog
  /// Whether the service is stopping, which breaks off what waits for the store.
  let stopping: CancellationFlag
  /// Returns the error to store in the row of a failed job.
  let jobError: @Sendable (WorkerFailure) -> JobError

  /// Stores the result of a child that succeeded.
  func succeed(_ attempt: ClaimedJob, _ report: WorkerReport, of request: WorkerRequest) -> JobLifecycle.Recorded {
    let (job, token) = (attempt.job, attempt.token)
    do {
      let outcome = try JobOutcome(
        job: job, token: token, report: report, request: request, catalog: catalog, blobs: blobs,
        scratch: scratch, settings: settings
      ).record()
      switch outcome {
      case .written(let ended): return succeeded(ended)
      case .refused(let now): return refused(now, attempt)
      case nil: return fail(attempt, JobLifecycle.gaveUp)
      }
    } catch {
      // A commit that only seemed to fail is found by whichever of these writes comes next.
      guard mayWrite(attempt) else { return requeue(attempt, hasWritten: true) }
      if case .diskFull = error, !catalog.isShared { return fail(attempt, .diskFull, hasWritten: true) }
      if case .limitReached(let name, let limit) = error {
        return fail(attempt, .limitReached(name, limit: limit), hasWritten: true)
      }
      log.failure("the result of a job could not be stored", ["job": job.id.text, "error": "\(error)"])
      if let failure = error.storeFailure ?? (catalog.isShared ? error.diskFailure : nil) {
        return postpone(attempt, failure, hasWritten: true)
      }
      return requeue(attempt, hasWritten: true)
    }
  }

  /// Logs that a child has ended without a result, when a later attempt may succeed.
  func retry(_ attempt: ClaimedJob, _ exit: WorkerExit, _ failure: WorkerFailure) -> JobLifecycle.Recorded {
    if mayWrite(attempt) {
      log.failure(
        "a worker ended without a result; its job will be tried again",
        ["job": attempt.job.id.text, "exit": "\(exit)", "reason": failure.detail])
    }
    return requeue(attempt)
  }

  /// Puts a job back in the queue until a later time, because the store of media, or this node's disk, has failed the
  /// attempt. A job that was postponed too often fails. If the service is stopping, another node may begin the job at
  /// once.
  func postpone(_ attempt: ClaimedJob, _ failure: WorkerFailure, hasWritten: Bool = false) -> JobLifecycle.Recorded {
    if failure.isOfDisk, failure != .diskIsUnusable {
      log.failure(
        "a worker can't use this node's disk; its job will be tried again",
        ["job": attempt.job.id.text, "reason": failure.detail])
    }
    if failure.code == WorkerFailure.diskIsUnusable.code, failure != .diskIsUnusable {
      // Perhaps it was this node's copy of what the worker has read.
      for key in [attempt.source.audioKey, attempt.source.workingKey] { _ = key.map(blobs.store.discardCopy) }
    }
    if stopping.isSet { return requeue(attempt, hasWritten: hasWritten, afterSeconds: 0) }
    guard attempt.job.postponements < Job.postponementLimit else {
      return fail(attempt, failure, hasWritten: hasWritten)
    }
    var generator = SystemRandomNumberGenerator()
    let seconds = attempt.job.postponementSeconds(
      first: settings.lifecycle.storePauseSeconds, using: &generator)
    let recorded = requeue(attempt, hasWritten: hasWritten, afterSeconds: seconds)
    guard failure.isOfDisk, case .postponed = recorded else { return recorded }
    // The others first.
    return .postponed(seconds: seconds + settings.lifecycle.storePauseSeconds)
  }

  /// Puts a job back in the queue for another attempt. Otherwise, a restart would take the attempt for one that it
  /// interrupted, which doesn't count. With a time, this one doesn't count either.
  private func requeue(
    _ attempt: ClaimedJob, hasWritten: Bool = false, afterSeconds seconds: Double? = nil
  ) -> JobLifecycle.Recorded {
    // The next attempt needs the room that these files take.
    scratch.disk.removeWork(of: attempt.token)
    do {
      let outcome =
        if let seconds {
          try catalog.postpone(attempt.token, seconds: seconds, hasWritten: hasWritten)
        } else {
          try catalog.giveBack(attempt.token, interrupted: false, hasWritten: hasWritten)
        }
      switch outcome {
      case .written(let job): if hasWritten { blobs.removeResults(of: attempt.token, in: job.resultRecording) }
      case .refused(let now): return refused(now, attempt)
      }
    } catch {
      log.failure("a job could not be queued again", ["job": attempt.job.id.text, "error": "\(error)"])
    }
    return seconds.map { .postponed(seconds: $0) } ?? .again
  }

  /// Puts a job back in the queue because the service is stopping, so that the job begins again at the next start, or
  /// because the attempt's lease is about to end.
  func interrupt(_ attempt: ClaimedJob) -> JobLifecycle.Recorded {
    // While the job is held, no other attempt begins here.
    scratch.disk.removeWork(of: attempt.token, removesFolder: true)
    do {
      if case .refused(let now) = try catalog.giveBack(attempt.token, interrupted: true) {
        return refused(now, attempt)
      }
    } catch {
      log.failure("an interruption could not be recorded", ["job": attempt.job.id.text, "error": "\(error)"])
    }
    return .over(with: [])
  }

  /// Fails a job for good before its row could be claimed or read.
  func failUnclaimed(_ id: JobID, _ failure: WorkerFailure) -> JobLifecycle.Recorded {
    do {
      let error = RowJSON.text(jobError(failure))
      let outcome = try writing { () throws(StorageError) in try catalog.failUnclaimed(id, error: error) }
      switch outcome {
      case .written(let ended): return failed(ended)
      case .refused(let now?) where now.state == .cancelled: return .unwanted(now)
      case .refused: return .over(with: [])
      }
    } catch {
      log.failure("the failure of a job could not be stored", ["job": id.text, "error": "\(error)"])
      return .unwritten(failure)
    }
  }

  /// Writes that a job has failed, on a full disk in the room that is kept for deletions: there may be nothing of the
  /// attempt whose removal makes room, and its client would wait for ever.
  private func writing<Result>(_ failure: () throws(StorageError) -> Result) throws(StorageError) -> Result {
    do throws(StorageError) { return try failure() } catch .diskFull { return try blobs.makingRoom(failure) }
  }

  /// Fails a job for good.
  func fail(
    _ attempt: ClaimedJob, _ failure: WorkerFailure, hasWritten: Bool = false
  ) -> JobLifecycle.Recorded {
    let (id, token) = (attempt.job.id, attempt.token)
    // Before the row is written: if the attempt has filled the disk, the catalog has no room either. No row names these
    // files.
    scratch.disk.removeWork(of: token)
    do {
      let (error, progress) = (RowJSON.text(jobError(failure)), live[id]?.fraction ?? 0)
      let outcome = try writing { () throws(StorageError) in
        try catalog.fail(token, error: error, progress: progress, hasWritten: hasWritten)
      }
      switch outcome {
      case .written(let ended):
        if hasWritten { blobs.removeResults(of: token, in: attempt.job.resultRecording) }
        return failed(ended)
      case .refused(let now): return refused(now, attempt)
      }
    } catch {
      log.failure("the failure of a job could not be stored", ["job": id.text, "error": "\(error)"])
      return .unwritten(failure)
    }
  }

  /// Removes the files of a job without a result, and the folder of the recording it was producing.
  func removeLeftovers(of job: Job) {
    scratch.disk.removeWorkFolder(of: job.id)
    guard let output = job.output else { return }
    do { try blobs.discard(output) } catch {
      log.failure("a folder could not be removed", ["recording": output.text, "error": "\(error)"])
    }
  }

  private func succeeded(_ job: Job) -> JobLifecycle.Recorded {
    log.job(job)
    scratch.disk.removeWorkFolder(of: job.id)
    return .over(with: [])
  }

  /// Cleans up after a job that failed, the first of `ended`.
  private func failed(_ ended: [Job]) -> JobLifecycle.Recorded {
    guard let job = ended.first else { return .over(with: []) }
    log.job(job)
    removeLeftovers(of: job)
    return .over(with: Array(ended.dropFirst()))
  }

  /// Cleans up after an attempt that doesn't hold its job any more, which is `now` according to its row. Files of other
  /// attempts stay.
  private func refused(_ now: Job?, _ attempt: ClaimedJob) -> JobLifecycle.Recorded {
    guard let now else { return .unwanted(attempt.job) }
    // The commit of the result had only seemed to fail, so the result stays.
    if now.hasWon(attempt.token) { return succeeded(now) }
    // Only a damaged catalog has lost the recording of a job that holds on.
    if now.token == attempt.token { return fail(attempt, JobLifecycle.gaveUp, hasWritten: true) }
    scratch.disk.removeWork(of: attempt.token)
    blobs.removeResults(of: attempt.token, in: now.resultRecording)
    switch now.state {
    case .cancelled: return .unwanted(now)
    case .failed: removeLeftovers(of: now)
    case .succeeded: scratch.disk.removeWorkFolder(of: now.id)
    case .queued, .running: break
    }
    return .lost
  }

  /// Whether an attempt still holds its job. Deleting its recording cancels the job in the same transaction, slightly
  /// before its child is killed, and causes any failure from then on. If the catalog can't be read, every attempt does.
  private func mayWrite(_ attempt: ClaimedJob) -> Bool {
    do { return try catalog.job(attempt.job.id)?.token == attempt.token } catch { return true }
  }
}

/// Says on any thread that the service is stopping.
final class CancellationFlag: Sendable {
  private let flag = Atomic<Bool>(false)

  var isSet: Bool { flag.load(ordering: .relaxed) }
  func set() { flag.store(true, ordering: .relaxed) }
}
