import ArgumentParser
import Denoise
import FoundationEssentials
import Processing

struct NoiseRegionsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "noise-regions",
    abstract: "Finds where a recording holds nothing but noise.",
    discussion: """
      Prints the regions from which a noise profile is best taken, best first: start and end in seconds, level in dB \
      of full scale, score from 0 to 1. Any of them serves as --noise START-END of denoise. Prints none where nothing \
      is steady enough.
      """)

  @Argument(help: "The sound file to read; - for standard input.")
  var input: String

  @Option(help: "Regions at the most, 1 to 20.")
  var limit = 5

  @Flag(help: "Print one JSON object instead of lines.")
  var json = false

  @OptionGroup var options: WorkerOptions

  private struct Answer: Encodable {
    let regions: [NoiseRegion]
  }

  func validate() throws {
    guard (1...NoiseRegionFinder.regionLimit).contains(limit) else { throw ValidationError("--limit is 1 to 20.") }
  }

  mutating func run() throws {
    // The working copy isn't put into a folder of the user's.
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
    if json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys]
      return Array(try encoder.encode(Answer(regions: regions))) + [UInt8(ascii: "\n")]
    }
    return regions.flatMap { Array("\($0.start)-\($0.end)  \($0.level) dBFS  \($0.score)\n".utf8) }
  }
}
