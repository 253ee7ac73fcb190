import Glibc
import Terms

/// Standard input, output and error, which may be closed at the start or lose their reader later.
enum StandardStreams {
  /// Opens /dev/null for each stream that is closed. Otherwise the next file to be opened would get its descriptor, and
  /// messages for the screen would be written into that file. Input is opened for writing and output for reading, so
  /// that using them still fails; error messages are dropped.
  static func fillClosed() {
    for (descriptor, mode) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_WRONLY)] {
      // `open` returns the lowest free descriptor, which is this one: those below are open.
      if fcntl(descriptor, F_GETFD) < 0 { unsafe _ = open("/dev/null", mode) }
    }
  }

  /// Makes writing to a pipe without a reader fail instead of ending the process, so that a command can clean up.
  static func ignoreBrokenPipes() { _ = signal(SIGPIPE, SIG_IGN) }

  /// Writes to standard output. If its reader is gone, ends the process as SIGPIPE would have; if writing fails for
  /// another reason, ends it with status 1. Either way it removes unfinished files first.
  static func write(_ bytes: [UInt8]) {
    guard let number = writeAll(bytes, to: STDOUT_FILENO) else { return }
    TemporaryFiles.shared.removeAll()
    if number == EPIPE {
      _ = signal(SIGPIPE, SIG_DFL)
      raise(SIGPIPE)
      _exit(128 + SIGPIPE)
    }
    complain("Standard output: \(unsafe String(cString: strerror(number))).")
    _exit(1)
  }

  /// Writes a line to standard error.
  static func complain(_ text: String) { writeAll(Array("stillwave: \(text)\n".utf8), to: STDERR_FILENO) }
}
