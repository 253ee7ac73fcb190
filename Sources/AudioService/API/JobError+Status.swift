import HTTP
import Jobs
import Terms
import Workers

extension WorkerFailure {
  /// The status of the problem shown to clients; 500 for a code of a later version.
  var status: HTTPStatus { ProblemKind.all[code]?.jobStatus ?? .internalServerError }
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
