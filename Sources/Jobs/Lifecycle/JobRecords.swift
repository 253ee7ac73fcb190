import Processing
import Storage
import Terms

/// Writes down how a job's attempt ended, in rows, files and the log. Everything blocks, on a worker thread.
struct JobRecords: Sendable {
  let settings: JobSettings
  let catalog: Catalog
  let store: MediaStore
  let live: LiveJobs
  let log: any JobLog
  /// Makes what a failed job's row says of its failure.
  let jobError: @Sendable (WorkerFailure) -> JobError

  /// A child has said what it made.
  func succeed(_ job: Job, _ report: WorkerReport, of request: WorkerRequest) -> JobLifecycle.Recorded {
    do {
      let ended = try JobOutcome(
        job: job, report: report, request: request, catalog: catalog, store: store, settings: settings
      ).record()
      guard let ended else { return isWanted(job) ? fail(job, JobLifecycle.gaveUp) : .unwanted(job) }
      log.job(ended)
      // Cancelled while it was finished: what it made has no row, or is not wanted.
      guard ended.state == .succeeded else { return .unwanted(job) }
    } catch {
      guard isWanted(job) else { return .unwanted(job) }
      if case .diskFull = error { return fail(job, .diskFull) }
      log.failure("a finished job could not be kept", ["job": job.id.text, "error": "\(error)"])
      return .again
    }
    store.removeWorkFolder(of: job.id)
    return .over(with: [])
  }

  /// A child has ended without a result, and a later attempt may succeed.
  func retry(_ job: Job, _ exit: WorkerExit, _ failure: WorkerFailure) -> JobLifecycle.Recorded {
    guard isWanted(job) else { return .unwanted(job) }
    log.failure(
      "a worker ended early; its job will be tried again",
      ["job": job.id.text, "exit": "\(exit)", "reason": failure.detail])
    // The next attempt writes files of its own; these would only take their room.
    store.removeWorkFolder(of: job.id)
    return .again
  }

  /// The service stops: the next start begins the job again.
  func interrupt(_ job: Job) -> JobLifecycle.Recorded {
    do {
      let now = try catalog.update(job.id) { job in
        guard !job.state.isFinished else { return }
        job.state = .queued
        job.interruptions += 1
      }
      if now?.state == .cancelled { return .unwanted(job) }
    } catch {
      log.failure("an interruption could not be recorded", ["job": job.id.text, "error": "\(error)"])
    }
    return .over(with: [])
  }

  /// The job has failed for good before its row could be claimed, or read.
  func fail(_ id: JobID, _ failure: WorkerFailure) -> JobLifecycle.Recorded {
    do {
      guard let job = try catalog.job(id) else { return .over(with: []) }
      return fail(job, failure)
    } catch {
      log.failure("a job could not be begun", ["job": id.text, "error": "\(error)"])
      return .again
    }
  }

  /// The job has failed for good.
  func fail(_ job: Job, _ failure: WorkerFailure) -> JobLifecycle.Recorded {
    let reached = live[job.id]?.fraction ?? 0
    let error = jobError(failure)
    // Before the row: on a disk that the attempt has filled, the catalog has no room for it. No row names these files.
    store.removeWorkFolder(of: job.id)
    do {
      let ended = try catalog.abandon(job.id) { job in
        job.state = .failed
        job.progress = reached
        job.error = RowJSON.text(error)
        job.finishedAt = .now
      }
      log.job(ended?.first ?? job)
      switch ended?.first?.state {
      case nil, .cancelled: return .unwanted(job)
      // The commit that said so had only seemed to fail: it keeps what it made.
      case .succeeded: store.removeWorkFolder(of: job.id)
      default: removeLeftovers(of: job)
      }
      return .over(with: Array((ended ?? []).dropFirst()))
    } catch {
      log.failure("a failed job could not be kept", ["job": job.id.text, "error": "\(error)"])
      return .unwritten(failure)
    }
  }

  /// Removes what a job that came to nothing has written, and the folder of the recording it was making.
  func removeLeftovers(of job: Job) {
    store.removeWorkFolder(of: job.id)
    guard let output = job.output else { return }
    do { try store.discard(output) } catch {
      log.failure("a folder could not be removed", ["recording": output.text, "error": "\(error)"])
    }
  }

  /// Whether anything may still come of a job. Deleting its recording cancels it in the same transaction, a little
  /// before its child is ended: what fails from then on fails for that reason. A catalog that fails to answer wants
  /// every job.
  private func isWanted(_ job: Job) -> Bool {
    do {
      guard let state = try catalog.job(job.id)?.state else { return false }
      // One that succeeded after all keeps what it made: the commit that said so had only seemed to fail.
      return !state.isFinished || state == .succeeded
    } catch { return true }
  }
}

extension Job {
  /// Attempts before the present one that came to nothing by themselves.
  var failures: Int { attempts - interruptions - 1 }
}
