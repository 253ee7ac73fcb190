import Glibc

/// Standard input, output, and error. The caller may have closed them or may stop reading them.
enum StandardStreams {
  /// Opens /dev/null for those that are closed: otherwise the next opened file would get their number, and output would
  /// be written into it. Input and output are opened in the wrong direction, so that using them still fails; errors are
  /// discarded.
  static func fillClosed() {
    for (descriptor, mode) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_WRONLY)] {
      // This is the lowest free number, because the lower ones are open.
      if fcntl(descriptor, F_GETFD) < 0 { unsafe _ = open("/dev/null", mode) }
    }
  }

  /// Makes writing to a closed pipe an error, so that a command can clean up before it ends.
  static func ignoreBrokenPipes() { _ = signal(SIGPIPE, SIG_IGN) }

  /// Writes to standard output. If nothing reads it any more, ends the process like the signal would; if it fails
  /// otherwise, exits with status 1. In both cases, unfinished files are removed first.
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
