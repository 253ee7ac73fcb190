import Glibc

/// Standard input, output and errors, which whoever starts the program may have closed or may stop reading.
enum StandardStreams {
  /// Opens /dev/null in the place of those that are closed: the next file to be opened would get their number, and what
  /// is meant for the screen would be written into it. Input and output are opened the wrong way around, so that using
  /// them still fails; errors that nobody wants are dropped.
  static func fillClosed() {
    for (descriptor, mode) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_WRONLY)] {
      // The lowest free number is this one: those below are open.
      if fcntl(descriptor, F_GETFD) < 0 { unsafe _ = open("/dev/null", mode) }
    }
  }

  /// Makes a reader that goes away an error of the next write, so that a command can clean up before it ends.
  static func ignoreBrokenPipes() { _ = signal(SIGPIPE, SIG_IGN) }

  /// Writes to standard output. Where nobody reads it any more, ends the process as the signal would have, and where it
  /// fails otherwise, with status 1; in both cases nothing unfinished is left.
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
