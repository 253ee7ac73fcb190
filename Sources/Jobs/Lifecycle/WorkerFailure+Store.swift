import Storage
import Terms
import Workers

extension WorkerFailure {
  /// The failure of a job whose source couldn't be fetched, or whose result couldn't be put, at any of many attempts.
  package static let storeIsUnavailable = WorkerFailure(
    code: "media_unavailable",
    detail: "The service couldn't use its store of recordings, although it tried for more than half an hour. Request "
      + "the work again.",
    retry: false)
  /// The failure of a job whose end couldn't be written, at any of many attempts.
  package static let catalogIsUnavailable = WorkerFailure(
    code: "catalog_unwritable",
    detail: "The service couldn't write to its catalog, although it tried for more than half an hour. Request the work "
      + "again.",
    retry: false)
  /// The failure of a job whose result didn't fit at any of many attempts.
  package static let storeIsFull = WorkerFailure(
    code: "media_full",
    detail: "The service's store of recordings had no room for the result, although it was tried for more than half an "
      + "hour.",
    retry: false)
}

extension WorkerFailure {
  /// The failure of a job whose result would exceed a limit on what its tenant may store.
  package static func limitReached(_ name: String, limit: Int64) -> WorkerFailure {
    WorkerFailure(
      code: "limit_\(name)",
      detail:
        "With the result, the tenant would have more than the \(limit) bytes that it may store. Delete something, "
        + "and request the work again.",
      retry: false)
  }

  /// The failure of a job that needs a disk which can't be written or read.
  static let diskIsUnusable = WorkerFailure(
    code: "io_error", detail: "The service can't use its disk now; the file is not at fault.", retry: false)

  /// Whether the disk of the attempt's node is at fault, so that another node may succeed.
  var isOfDisk: Bool { [Self.diskFull, .diskIsUnusable].map(\.code).contains(code) }
}

extension StorageError {
  /// The failure of a job that this error of the disk of its node happens to too often; nil for other errors.
  var diskFailure: WorkerFailure? {
    switch self {
    case .diskFull: .diskFull
    case .io, .claimLost: .diskIsUnusable
    default: nil
    }
  }

  /// The failure of a job that this error of the store of media, or of the catalog, happens to too often; nil for other
  /// errors, and for those that are about the job's own objects, which will be the same next time.
  var storeFailure: WorkerFailure? {
    switch self {
    case .storeFull: .storeIsFull
    case .storeUnreachable, .objectStore, .otherMedia: .storeIsUnavailable
    case .busy, .unreachable, .outcomeUnknown: .catalogIsUnavailable
    case .database(let code, _) where Self.isLocked(code): .catalogIsUnavailable
    default: nil
    }
  }

  /// Whether an extended result code of SQLite says that another process has locked the file (SQLITE_BUSY).
  private static func isLocked(_ code: Int32) -> Bool { code & 0xFF == 5 }
}
