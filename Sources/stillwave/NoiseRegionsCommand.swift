import ArgumentParser
import Denoise
import FoundationEssentials
import Processing
import Terms

struct NoiseRegionsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "noise-regions",
    abstract: "Finds where a recording contains only noise.",
    discussion: """
      Prints the regions that are best for learning the noise, best first: start and end in seconds, level in dBFS, \
      and a score from 0 to 1. Use any of them as --noise START-END of denoise. Prints nothing if no region is steady \
      enough.
      """)

  @Argument(help: "The sound file to read; - for standard input.")
  var input: String

  @Option(help: "Maximum number of regions, 1 to 20.")
  var limit = 5

  @Flag(help: "Print one JSON object instead of lines.")
  var json = false

  @OptionGroup var options: WorkerOptions

  private struct Answer: Encodable {
    let regions: [NoiseRegion.Timed]
  }

  func validate() throws {
    guard (1...NoiseRegionFinder.regionLimit).contains(limit) else { throw ValidationError("--limit must be 1 to 20.") }
  }

  mutating func run() throws {
    // A working copy isn't kept in any of the user's folders.
    try options.receive(&input, output: OutputFile.standardName)
    try find()
  }

  private func find() throws {
    try ProgressDisplay.run(options.progress) { display in
      let copy = try options.copy(of: input, near: OutputFile.standardName)
      guard case .noiseRegions(let found) = try display.perform(options.request(.noiseRegions(copy), on: input)) else {
        preconditionFailure("a search for regions reports regions")
      }
      let regions = Array(found.prefix(limit))
      if options.progress != .json { StandardStreams.write(try answer(regions)) }
      return .noiseRegions(regions)
    }
  }

  private func answer(_ regions: [NoiseRegion]) throws -> [UInt8] {
    let regions = regions.map(\.timed)
    if json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys]
      return Array(try encoder.encode(Answer(regions: regions))) + [UInt8(ascii: "\n")]
    }
    return regions.flatMap { Array("\($0.start)-\($0.end)  \($0.level) dBFS  \($0.score)\n".utf8) }
  }
}
