import Glibc

// Who is at fault, by exit status:
//
//   exit status 0, or one that ffmpeg gives a file it can't read     the file
//   SIGPIPE                                                          nobody: its output was not wanted any more
//   SIGXCPU, SIGXFSZ                                                 the file: it passed a limit of its fence
//   any other signal but SIGKILL                                     the program, or the file: it crashed
//   status 244 or 12                                                 the program, or the file: it had no memory
//   SIGKILL                                                          the system: most often no memory is left
//   status 64, 126 or 127                                            the system: the program never ran
//
// ffmpeg exits with the low byte of its error, and AVERROR(ENOMEM) is −12; 64 is what `run-fenced` exits with if it
// can't become the program (EX_USAGE of sysexits.h), 126 and 127 are what shells and the dynamic loader exit with.

/// Why a program that was started failed, for reasons other than what it was asked.
package enum ProgramFailure: Sendable, Equatable {
  /// It was ended by a signal of its own making.
  case crashed(signal: Int32)
  /// It had no memory left of what its fence allows.
  case outOfMemory
  /// It was killed from outside.
  case killed
  /// It did not run at all.
  case notStarted(status: Int32)

  /// nil if a program with this status, as waitpid(2) tells it, has done its work or was ended by its input.
  init?(waitStatus: Int32) {
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
