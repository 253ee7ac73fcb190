import ArgumentParser
import Media
import Processing
import Workers

/// Fences itself in as workers do and becomes another program. ffmpeg is started this way.
struct RunFencedCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run-fenced", abstract: "Becomes another program, in a fence.", shouldDisplay: false)

  @Option(help: "Bytes of memory, seconds of processor time and bytes of a file, separated by commas.")
  var fence: WorkerFence

  @Flag(help: "Descriptor 3 is a file that the program reads.")
  var reads = false

  @Flag(help: "Descriptor 4 is a file that the program writes.")
  var writes = false

  @Flag(help: "Descriptor 4 is a file that the program writes, but doesn't open.")
  var appends = false

  @Flag(help: "If root, become a user who owns nothing first.")
  var dropRoot = false

  @Option(help: "The process that starts the program; the program ends with it.")
  var parent: Int32?

  @Argument(parsing: .postTerminator, help: "The program's path, and its arguments.")
  var words: [String]

  func run() throws {
    let program = WorkerFence.Program(
      input: reads ? Fencing.inputDescriptor : nil, output: writes || appends ? Fencing.outputDescriptor : nil,
      outputStaysOpen: appends, dropsRoot: dropRoot, parent: parent)
    let failure = fence.become(words, program)
    throw ValidationError("\(words.first ?? "the program") could not be started (errno \(failure)).")
  }
}
