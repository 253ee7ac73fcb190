import ArgumentParser
import Glibc
import Processing

/// Runs as the service's child: answers requests about the samples of one recording on standard input, which is one of
/// a pair of sockets (see `SampleReader`). It ends when the service closes the other one.
struct ReaderCommand: ParsableCommand {
  static let name = "reader"

  static let configuration = CommandConfiguration(
    commandName: name, abstract: "Reads one recording for the service.", shouldDisplay: false)

  @Argument(help: "The recording's file, for ps to show.")
  var label: [String] = []

  func run() throws { ReaderService.serve(STDIN_FILENO) }
}
