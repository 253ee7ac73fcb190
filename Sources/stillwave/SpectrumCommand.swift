import ArgumentParser
import Processing

struct SpectrumCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "spectrum", abstract: "Tells as JSON the mean power spectrum of a stretch.", shouldDisplay: false)

  @Argument(help: "The sound file.")
  var input: String

  @Option(help: ArgumentHelp("The stretch, in seconds.", valueName: "START-END"))
  var window: WindowArgument

  @OptionGroup var options: WorkerOptions

  func run() throws {
    var options = options
    options.progress = .json
    try options.run(on: input) { _ in
      var report = WorkerReport()
      report.spectrum = try MeasureSpectrum(source: input, window: window.window, limits: options.limits).run()
      return report
    }
  }
}
