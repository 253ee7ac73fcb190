import ArgumentParser
import Processing

/// Fences itself in as workers do and becomes another program: how ffmpeg is started.
struct RunFencedCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run-fenced", abstract: "Becomes another program, in a fence.", shouldDisplay: false)

  @Option(help: "Bytes of memory, seconds of processor time and bytes of a file, by commas.")
  var fence: WorkerFence

  @Argument(parsing: .postTerminator, help: "The program's path, and its arguments.")
  var words: [String]

  func run() throws {
    let failure = fence.become(words)
    throw ValidationError("\(words.first ?? "the program") could not be started (errno \(failure)).")
  }
}
