import AudioIO
import Glibc
import HTTP
import Processing
import Storage
import Waveform

// The one table from errors to status, stable code and words that are safe for a stranger. The rest goes to the log.

/// The problem document for whatever a handler throws.
func problem(for error: any Error) -> Problem {
  switch error {
  case let problem as Problem: problem
  case let error as ServiceError: problem(for: error)
  case let error as WaveformError: problem(for: error)
  case let error as StorageError: problem(for: error)
  case let error as AudioIOError: problem(for: error)
  case FileContentError.io(_, _, let number) where number == EMFILE || number == ENFILE: busyProblem
  case let error as RequestBodyError: error.problem
  case let error as MultipartError: error.problem
  case let error as RoutingError: error.problem
  case let error as InvalidField:
    Problem(
      .badRequest, code: "invalid_header", detail: "“\(error.name)” must be \(error.expected).", parameter: error.name)
  default: internalProblem
  }
}

/// Others hold all the files that the process may have open.
private let busyProblem = Problem(
  .serviceUnavailable, code: "unavailable", detail: "The service has as many files open as it can; try again later.",
  fields: ["Retry-After": "1"])

/// Says nothing of what happened: that is for the log.
private let internalProblem = Problem(
  .internalServerError, code: "internal_error",
  detail: "The service failed on this request; the request id names the entry in its log.")

private func problem(for error: ServiceError) -> Problem {
  switch error {
  case .noSuchRecording(let id):
    Problem(.notFound, code: "not_found", detail: "There is no recording “\(id)”.", parameter: "id")
  case .noSuchJob(let id): Problem(.notFound, code: "not_found", detail: "There is no job “\(id)”.", parameter: "id")
  case .jobIsFinished(let id, let state):
    Problem(
      .conflict, code: "job_finished",
      detail: "Job \(id) is \(state.rawValue); only a job that waits or runs can be cancelled.")
  case .notReady(let id):
    Problem(.conflict, code: "not_ready", detail: "The sound of recording \(id) is still being made; follow its job.")
  case .noVideo(let id):
    Problem(.notFound, code: "no_video", detail: "Recording \(id) has no picture; “audio” serves its sound.")
  case .audioMissing(let id): audioMissingProblem("Recording \(id)")
  case .audioDamaged(let id): audioDamagedProblem("Recording \(id)’s")
  case .waveformIsNotFailed(let id, let state):
    Problem(
      .conflict, code: "waveform_not_failed",
      detail: "The waveform of recording \(id) is \(state.rawValue); only one that failed is built again.")
  case .emptyUpload:
    Problem(.badRequest, code: "empty_body", detail: "The upload has no bytes; send the file's bytes as the body.")
  case .diskFull:
    Problem(.insufficientStorage, code: "disk_full", detail: "The service's disk has no room for this.")
  case .queueFull(let limit):
    Problem(
      .tooManyRequests, code: "queue_full", detail: "\(limit) jobs are waiting already; try again later.",
      fields: ["Retry-After": "10"])
  case .limitReached(let name, let limit, let seconds): limitProblem(name, limit, retryAfter: seconds)
  case .rejectedByProbe(let code, let detail):
    Problem(
      ["unsupported_format", "probe_too_slow"].contains(code) ? .unprocessableContent : .unsupportedMediaType,
      code: code, detail: detail)
  case .rejectedByWorker(let code, let detail): Problem(.unprocessableContent, code: code, detail: detail)
  case .workerUnavailable:
    Problem(
      .serviceUnavailable, code: "unavailable", detail: "The service can't do this now; try again later.",
      fields: ["Retry-After": "5"])
  case .noSuchUpload, .uploadExpired, .wrongUploadOffset, .uploadTakenOver, .checksumMismatch:
    uploadProblem(for: error)
  case .keyInUse(let key):
    Problem(
      .conflict, code: "idempotency_key_in_use",
      detail: "A request with the key “\(key)” is being answered; ask again when that is done.",
      parameter: "Idempotency-Key", fields: ["Retry-After": "1"])
  case .keyReused(let key):
    Problem(
      .unprocessableContent, code: "idempotency_key_reused",
      detail: "The key “\(key)” has answered another request here; another request needs another key.",
      parameter: "Idempotency-Key")
  case .storage(let error): problem(for: error)
  }
}

private func uploadProblem(for error: ServiceError) -> Problem {
  switch error {
  case .noSuchUpload(let id):
    Problem(.notFound, code: "not_found", detail: "There is no upload “\(id)”; begin a new one.", parameter: "id")
  case .uploadExpired(let id):
    Problem(.gone, code: "upload_expired", detail: "Upload \(id) has expired; begin a new one.", parameter: "id")
  case .wrongUploadOffset(let given, let actual):
    Problem(
      .conflict, code: "upload_offset_mismatch",
      detail: "“Upload-Offset” is \(given), the upload is at \(actual): go on from there.", parameter: "Upload-Offset")
  case .uploadTakenOver(let id):
    Problem(
      .locked, code: "upload_locked", detail: "Another request goes on with upload \(id); ask for its offset.",
      fields: ["Retry-After": "1"])
  case .checksumMismatch(let algorithm):
    Problem(
      .checksumMismatch, code: "checksum_mismatch",
      detail: "The body is not what its \(algorithm) says; nothing of it was kept.", parameter: "Upload-Checksum")
  default: internalProblem
  }
}

private func limitProblem(_ name: String, _ limit: Int, retryAfter seconds: Int) -> Problem {
  let words = name.split(separator: "_").joined(separator: " ")
  return Problem(
    .tooManyRequests, code: "limit_\(name)",
    detail: "This client has \(limit) \(words), which is as many as one may have; try again later.",
    fields: ["Retry-After": "\(seconds)"])
}

private func problem(for error: StorageError) -> Problem {
  switch error {
  case .diskFull: problem(for: ServiceError.diskFull)
  case .noSuchRecording(let id): problem(for: ServiceError.noSuchRecording(id.text))
  case .noSuchUpload(let id): problem(for: ServiceError.noSuchUpload(id.text))
  case .tooManyUploads(let limit):
    Problem(
      .tooManyRequests, code: "too_many_uploads", detail: "\(limit) uploads are unfinished already; try again later.",
      fields: ["Retry-After": "60"])
  case .tooManyUploadsOfClient(let limit): limitProblem("open_uploads", limit, retryAfter: 60)
  case .changedMeanwhile:
    Problem(
      .preconditionFailed, code: "precondition_failed", detail: "It has another version by now; nothing was changed.")
  case .io(_, _, let number) where number == EMFILE || number == ENFILE: busyProblem
  case .damagedCatalog:
    unwritableProblem("catalog_damaged", "The service's catalog is damaged; nothing was changed.")
  case .catalogReplaced, .claimLost:
    unwritableProblem(
      "data_folder_replaced", "The service's data folder was replaced while it ran; nothing was changed.")
  case .io(_, _, let number) where [EROFS, EACCES, EPERM].contains(number):
    unwritableProblem("disk_unwritable", "The service can't write to its disk now; nothing was changed.")
  case .database(let code, _): problem(forDatabaseCode: code)
  default: internalProblem
  }
}

/// By the primary code of SQLite, the low byte of its extended ones (https://sqlite.org/rescode.html).
private func problem(forDatabaseCode code: Int32) -> Problem {
  switch code & 0xFF {
  case 5: unwritableProblem("catalog_busy", "Another program holds the service's catalogue; nothing was changed.")
  // SQLITE_READONLY, SQLITE_IOERR, SQLITE_CANTOPEN.
  case 8, 10, 14:
    unwritableProblem("catalog_unwritable", "The service can't use its catalogue now; nothing was changed.")
  default: internalProblem
  }
}

/// What `/readyz` says of the same fault, in the words for a request that met it.
private func unwritableProblem(_ code: String, _ detail: String) -> Problem {
  Problem(.serviceUnavailable, code: code, detail: detail, fields: ["Retry-After": "10"])
}

private func audioMissingProblem(_ whose: String) -> Problem {
  Problem(
    .gone, code: MissingFiles.code,
    detail: "\(whose) has lost its file on the service's disk; upload it again, or restore the data folder.")
}

private func audioDamagedProblem(_ whose: String) -> Problem {
  Problem(
    .gone, code: MissingFiles.damagedCode,
    detail: "\(whose) file on the service's disk is damaged; upload it again, or restore the data folder.")
}

/// The service itself opens only the sounds of recordings, which could be decoded when they were uploaded.
private func problem(for error: AudioIOError) -> Problem {
  switch error {
  case .system(_, ENOENT): return audioMissingProblem("The recording")
  case .system(_, let number) where number == EMFILE || number == ENFILE: return busyProblem
  case .system(_, let number) where number != EIO: return internalProblem
  case .unwritable:
    let failure = WorkerFailure(.audio(error))
    return Problem(.unprocessableContent, code: failure.code, detail: failure.detail, parameter: "format")
  default: return audioDamagedProblem("The recording’s")
  }
}

private func problem(for error: WaveformError) -> Problem {
  if case .io(_, _, let number) = error, number == EMFILE || number == ENFILE { return busyProblem }
  guard let complaint = QueryComplaint(error) else { return internalProblem }
  return Problem(
    .badRequest, code: complaint.code, detail: complaint.detail, parameter: complaint.parameter)
}
