import HTTP
import Processing

// The one table from what ends a job to the class of its error: 4xx if the recording or the request is at fault and
// another try would end the same way, 5xx if the service is.
//
//   422   the file, or what was asked of it; also work that needs more memory, time or room than any such work may use,
//         as the limits grow with the recording
//   410   the recording's file is gone from the disk, or is damaged
//   507   the disk has no room
//   500   all else: a worker or ffmpeg that died, a disk that fails, and every code that is missing here

extension WorkerFailure {
  private static let faultsOfTheRequest: Set<String> = [
    "unsupported_media", "unsupported_format", "unsupported_output", "seek_failed",
    "noise_region_too_short", "noise_region_outside", "window_outside", "invalid_parameter", "too_many_pixels",
    "memory_limit", "cpu_limit", "time_limit", "output_limit",
  ]

  /// The status of the problem that a client is shown.
  var status: HTTPStatus {
    if code == Self.diskFull.code { return .insufficientStorage }
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
  /// What to tell a request that waited for a worker.
  init(_ failure: WorkerFailure) {
    switch failure.status {
    case .insufficientStorage: self = .diskFull
    case .unprocessableContent: self = .rejectedByWorker(code: failure.code, detail: failure.detail)
    default: self = .workerUnavailable(reason: "\(failure.code): \(failure.detail)")
    }
  }
}
