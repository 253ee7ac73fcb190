import HTTP
import Jobs
import Processing
import Terms

// The single table that maps the reasons for a job's failure to a status: 4xx if the recording or the request is at
// fault and another attempt would end the same way, 5xx if the service is.
//
//   422   the file or the request; also work that exceeds the limits on memory, time, or room, because these grow with
//         the recording
//   413   the result is more than the tenant may store
//   410   the recording's file is missing from the disk or damaged
//   507   the disk or the store of recordings is full
//   503   the store of recordings or the catalog couldn't be used for more than half an hour
//   500   everything else: a worker or ffmpeg that crashed, a failing disk, and every code not listed here

extension WorkerFailure {
  private static let faultsOfTheRequest: Set<String> = [
    "unsupported_media", "unsupported_format", "unsupported_output", "seek_failed",
    "noise_region_too_short", "recording_too_short", "noise_region_outside", "silent_noise", "noise_profile_deleted",
    "profile_unusable",
    "window_outside", "invalid_parameter",
    "too_many_pixels",
    "memory_limit", "cpu_limit", "time_limit", "output_limit",
  ]

  /// The status of the problem shown to clients.
  var status: HTTPStatus {
    if [Self.diskFull, .storeIsFull].map(\.code).contains(code) { return .insufficientStorage }
    if [Self.storeIsUnavailable, .catalogIsUnavailable].map(\.code).contains(code) { return .serviceUnavailable }
    if code == Self.limitReached("stored_bytes", limit: 0).code { return .contentTooLarge }
    if [MissingFiles.code, MissingFiles.damagedCode].contains(code) { return .gone }
    return Self.faultsOfTheRequest.contains(code) ? .unprocessableContent : .internalServerError
  }
}

extension JobError {
  init(_ failure: WorkerFailure) {
    self.init(
      title: "The job failed", status: failure.status.code, detail: failure.detail, code: failure.code)
  }
}

extension ServiceError {
  /// Creates the error for a request that waited for a worker.
  init(_ failure: WorkerFailure) {
    switch failure.status {
    case .insufficientStorage where failure.code == WorkerFailure.diskFull.code: self = .diskFull
    case .unprocessableContent, .contentTooLarge: self = .rejectedByWorker(code: failure.code, detail: failure.detail)
    default: self = .workerUnavailable(reason: "\(failure.code): \(failure.detail)")
    }
  }
}
