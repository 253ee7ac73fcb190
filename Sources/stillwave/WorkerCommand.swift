import ArgumentParser
import Glibc
import Processing
import Workers

/// Runs as the service's child: performs the `WorkerRequest` at the start of standard input and reports on standard
/// output. It ends when standard input closes, because the service is gone then.
struct WorkerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "worker", abstract: "Does one piece of work for the service.", shouldDisplay: false)

  @Argument(help: "The kind of work and its file or folder, for ps to show.")
  var label: [String] = []

  func run() throws { try Self.work() }

  /// Performs the request at the start of standard input, and shows the outcome.
  static func work() throws {
    try ProgressDisplay.run(.json) { display in
      try display.perform(try WorkerRequest(from: STDIN_FILENO))
    }
  }
}
