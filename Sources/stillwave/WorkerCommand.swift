import ArgumentParser
import Glibc
import Processing

/// What the service starts: performs the `WorkerRequest` that standard input begins with, and reports on standard
/// output. It ends when standard input closes, for then the service is gone.
struct WorkerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "worker", abstract: "Does one piece of work for the service.", shouldDisplay: false)

  @Argument(help: "What ps shows of the work.")
  var label: String?

  func run() throws {
    try ProgressDisplay.run(.json) { display in
      try display.perform(try WorkerRequest(from: STDIN_FILENO))
    }
  }
}
