import Processing
import Storage
import Terms

extension WorkerFailure {
  /// The failure of a job whose source couldn't be fetched, or whose result couldn't be put, at any of many attempts.
  package static let storeIsUnavailable = WorkerFailure(
    code: "media_unavailable",
    detail: "The service couldn't use its store of recordings, although it tried for more than half an hour. Request "
      + "the work again.",
    retry: false)
  /// The failure of a job whose result didn't fit at any of many attempts.
  package static let storeIsFull = WorkerFailure(
    code: "media_full",
    detail: "The service's store of recordings had no room for the result, although it was tried for more than half an "
      + "hour.",
    retry: false)
}

extension StorageError {
  /// The failure of a job that this error of the store of media happens to too often; nil for other errors, and for
  /// those that are about the job's own objects, which will be the same next time.
  var storeFailure: WorkerFailure? {
    switch self {
    case .storeFull: .storeIsFull
    case .storeUnreachable, .objectStore, .otherMedia: .storeIsUnavailable
    default: nil
    }
  }
}
