import Storage

/// Why a resource can't be served as a request asks. Facts only; the words are in `ErrorResponses`.
enum ServiceError: Error, Sendable {
  case noSuchRecording(String)
  case noSuchJob(String)
  case jobIsFinished(JobID, JobState)
  /// A job is still making the recording's sound.
  case notReady(RecordingID)
  case noVideo(RecordingID)
  /// The recording is in the catalog, but its sound file is gone.
  case audioMissing(RecordingID)
  /// The sound file has another length than the catalog says, or can no longer be decoded.
  case audioDamaged(RecordingID)
  case waveformIsNotFailed(RecordingID, WaveformState)
  case emptyUpload
  case diskFull
  case queueFull(limit: Int)
  /// The client has as many as one client may have; `name` says of what, and the code is `limit_<name>`.
  case limitReached(_ name: String, limit: Int, retryAfter: Int)
  /// The probe refused the file; `code` is its stable code.
  case rejectedByProbe(code: String, detail: String)
  /// A worker that the request waited for refused it; `code` is its stable code.
  case rejectedByWorker(code: String, detail: String)
  case workerUnavailable(reason: String)
  case noSuchUpload(String)
  case uploadExpired(UploadID)
  case wrongUploadOffset(given: Int64, actual: Int64)
  /// A newer request is writing to the upload.
  case uploadTakenOver(UploadID)
  /// The body doesn't have the digest that the request gives.
  case checksumMismatch(String)
  /// A request with this key is being answered.
  case keyInUse(String)
  /// The key was used for a different request.
  case keyReused(String)
  /// An error of the storage, where only service errors are expected.
  case storage(StorageError)
}
