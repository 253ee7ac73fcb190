import HTTP
import Jobs
import Storage
import Terms

extension Context {
  /// What all waits are measured by.
  var clock: Clock { configuration.clock }

  /// Returns the time until which a request that begins now waits for a job.
  var waitDeadline: Clock.Instant { clock.instant(after: configuration.conversionWaitSeconds) }

  /// Returns the job as it is once it has ended, the deadline has passed, or the service is stopping.
  func wait(for id: JobID, until deadline: Clock.Instant, _ caller: Caller) async throws -> Job? {
    while runner.live[id] != nil, !runner.live.waitsHaveEnded {
      let left = -clock.seconds(since: deadline)
      guard left > 0, !Task.isCancelled else { break }
      await runner.waitForChange(of: id, seconds: left)
    }
    try caller.checkAdmission()
    let catalog = caller.catalog
    return try await work.run { () throws(StorageError) in try catalog.job(id) }
  }

  /// Returns the job that does the same as `wanted`, begun by this request or an earlier one, once it has succeeded.
  /// Throws the job's failure, and `running` if it takes longer than until `deadline`.
  func succeeded(
    _ wanted: Job, of recording: Recording, until deadline: Clock.Instant, for caller: Caller,
    orStill running: (JobID) -> RequestError
  ) async throws -> Job {
    let job = try await beginShared(wanted, of: recording, for: caller)
    guard let ended = try await wait(for: job.id, until: deadline, caller), ended.state != .cancelled else {
      throw ServiceError.workerUnavailable(reason: "the job was cancelled")
    }
    if ended.state == .failed { throw failure(of: ended, caller) }
    guard ended.state == .succeeded else { throw running(job.id) }
    return ended
  }

  private func beginShared(_ wanted: Job, of recording: Recording, for caller: Caller) async throws -> Job {
    let client = caller.client
    let room = try runner.reserve(for: client)
    var job = wanted
    job.client = client.key
    let (catalog, admission, asked, stored) = (caller.catalog, admission, job, accounts.stored(by: caller.tenant))
    let begun = try await work.run {
      try admission.checkDiskNow(for: asked.expectedBytes)
      return try catalog.sharedJob(orElse: asked, within: stored)
    }
    if begun.isNew {
      runner.submit(begun.job, source: recording, room: room)
    } else {
      // The job may be another client's and have many jobs ahead of it.
      runner.join(begun.job.id, for: client)
    }
    return begun.job
  }

  /// Returns the error for a request that waited for a job that failed.
  private func failure(of job: Job, _ caller: Caller) -> any Error {
    let failed = RowJSON.value(JobError.self, from: job.error)
    let error = ServiceError(
      WorkerFailure(code: failed?.code ?? "worker_failed", detail: failed?.detail ?? "The job failed.", retry: false))
    guard case .rejectedByWorker("limit_stored_bytes", _) = error else { return error }
    return StorageError.limitReached("stored_bytes", limit: accounts.stored(by: caller.tenant).bytes ?? 0)
  }

  /// Returns the recording once it has been read to its end, so that its length is known for certain and the service
  /// may decode it. Waits for the job that reads it. Throws `.decoding` if that takes longer, `.neverRead` if the job
  /// failed, and `.notReady` if the recording is itself still being made.
  func readWhole(
    _ recording: Recording, until deadline: Clock.Instant, _ caller: Caller
  ) async throws -> Recording {
    guard recording.audioKey != nil else { throw ServiceError.notReady(recording.id) }
    var read = recording
    if read.waveformState != .ready, read.waveformState != .failed, let job = read.waveformJob {
      let ended = try await wait(for: job, until: deadline, caller)
      if let ended, !ended.state.isFinished { throw RequestError.decoding(job) }
      let catalog = caller.catalog
      read = try await work.run { () throws(StorageError) in try catalog.recording(recording.id) } ?? recording
    }
    if read.waveformState == .failed { throw RequestError.neverRead(read.id) }
    guard read.waveformState == .ready, read.format.frames != nil else { throw ServiceError.notReady(read.id) }
    return read
  }
}
