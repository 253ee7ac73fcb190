import Storage

/// Why a resource can't be served as requested. Only the facts; `ErrorResponses` has the texts.
enum ServiceError: Error, Sendable {
  case noSuchRecording(String)
  case noSuchJob(String)
  case noSuchBatch(String)
  case noSuchLabelTrack(String)
  case noSuchNoiseProfile(String)
  /// A track belongs to the recording from which the one in the path was made.
  case labelTrackIsInherited(LabelTrackID, RecordingID)
  case jobIsFinished(JobID, JobState)
  case batchHasEnded(BatchID, JobState)
  /// A job is still making the recording's audio.
  case notReady(RecordingID)
  case noVideo(RecordingID)
  case noCover(RecordingID)
  /// The row exists, but the audio file doesn't.
  case audioMissing(RecordingID)
  /// The audio file's size isn't the one in the row, or it can't be decoded any more.
  case audioDamaged(RecordingID)
  case waveformIsNotFailed(RecordingID, WaveformState)
  case emptyUpload
  case diskFull
  /// A client has reached one of its limits. `name` names the limit; the code is `limit_<name>`.
  case limitReached(_ name: String, limit: Int, retryAfter: Int)
  /// The probe rejected the file; `code` is its stable code.
  case rejectedByProbe(code: String, detail: String)
  /// A child that a request waited for rejected the request; `code` is its stable code.
  case rejectedByWorker(code: String, detail: String)
  case workerUnavailable(reason: String)
  case noSuchUpload(String)
  /// What was done couldn't be written to the audit log.
  case auditFails
  /// The operator's service refuses the upload, or can't be asked.
  case hookRefuses, hookFails
  case uploadExpired(UploadID)
  case wrongUploadOffset(given: Int64, actual: Int64)
  /// A newer request is now writing the upload.
  case uploadTakenOver(UploadID)
  /// Another node is making the recording of an upload that has all its bytes.
  case uploadIsFinishing(UploadID)
  /// A request's bytes don't match its digest.
  case checksumMismatch(String)
  /// A request with this key is still being answered.
  case keyInUse(String)
  /// The key was already used for a different request.
  case keyReused(String)
  /// A storage error, wrapped where a handler's own errors are expected.
  case storage(StorageError)
}
