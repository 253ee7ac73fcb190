import Storage
import Terms
import Workers

extension JobLifecycle {
  /// An event in the life of a job or of the service.
  enum Event {
    /// A job whose row is in the catalog was submitted.
    case submitted(JobID, JobSchedule.Work, Client)
    /// Another client waits for the job as well.
    case joined(JobID, Client)
    /// The row has been set to running. `attempts` includes this attempt; `failures` counts the earlier ones that
    /// weren't interrupted, and `losses` the others.
    case claimed(JobID, attempts: Int, failures: Int, losses: Int = 0)
    /// The job can't be claimed, according to its row.
    case refused(JobID, Refusal)
    /// Another node runs the job.
    case taken(JobID)
    /// The job that another node ran is queued again.
    case returned(JobID)
    /// The job has ended, or doesn't exist any more, and not because of an attempt of this node.
    case endedElsewhere(JobID)
    /// The job couldn't be claimed or prepared. With a failure, it has failed for good; with nil, it's tried again.
    case notBegun(JobID, WorkerFailure?)
    /// The store of media can't give the job's source now, or this node's disk can't take it. With this failure, the
    /// job fails if that happens too often.
    case storeFailed(JobID, WorkerFailure)
    /// A child can be started with these limits.
    case prepared(JobID, WorkerFence)
    /// The child reported progress.
    case progressed(JobID, diskIsFull: Bool)
    /// The child reported how its work ended; nil if the report makes no sense for this work.
    case reported(JobID, Verdict?)
    /// The child has exited, or couldn't be started. All its reports came before.
    case exited(JobID, WorkerExit)
    /// The attempt has lost its lease, or can't renew it in time.
    case leaseLost(JobID)
    /// The end of an attempt has been recorded, or recording it failed.
    case recorded(JobID, Recorded)
    /// It's time to try again to claim a held job or to record its failure.
    case holdEnded(JobID)
    /// It's time for the next attempt.
    case pauseEnded(JobID)
    /// The row has been set to `cancelled`.
    case cancelled(Job)
    /// The files of a canceled job have been removed.
    case cleared(JobID)
    /// It's time to check the running children against their limits.
    case tick
    /// The service will stop soon: no job begins any more.
    case drain
    /// The service is stopping.
    case stop
  }

  /// Why a job couldn't be claimed.
  enum Refusal {
    /// It has finished or been deleted.
    case over
    /// It was canceled.
    case cancelled(Job)
    /// Another node runs it.
    case runsElsewhere
    /// With those of other nodes, as many jobs of its client run as may, or this node lacks what the job needs.
    case clientIsFull
    /// It is postponed for this long.
    case tooEarly(seconds: Double)
  }

  /// An action for `JobRunner` to perform.
  enum Action {
    /// Set the row to running and count an attempt, unless the job has finished. `failed` is the number of this node's
    /// last attempt, if that has failed. If the row shows another one as running here, it has never begun, or its end
    /// couldn't be written, which is no failure.
    case claim(JobID, failed: Int?)
    /// Check the source's files and make the job's folder.
    case prepare(JobID)
    /// Start a child. `idlePlaces` is the number of cores that no other job uses or waits for.
    case start(JobID, idlePlaces: Int)
    /// Kill the child.
    case kill(JobID)
    /// Record how the attempt ended.
    case record(JobID, Ending)
    /// Send `holdEnded` after this time.
    case hold(JobID, seconds: Double)
    /// Show the job as waiting, and send `pauseEnded` after this time.
    case pause(JobID, seconds: Double)
    /// Remove everything that the job has written, and the folder of the recording that it was producing.
    case clear(Job)
    /// Release the job's room: it no longer waits or runs.
    case forget(JobID)
    /// Send `tick` after this time.
    case watch(seconds: Double)
    /// Resume the callers of `drain`: no job runs.
    case drained
    /// Resume the callers of `stop`: it's complete.
    case stopped
  }

  /// The result of the work, as reported by the child.
  enum Verdict: Equatable {
    case result
    case failure(WorkerFailure)
  }

  /// How an attempt ended.
  enum Ending: Equatable {
    case result
    /// The attempt failed, but a later one may succeed.
    case retry(WorkerExit, WorkerFailure)
    /// The job has failed for good.
    case failure(WorkerFailure)
    /// The service is stopping, or the lease is ending. The job begins again at the next start, or elsewhere.
    case interruption
    /// The store of media, or the disk of one node of several, has failed the attempt. The job is postponed, or has
    /// failed with this if that has happened too often.
    case postponement(WorkerFailure)
  }

  /// The outcome of recording how an attempt ended.
  enum Recorded {
    /// The job has ended, and so have the jobs that used the recording it was producing.
    case over(with: [Job])
    /// The job begins again.
    case again
    /// The job begins again, here or elsewhere, in this time or later.
    case postponed(seconds: Double)
    /// The job was canceled, according to its row.
    case unwanted(Job)
    /// The attempt has lost its job, according to its row, which is now another attempt's.
    case lost
    /// The failure couldn't be written to the catalog.
    case unwritten(WorkerFailure)
  }

  /// The limits that an operator can set.
  package struct Limits: Sendable {
    /// The maximum number of children at the same time, 1 or more.
    let places: Int
    /// The maximum number of attempts at a job, not counting interrupted ones.
    let maximumAttempts: Int
    /// Half of the pause before the second attempt.
    let retryPauseSeconds: Double
    /// The first pause of a job that the store of media has failed; see `Job.postponementSeconds`.
    let storePauseSeconds: Double
    /// A child without progress for longer than this is killed.
    let stallSeconds: Double
    /// A child is killed once it has run for this many times its limit of processor time.
    let secondsPerProcessorSecond: Double

    /// Creates limits.
    package init(
      places: Int, maximumAttempts: Int, retryPauseSeconds: Double, storePauseSeconds: Double = 5,
      stallSeconds: Double, secondsPerProcessorSecond: Double
    ) {
      self.places = places
      self.maximumAttempts = maximumAttempts
      self.retryPauseSeconds = retryPauseSeconds
      self.storePauseSeconds = storePauseSeconds
      self.stallSeconds = stallSeconds
      self.secondsPerProcessorSecond = secondsPerProcessorSecond
    }
  }
}
