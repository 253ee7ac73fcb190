import Glibc

// What is at fault, by exit status:
//
//   exit status 0, or ffmpeg's status for an unreadable file          the file
//   SIGPIPE                                                          nothing: its output was no longer needed
//   SIGXCPU, SIGXFSZ                                                 the file: it exceeded a limit of the fence
//   any other signal but SIGKILL                                     the program, or the file: it crashed
//   status 244 or 12                                                 the program, or the file: out of memory
//   SIGKILL                                                          the system: usually it is out of memory
//   status 64, 126 or 127                                            the system: the program never ran
//
// ffmpeg exits with the low byte of its error, and AVERROR(ENOMEM) is −12. `run-fenced` exits with 64 (EX_USAGE of
// sysexits.h) if it can't become the program; shells and the dynamic loader exit with 126 and 127.

/// Why a program failed for reasons unrelated to its input.
package enum ProgramFailure: Sendable, Equatable {
  /// It crashed with this signal.
  case crashed(signal: Int32)
  /// It needed more memory than its fence allows.
  case outOfMemory
  /// It was killed from outside.
  case killed
  /// It did not run at all.
  case notStarted(status: Int32)

  /// Fails if a program with this waitpid(2) status did its work or was ended because of its input.
  package init?(waitStatus: Int32) {
    let (signal, status) = (waitStatus & 0x7F, waitStatus >> 8 & 0xFF)
    switch (signal, status) {
    case (SIGKILL, _): self = .killed
    case (0, 244), (0, ENOMEM): self = .outOfMemory
    case (0, 64), (0, 126), (0, 127): self = .notStarted(status: status)
    case (0, _), (SIGPIPE, _), (SIGXCPU, _), (SIGXFSZ, _): return nil
    default: self = .crashed(signal: signal)
    }
  }
}
