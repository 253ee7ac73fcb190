import Glibc
import HTTP
import Storage
import Waveform

/// Describes an error for the log, with everything that is known about it.
func logText(_ error: any Error) -> String {
  switch error {
  case StorageError.io(let operation, let path, let number), WaveformError.io(let operation, let path, let number),
    FileContentError.io(let operation, let path, let number):
    "\(path): \(operation) failed: \(systemWords(number))"
  case StorageError.cancelled: "canceled; nothing was changed"
  case StorageError.database(let code, let message): "SQLite error \(code): \(message)"
  case StorageError.server(let state, let message): "SQLSTATE \(state): \(message)"
  case StorageError.unreachable(let detail): "the database server can't be reached: \(detail)"
  case StorageError.storeUnreachable(let detail): "the store of recordings can't be reached: \(detail)"
  case StorageError.objectStore(let detail): "the store of recordings refuses a request: \(detail)"
  case StorageError.diskFull, ServiceError.diskFull: "the disk is full"
  case StorageError.storeFull: "the bucket or its quota is full"
  case ServiceError.storage(let error): logText(error)
  case ServiceError.workerUnavailable(let reason): reason
  default: "\(error)"
  }
}

/// The system's description of an errno.
func systemWords(_ number: Int32) -> String { unsafe String(cString: strerror(number)) }
