import Processing
import Storage

/// Writes down what came of a job's attempt, in rows, files and the log. Everything blocks, on a worker thread; what
/// follows from it is returned, and is for the queue of jobs to do.
struct JobRecords: Sendable {
  /// What the queue of jobs does next.
  enum Next {
    /// The job has ended, and with it these, which worked on the recording that it was making.
    case over(with: [Job] = [])
    /// It is begun again.
    case retry(attempts: Int)
    /// Its end could not be written. Nobody else would ever end it.
    case failLater(Job, WorkerFailure)
  }

  private let configuration: Configuration
  private let catalog: Catalog
  private let store: MediaStore
  private let live: LiveJobs
  private let log: ServiceLog

  init(_ configuration: Configuration, catalog: Catalog, store: MediaStore, live: LiveJobs, log: ServiceLog) {
    self.configuration = configuration
    self.catalog = catalog
    self.store = store
    self.live = live
    self.log = log
  }

  static let gaveUp = WorkerFailure(
    code: "worker_failed", detail: "The work on this recording failed several times; the file may be damaged.",
    retry: false)

  /// A child has said what it made.
  func succeed(_ job: Job, _ report: WorkerReport, of request: WorkerRequest) -> Next {
    do {
      let ended = try JobOutcome(job, report, of: request, store: store, configuration).record(in: catalog)
      guard let ended else { return isWanted(job) ? fail(job, Self.gaveUp) : discard(job) }
      log.job(ended)
      // Cancelled while it was finished: what it made has no row, or is not wanted.
      if ended.state != .succeeded { removeLeftovers(of: job) }
    } catch {
      guard isWanted(job) else { return discard(job) }
      if case .diskFull = error { return fail(job, .diskFull) }
      log.failure("a finished job could not be kept", ["job": job.id.text, "error": "\(error)"])
      return .retry(attempts: job.attempts)
    }
    store.removeWorkFolder(of: job.id)
    return .over()
  }

  /// A child has ended without a result.
  func endedEarly(_ job: Job, _ exit: WorkerExit, _ failure: WorkerFailure) -> Next {
    guard isWanted(job) else { return discard(job) }
    guard failure.retry, job.failures + 1 < configuration.maximumAttempts else { return fail(job, failure) }
    log.failure(
      "a worker ended early; its job is tried again",
      ["job": job.id.text, "exit": "\(exit)", "reason": failure.detail])
    return .retry(attempts: job.attempts)
  }

  /// The service stops: the next start begins the job again.
  func interrupted(_ job: Job) -> Next {
    do {
      try catalog.update(job.id) { job in
        guard !job.state.isFinished else { return }
        job.state = .queued
        job.interruptions += 1
      }
    } catch {
      log.failure("an interruption could not be noted", ["job": job.id.text, "error": "\(error)"])
    }
    return .over()
  }

  /// The job has failed for good.
  func fail(_ job: Job, _ failure: WorkerFailure) -> Next {
    let reached = live[job.id]?.fraction ?? 0
    let error = JobError(failure)
    do {
      let ended = try catalog.abandon(job.id) { job in
        job.state = .failed
        job.progress = reached
        job.error = RowJSON.text(error)
        job.finishedAt = .now
      }
      log.job(ended?.first ?? job)
      removeLeftovers(of: job)
      return .over(with: Array((ended ?? []).dropFirst()))
    } catch {
      log.failure("a failed job could not be kept", ["job": job.id.text, "error": "\(error)"])
      return .failLater(job, failure)
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

  private func discard(_ job: Job) -> Next {
    removeLeftovers(of: job)
    return .over()
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
