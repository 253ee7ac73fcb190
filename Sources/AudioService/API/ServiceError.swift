import Storage

/// What handlers of different resources have in common to complain about. Facts only; the words are in ErrorResponses.
enum ServiceError: Error, Sendable {
  case noSuchRecording(String)
  case noSuchJob(String)
  case jobIsFinished(JobID, JobState)
  /// The sound of a recording that a job is still making.
  case notReady(RecordingID)
  case noVideo(RecordingID)
  /// The row is there, the file of the sound is not.
  case audioMissing(RecordingID)
  /// The file of the sound is not as long as the row says, or can't be decoded any more.
  case audioDamaged(RecordingID)
  case waveformIsNotFailed(RecordingID, WaveformState)
  case emptyUpload
  case diskFull
  case queueFull(limit: Int)
  /// A client has as much as one may have; `name` says of what, the code is `limit_<name>`.
  case limitReached(_ name: String, limit: Int, retryAfter: Int)
  /// The probe said no; `code` is its stable code.
  case rejectedByProbe(code: String, detail: String)
  /// A child that a request waited for found the request at fault; `code` is its stable code.
  case rejectedByWorker(code: String, detail: String)
  case workerUnavailable(reason: String)
  case noSuchUpload(String)
  case uploadExpired(UploadID)
  case wrongUploadOffset(given: Int64, actual: Int64)
  /// A newer request writes now.
  case uploadTakenOver(UploadID)
  /// The bytes of a request are not what its digest says.
  case checksumMismatch(String)
  /// A request with this key is being answered.
  case keyInUse(String)
  /// The key has answered another request.
  case keyReused(String)
  /// What happened below, where a handler's own errors are expected.
  case storage(StorageError)
}
