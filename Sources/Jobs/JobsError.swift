import Storage

/// Why a job can't be queued or begun.
package enum JobsError: Error, Equatable {
  /// The number of jobs that wait or run, of all clients, is at its limit.
  case queueFull(limit: Int)
  /// The number of this client's jobs that wait or run is at its limit.
  case clientQueueFull(limit: Int)
  /// The client's jobs have run for as long today as they may.
  case clientDaySpent(limitSeconds: Double, retryAfter: Int)
  /// None of the client's jobs may run.
  case clientRunsNothing
  /// The parameters in the job's row can't be read; another version may have written them.
  case unreadableParameters(JobID)
  /// The noise profile that the job uses isn't in the catalog any more.
  case noiseProfileIsGone(String)
}
