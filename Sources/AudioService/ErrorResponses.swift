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
  case .audioMissing(let id): audioMissingProblem("Recording \(id)")
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
  case .rejectedByProbe(let code, let detail):
    Problem(code == "unsupported_format" ? .unprocessableContent : .unsupportedMediaType, code: code, detail: detail)
  case .rejectedByWorker(let code, let detail): Problem(.unprocessableContent, code: code, detail: detail)
  case .workerUnavailable:
    Problem(
      .serviceUnavailable, code: "unavailable", detail: "The service can't do this now; try again later.",
      fields: ["Retry-After": "5"])
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

private func problem(for error: StorageError) -> Problem {
  switch error {
  case .diskFull: problem(for: ServiceError.diskFull)
  case .noSuchRecording(let id): problem(for: ServiceError.noSuchRecording(id.text))
  case .changedMeanwhile:
    Problem(
      .preconditionFailed, code: "precondition_failed", detail: "It has another version by now; nothing was changed.")
  default: internalProblem
  }
}

private func audioMissingProblem(_ whose: String) -> Problem {
  Problem(
    .gone, code: MissingFiles.code,
    detail: "\(whose) has lost its file on the service's disk; upload it again, or restore the data folder.")
}

private func problem(for error: AudioIOError) -> Problem {
  // The service itself opens only the sounds of recordings.
  if case .system(_, ENOENT) = error { return audioMissingProblem("The recording") }
  guard case .unwritable(let format) = error else { return internalProblem }
  return Problem(
    .unprocessableContent, code: "unsupported_output",
    detail: "\(format.container.rawValue) with \(format.codec.name) can't hold \(format.channels) channels at "
      + "\(format.sampleRate) Hz; wav can.", parameter: "format")
}

private func problem(for error: WaveformError) -> Problem {
  guard let complaint = QueryComplaint(error) else { return internalProblem }
  return Problem(
    .badRequest, code: complaint.code, detail: complaint.detail, parameter: complaint.parameter)
}
