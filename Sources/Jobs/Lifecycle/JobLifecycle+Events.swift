import Processing
import Storage
import Terms

extension JobLifecycle {
  /// What happened.
  enum Event {
    /// A job whose row is in the catalog came in.
    case submitted(JobID, JobSchedule.Work, Client)
    /// Another client waits for a job.
    case joined(JobID, Client)
    /// The row says running. `attempts` counts this one; `failures` counts earlier ones that weren't interrupted.
    case claimed(JobID, attempts: Int, failures: Int)
    /// The row says that the job has finished, or is gone; `cancelled` is the job if it was cancelled.
    case refused(JobID, cancelled: Job?)
    /// The job can't begin: for good with a failure, else it is tried again.
    case notBegun(JobID, WorkerFailure?)
    /// A child can be started, under these limits.
    case prepared(JobID, WorkerFence)
    /// The child got on.
    case progressed(JobID, diskIsFull: Bool)
    /// The child said how its work ended.
    case reported(JobID, Verdict?)
    /// The child has ended, or couldn't be started. Its last report came before.
    case exited(JobID, WorkerExit)
    /// The end of an attempt has been written, or not.
    case recorded(JobID, Recorded)
    /// The time has come to record a failure again.
    case recordDue(JobID)
    /// The time has come for the next attempt.
    case pauseEnded(JobID)
    /// The row says cancelled.
    case cancelled(Job)
    /// What a cancelled job had written is removed.
    case cleared(JobID)
    /// Time has passed.
    case tick
    /// The service stops.
    case stop
  }

  /// What to do about it.
  enum Action {
    /// Set the row to running and count an attempt, unless the job has finished.
    case claim(JobID)
    /// Check the source's files and make the job's folder.
    case prepare(JobID)
    /// Start a child. `idlePlaces`: cores that no other job uses or waits for.
    case start(JobID, idlePlaces: Int)
    /// End the child at once.
    case kill(JobID)
    /// Write how the attempt ended.
    case record(JobID, Ending)
    /// Send `recordDue` after a while.
    case recordLater(JobID, seconds: Double)
    /// The job waits again: send `pauseEnded` after a while.
    case pause(JobID, seconds: Double)
    /// Remove everything that the job has written, and the folder of the recording that it was making.
    case clear(Job)
    /// The job neither waits nor runs any more: release its room.
    case forget(JobID)
    /// Send `tick` after a while.
    case watch(seconds: Double)
    /// The stop is complete.
    case stopped
  }

  /// What a child said about its work.
  enum Verdict: Equatable {
    case result
    case failure(WorkerFailure)
  }

  /// How an attempt ended.
  enum Ending: Equatable {
    case result
    /// A later attempt may succeed.
    case retry(WorkerExit, WorkerFailure)
    /// The job has failed for good.
    case failure(WorkerFailure)
    /// The service stops: the next start begins the job again.
    case interruption
  }

  /// What came of writing how an attempt ended.
  enum Recorded {
    /// The job has ended, and with it these, which worked on the recording that it was making.
    case over(with: [Job])
    /// It is begun again.
    case again
    /// Its row says that it was cancelled.
    case unwanted(Job)
    /// The failure could not be written.
    case unwritten(WorkerFailure)
  }

  /// What an operator sets.
  package struct Limits: Sendable {
    /// Children at once, 1 or more.
    let places: Int
    /// Attempts that a job has, those that were interrupted aside.
    let maximumAttempts: Int
    /// Half of the pause before the second attempt.
    let retryPauseSeconds: Double
    /// A child without progress for longer is ended.
    let stallSeconds: Double
    /// A child may run for this many times the processor time it is allowed.
    let secondsPerProcessorSecond: Double

    /// Limits of known parts.
    package init(
      places: Int, maximumAttempts: Int, retryPauseSeconds: Double, stallSeconds: Double,
      secondsPerProcessorSecond: Double
    ) {
      self.places = places
      self.maximumAttempts = maximumAttempts
      self.retryPauseSeconds = retryPauseSeconds
      self.stallSeconds = stallSeconds
      self.secondsPerProcessorSecond = secondsPerProcessorSecond
    }
  }
}
