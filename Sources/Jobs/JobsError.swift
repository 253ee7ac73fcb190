import Storage

/// Why a job can't be queued or begun.
package enum JobsError: Error, Equatable {
  /// As many jobs wait and run as may, of all clients.
  case queueFull(limit: Int)
  /// As many jobs of this client do.
  case clientQueueFull(limit: Int)
  /// The parameters in the job's row are another version's.
  case unreadableParameters(JobID)
}
