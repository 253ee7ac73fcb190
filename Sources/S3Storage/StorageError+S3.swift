import Glibc
import Storage

extension StorageError {
  /// Converts an error of a store.
  init(_ error: S3Error) {
    switch error {
    case .quotaExceeded: self = .storeFull
    case .otherBucket(let name): self = .otherMedia(path: name)
    case .file(let operation, let path, let code): self.init(errno: code, operation, path)
    case _ where error.isTransient: self = .storeUnreachable(detail: "\(error)")
    default: self = .objectStore(detail: "\(error)")
    }
  }

  /// Calls `body` and converts its error.
  static func translating<Value>(_ body: () throws(S3Error) -> Value) throws(StorageError) -> Value {
    do throws(S3Error) { return try body() } catch { throw StorageError(error) }
  }
}
