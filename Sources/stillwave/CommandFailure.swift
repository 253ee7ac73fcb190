import Glibc
import Processing
import Terms
import Workers

/// Why a command can't do its work, found out before it starts.
struct CommandFailure: Error {
  let failure: WorkerFailure

  /// `detail` is a sentence that says what is wrong and what would be right.
  init(code: String, detail: String) { failure = WorkerFailure(code: code, detail: detail, retry: false) }

  /// Creates a failure of a system call on `path`.
  init(system number: Int32, on path: String) {
    self.init(code: "io_error", detail: "\(path): \(unsafe String(cString: strerror(number))).")
  }
}
