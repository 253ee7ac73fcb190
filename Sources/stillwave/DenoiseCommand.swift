import ArgumentParser

struct DenoiseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "denoise",
    abstract: "Removes the noise from a recording.",
    discussion: """
      The noise is learned from a stretch that contains only noise (--noise 1.25-2.75, in seconds). Without --noise, \
      the best such stretch is found; if there is none, the noise is estimated from the quietest parts of each \
      frequency over the whole recording. If the noise differs from place to place, name several stretches \
      (--noise 1.25-2.75,60-61.5): each applies around its time. A profile that noise-profile wrote (--noise \
      PROFILE.json) applies to any recording. “-” stands for standard input and output.

      Several files, or the files in a folder, are cleaned into a folder (-o OUT/), each under its own name. Those whose \
      result is there already, and not older than its source, are skipped, so the same command goes on where it was \
      interrupted. The exit status is 0 only if none failed.
      """)

  @Argument(help: "The sound file to clean; - for standard input. Or several files or folders, with -o OUT/.")
  var inputs: [String] = []

  @Flag(
    name: [.customShort("0"), .customLong("null")],
    help: "Also clean the files that standard input names, each ended by a zero byte, as find -print0 writes them.")
  var readsNames = false

  @Option(
    name: .customShort("o"),
    help: ArgumentHelp("The sound file to write; - for standard output. Or a folder.", valueName: "OUT"))
  var destination: String

  @OptionGroup var denoise: DenoiseOptions

  func validate() throws {
    try denoise.options.checkOutput(destination)
    guard !inputs.isEmpty || readsNames else { throw ValidationError("Name the file to clean, or files and folders.") }
    try denoise.several.check(inputs, destination, readsNames: readsNames)
  }

  mutating func run() throws {
    if FolderWork.isFolder(destination) {
      return try ProgressDisplay.run(denoise.options.progress) { _ in
        let names = readsNames ? FolderWork.namesFromInput() : []
        try denoise.work(on: inputs + names, folder: destination).run()
        return nil
      }
    }
    var input = inputs[0]
    try denoise.options.receive(&input, output: destination)
    try ProgressDisplay.run(denoise.options.progress) {
      try denoise.clean(input, to: destination, denoise.threads, &$0)
    }
  }
}
