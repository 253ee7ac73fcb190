import Denoise
import Glibc
import HTTP
import Jobs
import Labels
import Storage
import Terms
import Waveform
import Workers

// Maps an error to a kind of problem (`ProblemKind`) and text that is safe to show; details go to the log. The server's
// own errors are in `HTTPProblems`, errors in a request in `ErrorResponses+Requests`.

/// Returns the problem document for any error thrown by a handler.
func problem(for error: any Error) -> Problem {
  switch error {
  case let problem as Problem: problem
  case let error as RequestError: problem(for: error)
  case let error as ServiceError: problem(for: error)
  case let error as AccessError: error.problem
  case let error as JobsError: problem(for: error)
  case let error as WaveformError: problem(for: error)
  case let error as SpectrogramError: QueryComplaint(error).problem
  case let error as StorageError: problem(for: error)
  case let error as AudioIOError: problem(for: error)
  case let error as LabelsError:
    Problem(
      "invalid_labels", error.words,
      text: Problem.TextFault(error.fault.code, line: error.position.line, column: error.position.column))
  case FileContentError.io(_, _, let number) where number == EMFILE || number == ENFILE: busyProblem
  case let error as RequestBodyError: error.problem
  case let error as MultipartError: error.problem
  case let error as RoutingError: error.problem
  default: internalProblem
  }
}

/// All files that the process may have open are in use.
private let busyProblem = Problem(
  "unavailable", "The service has too many files open. Try again later.",
  fields: ["Retry-After": "1"])

/// Says nothing about what happened, which is in the log.
private let internalProblem = Problem(
  "internal_error", "The service failed to handle this request. Its X-Request-Id names the entry in the log.")

private func problem(for error: ServiceError) -> Problem {
  switch error {
  case .noSuchRecording(let id): Problem("not_found", "There is no recording “\(id)”.", parameter: "id")
  case .noSuchJob(let id): Problem("not_found", "There is no job “\(id)”.", parameter: "id")
  case .noSuchBatch(let id): Problem("not_found", "There is no batch “\(id)”.", parameter: "id")
  case .noSuchLabelTrack(let id): Problem("not_found", "There is no track of labels “\(id)”.", parameter: "track")
  case .noSuchNoiseProfile(let id): Problem("not_found", "There is no noise profile “\(id)”.", parameter: "id")
  case .labelTrackIsInherited(let id, let owner):
    Problem(
      "not_found", "Track \(id) belongs to recording \(owner). Change it there, or give this recording its own.",
      parameter: "track")
  case .jobIsFinished(let id, let state):
    Problem("job_finished", "Job \(id) is \(state.rawValue); only a queued or running job can be canceled.")
  case .batchHasEnded(let id, let state):
    Problem("batch_finished", "Batch \(id) is \(state.rawValue); only one that has not ended can be canceled.")
  case .notReady(let id): Problem("not_ready", "The sound of recording \(id) isn't finished yet. Follow its job.")
  case .noCover(let id): Problem("no_cover", "The file of recording \(id) has no cover that can be served.")
  case .noVideo(let id): Problem("no_video", "Recording \(id) has no video. Its sound is at “audio”.")
  case .audioMissing(let id): audioMissingProblem("The file of recording \(id)")
  case .audioDamaged(let id): audioDamagedProblem("The file of recording \(id)")
  case .waveformIsNotFailed(let id, let state):
    Problem(
      "waveform_not_failed", "The waveform of recording \(id) is \(state.rawValue); only a failed one can be rebuilt.")
  case .emptyUpload: Problem("empty_body", "The upload is empty. Send the file's bytes as the body.")
  case .diskFull: Problem("disk_full", "The service's disk doesn't have enough room for this.")
  case .limitReached(let name, let limit, let seconds): limitProblem(name, limit, retryAfter: seconds)
  case .rejectedByProbe(let code, let detail):
    Problem(
      ["unsupported_format", "probe_too_slow"].contains(code) ? .unprocessableContent : .unsupportedMediaType,
      code: code, detail: detail)
  case .rejectedByWorker(let code, let detail): Problem(.unprocessableContent, code: code, detail: detail)
  case .workerUnavailable:
    Problem("unavailable", "The service can't do this right now. Try again later.", fields: ["Retry-After": "5"])
  case .auditFails:
    Problem(
      "audit_unwritable",
      "The service can't write its audit log, so it makes no changes until it can. This one may have been made. "
        + "Try again later.",
      fields: ["Retry-After": "10"])
  case .hookRefuses: Problem("hook_refused", "The operator of this service doesn't accept the upload.")
  case .hookFails:
    Problem(
      "hook_unavailable", "The service that decides about uploads doesn't answer. Try again later.",
      fields: ["Retry-After": "10"])
  case .noSuchUpload, .uploadExpired, .wrongUploadOffset, .uploadTakenOver, .uploadIsFinishing, .checksumMismatch:
    uploadProblem(for: error)
  case .keyInUse(let key):
    Problem(
      "idempotency_key_in_use",
      "Another request with the key “\(key)” is in progress. Repeat this one when it has ended.",
      parameter: "Idempotency-Key", fields: ["Retry-After": "1"])
  case .keyReused(let key):
    Problem(
      "idempotency_key_reused", "The key “\(key)” was already used for a different request. Use a new key.",
      parameter: "Idempotency-Key")
  case .storage(let error): problem(for: error)
  }
}

private func problem(for error: JobsError) -> Problem {
  switch error {
  case .queueFull(let limit):
    Problem(
      "queue_full", "The queue is full (\(Words.count(limit, "job"))). Try again later.",
      fields: ["Retry-After": "10"])
  case .clientQueueFull(let limit): limitProblem("queued_jobs", limit, retryAfter: 10)
  case .clientRunsNothing: limitProblem("running_jobs", 0, retryAfter: 3600)
  case .clientDaySpent(let limit, let seconds): limitProblem("job_seconds_per_day", Int(limit), retryAfter: seconds)
  case .unreadableParameters, .noiseProfileIsGone: internalProblem
  }
}

private func uploadProblem(for error: ServiceError) -> Problem {
  switch error {
  case .noSuchUpload(let id): Problem("not_found", "There is no upload “\(id)”. Start a new one.", parameter: "id")
  case .uploadExpired(let id): Problem("upload_expired", "Upload \(id) has expired. Start a new one.", parameter: "id")
  case .wrongUploadOffset(let given, let actual):
    Problem(
      "upload_offset_mismatch", "“Upload-Offset” is \(given), but the upload is at \(actual). Continue from there.",
      parameter: "Upload-Offset")
  case .uploadTakenOver(let id):
    Problem(
      "upload_locked", "Another request is continuing upload \(id). Ask for its offset.",
      fields: ["Retry-After": "1"])
  case .uploadIsFinishing(let id):
    Problem(
      "upload_locked",
      "All bytes of upload \(id) are here, and another node is making the recording. Ask for its offset again.",
      fields: ["Retry-After": "1"])
  case .checksumMismatch(let algorithm):
    Problem(
      "checksum_mismatch", "The body doesn't match its \(algorithm) digest; none of it was kept.",
      parameter: "Upload-Checksum")
  default: internalProblem
  }
}

private func limitProblem(_ name: String, _ limit: Int, retryAfter seconds: Int) -> Problem {
  let words = name.split(separator: "_").joined(separator: " ")
  return Problem(
    .tooManyRequests, code: "limit_\(name)",
    detail: "This client has \(limit) \(words), the most that one client may have. Try again later.",
    fields: rateLimit(name, Int64(limit), retryAfter: seconds))
}

/// The fields of a refusal (draft-ietf-httpapi-ratelimit-headers-10): nothing is left, and when there will be.
private func rateLimit(_ name: String, _ limit: Int64, retryAfter seconds: Int) -> HTTPFields {
  [
    "Retry-After": "\(seconds)", "RateLimit-Policy": "\"\(name)\";q=\(limit)",
    "RateLimit": "\"\(name)\";r=0;t=\(seconds)",
  ]
}

private func problem(for error: StorageError) -> Problem {
  switch error {
  case .diskFull: problem(for: ServiceError.diskFull)
  case .storeFull: Problem("media_full", "The service's store of recordings has no room for this.")
  case .noSuchRecording(let id): problem(for: ServiceError.noSuchRecording(id.text))
  case .noSuchUpload(let id): problem(for: ServiceError.noSuchUpload(id.text))
  case .uploadTakenOver(let id): problem(for: ServiceError.uploadTakenOver(id))
  case .tooManyUploads(let limit):
    Problem(
      "too_many_uploads", "There are \(limit) unfinished uploads already. Try again later.",
      fields: ["Retry-After": "60"])
  case .tooManyUploadsOfClient(let limit): limitProblem("open_uploads", limit, retryAfter: 60)
  case .limitReached("stored_bytes", let limit):
    Problem(
      "limit_stored_bytes",
      "What is kept for the tenant, with what is being made, may have \(limit) bytes in all. Delete some of "
        + "it, or send or request less.",
      fields: rateLimit("stored_bytes", limit, retryAfter: 60))
  case .limitReached("open_batches", let limit): limitProblem("open_batches", Int(clamping: limit), retryAfter: 60)
  case .limitReached(let name, let limit): limitProblem(name, Int(clamping: limit), retryAfter: 60)
  case .queueFull(let limit): problem(for: JobsError.queueFull(limit: limit))
  case .tokenIsSpent: AccessError.tokenIsSpent.problem
  case .keyIsLost:
    Problem(
      "idempotency_key_in_use",
      "Another request with the same key was carried out meanwhile. Repeat this one to get its response.",
      parameter: "Idempotency-Key", fields: ["Retry-After": "1"])
  case .tooManyLabelTracks(let limit):
    Problem("too_many_tracks", "The recording has \(limit) tracks already. Delete one of them.")
  case .tooManyNoiseProfiles(let limit):
    Problem("too_many_noise_profiles", "There are \(limit) noise profiles already. Delete one of them.")
  case .changedMeanwhile: Problem("precondition_failed", "The resource has a newer version; nothing was changed.")
  case .io(_, _, let number) where number == EMFILE || number == ENFILE: busyProblem
  case .damagedCatalog:
    unwritableProblem("catalog_damaged", "The service's catalog is damaged; nothing was changed.")
  case .catalogReplaced, .claimLost:
    unwritableProblem(
      "data_folder_replaced", "The service's data folder was replaced while it ran; nothing was changed.")
  case .io(_, _, let number) where [EROFS, EACCES, EPERM].contains(number):
    unwritableProblem("disk_unwritable", "The service can't write to its disk right now; nothing was changed.")
  case .database(let code, _): problem(forDatabaseCode: code)
  case .busy: unwritableProblem("catalog_busy", "The service's catalog is busy; nothing was changed.")
  case .unreachable:
    unwritableProblem("catalog_unwritable", "The service can't use its catalog right now; nothing was changed.")
  case .damagedObject: audioDamagedProblem("The recording's file")
  case .storeUnreachable, .objectStore, .objectMayBeGone:
    unwritableProblem("media_unavailable", "The service can't use its store of recordings right now. Try again later.")
  case .outcomeUnknown:
    Problem(
      "outcome_unknown",
      "The catalog's server didn't confirm the change, which may have been made or may still be. Check before "
        + "you repeat the request; one with an Idempotency-Key can be repeated with the same key.")
  default: internalProblem
  }
}

/// Maps SQLite's primary code, the low byte of its extended codes (https://sqlite.org/rescode.html).
private func problem(forDatabaseCode code: Int32) -> Problem {
  switch code & 0xFF {
  case 5: unwritableProblem("catalog_busy", "Another program has locked the service's catalog; nothing was changed.")
  // SQLITE_READONLY, SQLITE_IOERR, SQLITE_CANTOPEN.
  case 8, 10, 14:
    unwritableProblem("catalog_unwritable", "The service can't use its catalog right now; nothing was changed.")
  default: internalProblem
  }
}

/// Returns a problem for a fault that `/readyz` also reports, with text for the request that encountered it.
private func unwritableProblem(_ code: String, _ detail: String) -> Problem {
  Problem(.serviceUnavailable, code: code, detail: detail, fields: ["Retry-After": "10"])
}

private func audioMissingProblem(_ file: String) -> Problem {
  Problem(
    .gone, code: MissingFiles.code,
    detail: "\(file) is gone from the service's disk. Upload the recording again, or restore the data folder.")
}

private func audioDamagedProblem(_ file: String) -> Problem {
  Problem(
    .gone, code: MissingFiles.damagedCode,
    detail: "\(file) on the service's disk is damaged. Upload the recording again, or restore the data folder.")
}

/// The service opens no sound, so this can only be a format that can't be written.
private func problem(for error: AudioIOError) -> Problem {
  guard case .unwritable = error else { return internalProblem }
  let failure = WorkerFailure(.audio(error))
  return Problem(.unprocessableContent, code: failure.code, detail: failure.detail, parameter: "format")
}

private func problem(for error: WaveformError) -> Problem {
  if case .io(_, _, let number) = error, number == EMFILE || number == ENFILE { return busyProblem }
  guard let complaint = QueryComplaint(error) else { return internalProblem }
  return complaint.problem
}

extension QueryComplaint {
  fileprivate var problem: Problem { Problem(.badRequest, code: code, detail: detail, parameter: parameter) }
}

/// Returns the problem for a failed readiness check; details are only logged.
func problem(for finding: Readiness.Finding) -> Problem {
  switch finding {
  case .ready: internalProblem
  case .diskIsFull: unreadyProblem("disk_full", "The disk is full, except for the space kept in reserve.")
  case .diskFails: unreadyProblem("disk_unwritable", "The data folder can't be written. Is its disk read-only?")
  case .mediaFail:
    unreadyProblem("media_unavailable", "The bucket with the recordings can't be reached or refuses requests.")
  case .catalogFails: unreadyProblem("catalog_unwritable", "The catalog can't be written.")
  case .catalogIsBusy:
    unreadyProblem("catalog_busy", "The catalog doesn't respond: another program has locked it, or the disk hangs.")
  case .catalogIsHeld(let write): unreadyProblem("catalog_busy", write.words)
  case .catalogIsDamaged:
    unreadyProblem(
      "catalog_damaged",
      "The catalog is damaged. Stop the service and run “stillwave check --repair”, or restore a backup.")
  case .dataFolderIsReplaced:
    unreadyProblem(
      "data_folder_replaced",
      "The catalog or the lock in the data folder was removed or replaced while the service ran. Restart the service.")
  case .programIsMissing:
    unreadyProblem("worker_missing", "The program that workers are started from is missing or can't be run.")
  case .isLeaving: unreadyProblem("draining", "The service is about to stop. Send new requests to another node.")
  }
}

private func unreadyProblem(_ code: String, _ detail: String) -> Problem {
  Problem(.serviceUnavailable, code: code, detail: detail)
}
