import Glibc
import Processing

/// Why a command can't do its work, found out before it begins.
struct CommandFailure: Error {
  let failure: WorkerFailure

  /// `detail`: a sentence that says what was wrong and what would be right.
  init(code: String, detail: String) { failure = WorkerFailure(code: code, detail: detail, retry: false) }

  /// A system call on `path` failed.
  init(system number: Int32, on path: String) {
    self.init(code: "io_error", detail: "\(path): \(unsafe String(cString: strerror(number))).")
  }
}
