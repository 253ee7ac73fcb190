import Glibc
import Terms

/// Standard input as a file: many formats can't be read without seeking.
enum InputFile {
  /// Copies standard input to a private temporary file and returns its path. The file is removed when the process ends.
  static func receive() throws(CommandFailure) -> String {
    guard isatty(STDIN_FILENO) == 0 else {
      throw CommandFailure(
        code: "empty_input", detail: "Standard input is a terminal. Pipe or redirect a sound file into it.")
    }
    let path = TemporaryFiles.shared.newPath(near: OutputFile.standardName, "input")
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw CommandFailure(system: errno, on: path) }
    defer { close(descriptor) }
    var isEmpty = true
    while let piece = try next() {
      if let number = writeAll(piece, to: descriptor) { throw CommandFailure(system: number, on: path) }
      isEmpty = false
    }
    guard !isEmpty else { throw CommandFailure(code: "empty_input", detail: "Standard input is empty.") }
    return path
  }

  /// The next bytes; nil at the end.
  private static func next() throws(CommandFailure) -> [UInt8]? {
    while true {
      var failure: Int32?
      let piece = unsafe [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, count in
        let got = unsafe read(STDIN_FILENO, buffer.baseAddress, buffer.count)
        failure = got < 0 ? errno : nil
        count = max(0, got)
      }
      switch failure {
      case nil: return piece.isEmpty ? nil : piece
      case EINTR: continue
      case EAGAIN:
        var waiting = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        unsafe _ = poll(&waiting, 1, -1)
      case let number?: throw CommandFailure(system: number, on: "Standard input")
      }
    }
  }
}
