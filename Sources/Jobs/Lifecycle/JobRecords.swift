import Processing
import Storage
import Terms

/// Records how an attempt ended, in rows, files and the log. All methods block and run on a worker thread.
struct JobRecords: Sendable {
  let settings: JobSettings
  let catalog: Catalog
  let store: MediaStore
  let live: LiveJobs
  let log: any JobLog
  /// Returns the error to store in the row of a failed job.
  let jobError: @Sendable (WorkerFailure) -> JobError

  /// Stores the result of a child that succeeded.
  func succeed(_ job: Job, _ report: WorkerReport, of request: WorkerRequest) -> JobLifecycle.Recorded {
    do {
      let ended = try JobOutcome(
        job: job, report: report, request: request, catalog: catalog, store: store, settings: settings
      ).record()
      guard let ended else { return isWanted(job) ? fail(job, JobLifecycle.gaveUp) : .unwanted(job) }
      log.job(ended)
      // The job was canceled while its result was stored, so its files have no row or aren't wanted.
      guard ended.state == .succeeded else { return .unwanted(job) }
    } catch {
      guard isWanted(job) else { return .unwanted(job) }
      if case .diskFull = error { return fail(job, .diskFull) }
      log.failure("the result of a job could not be stored", ["job": job.id.text, "error": "\(error)"])
      return requeue(job)
    }
    store.removeWorkFolder(of: job.id)
    return .over(with: [])
  }

  /// Logs that a child has ended without a result, when a later attempt may succeed.
  func retry(_ job: Job, _ exit: WorkerExit, _ failure: WorkerFailure) -> JobLifecycle.Recorded {
    guard isWanted(job) else { return .unwanted(job) }
    log.failure(
      "a worker ended without a result; its job will be tried again",
      ["job": job.id.text, "exit": "\(exit)", "reason": failure.detail])
    return requeue(job)
  }

  /// Puts a job back in the queue for another attempt. Otherwise, a restart would take the attempt for one that it
  /// interrupted, which doesn't count.
  private func requeue(_ job: Job) -> JobLifecycle.Recorded {
    // The next attempt writes new files and needs the room that these take.
    store.removeWorkFolder(of: job.id)
    do {
      let now = try catalog.update(job.id) { if !$0.state.isFinished { $0.state = .queued } }
      if let now, now.state == .cancelled { return .unwanted(now) }
    } catch {
      log.failure("a job could not be queued again", ["job": job.id.text, "error": "\(error)"])
    }
    return .again
  }

  /// Puts a job back in the queue because the service is stopping. The job begins again at the next start.
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

  /// Fails a job for good before its row could be claimed or read.
  func fail(_ id: JobID, _ failure: WorkerFailure) -> JobLifecycle.Recorded {
    do {
      guard let job = try catalog.job(id) else { return .over(with: []) }
      return fail(job, failure)
    } catch {
      log.failure("a job could not be started", ["job": id.text, "error": "\(error)"])
      return .again
    }
  }

  /// Fails a job for good.
  func fail(_ job: Job, _ failure: WorkerFailure) -> JobLifecycle.Recorded {
    let reached = live[job.id]?.fraction ?? 0
    let error = jobError(failure)
    // Before the row is written: if the attempt has filled the disk, the catalog has no room either. No row names these
    // files.
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
      // The commit of the result had only seemed to fail, so the result stays.
      case .succeeded: break
      default: removeLeftovers(of: job)
      }
      return .over(with: Array((ended ?? []).dropFirst()))
    } catch {
      log.failure("the failure of a job could not be stored", ["job": job.id.text, "error": "\(error)"])
      return .unwritten(failure)
    }
  }

  /// Removes the files of a job without a result, and the folder of the recording it was producing.
  func removeLeftovers(of job: Job) {
    store.removeWorkFolder(of: job.id)
    guard let output = job.output else { return }
    do { try store.discard(output) } catch {
      log.failure("a folder could not be removed", ["recording": output.text, "error": "\(error)"])
    }
  }

  /// Whether a job's result is still wanted. Deleting its recording cancels it in the same transaction, slightly before
  /// its child is killed, and causes any failure from then on. If the catalog can't be read, every job is wanted.
  private func isWanted(_ job: Job) -> Bool {
    do {
      guard let state = try catalog.job(job.id)?.state else { return false }
      // A job that has succeeded keeps its result: the commit had only seemed to fail.
      return !state.isFinished || state == .succeeded
    } catch { return true }
  }
}

extension Job {
  /// The number of earlier attempts that failed without being interrupted.
  var failures: Int { attempts - interruptions - 1 }
}
