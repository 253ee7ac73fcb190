import ArgumentParser
import CLinux
import Glibc
import Jobs
import Processing

/// Runs as the service's child: becomes a worker, as a copy of itself, for each order on standard input (see
/// `WorkerTemplate`). It ends when standard input closes, because the service is gone then.
struct WorkerTemplateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "worker-template", abstract: "Starts the service's workers.", shouldDisplay: false)

  @Argument(help: "Room for the words that copies show in process listings.")
  var room: [String] = []

  func run() throws {
    // Takes a few milliseconds, which every copy saves. If it fails, the copies only take longer.
    try? WorkerRequest.rehearse()
    answer(WorkerTemplate.isReady)
    var label = [UInt8](repeating: 0, count: 4096)
    while true {
      var (input, output): (Int32, Int32) = (-1, -1)
      let count = unsafe label.withUnsafeMutableBytes { label in
        unsafe stillwave_receive_order(STDIN_FILENO, label.baseAddress, label.count, &input, &output)
      }
      guard count > 0 else { return }
      switch stillwave_fork_sibling() {
      case 0: return try become(label[..<count], input, output)
      case -1: answer(0)
      default: break
      }
      close(input)
      close(output)
    }
  }

  /// Continues as a worker.
  private func become(_ label: ArraySlice<UInt8>, _ input: Int32, _ output: Int32) throws {
    unsafe label.withUnsafeBytes { bytes in
      unsafe stillwave_show_arguments(bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    }
    // Before the answer, after which the service may kill the session.
    setsid()
    answer(getpid())
    dup2(input, STDIN_FILENO)
    dup2(output, STDOUT_FILENO)
    close(input)
    close(output)
    try WorkerCommand().run()
  }

  private func answer(_ number: Int32) {
    var number = number
    unsafe _ = send(STDIN_FILENO, &number, MemoryLayout<Int32>.size, Int32(MSG_NOSIGNAL))
  }
}
