import ArgumentParser
import Processing
import Terms
import Workers

struct NoiseProfileCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "noise-profile",
    abstract: "Learns the noise of a recording, for use with others.",
    discussion: """
      Writes a JSON file with the density of the noise by frequency and channel, which is valid at any sample rate. \
      Use it as --noise PROFILE.json of denoise, or send it to the service (POST /v1/noise-profiles). Of several \
      stretches (--noise 1.25-2.75,60-61.5), it has the mean. “-” stands for standard input and output.
      """)

  @Argument(help: "The sound file to read; - for standard input.")
  var input: String

  @Option(
    name: .customShort("o"),
    help: ArgumentHelp("The file to write, which ends in .json; - for standard output.", valueName: "PROFILE.json"))
  var destination: String

  @Option(
    help: ArgumentHelp("Where only noise is heard.", valueName: "START-END[,…]|auto"),
    transform: NoiseArgument.init(parsing:))
  var noise = NoiseArgument.automatic

  @OptionGroup var options: WorkerOptions

  func validate() throws {
    try options.checkOutput(destination)
    if case .profile = noise.source { throw ValidationError("--noise must be a stretch of the recording, or auto.") }
    guard destination == OutputFile.standardName || OutputEnding.text(of: destination) == "json" else {
      throw ValidationError("A noise profile is a JSON file: name it with .json at its end.")
    }
  }

  mutating func run() throws {
    let name = input == OutputFile.standardName ? nil : input.split(separator: "/").last.map(String.init)
    try options.receive(&input, output: destination)
    try ProgressDisplay.run(options.progress) { display in
      let copy = try options.copy(of: input, near: destination)
      let file = try OutputFile(path: destination)
      let work = NoiseProfileWork(noise.source, name: name, output: file.temporaryPath, copy: copy)
      let report = try display.perform(options.request(.noiseProfile(work), on: input))
      try file.commit()
      return report
    }
  }
}
