import ArgumentParser
import Processing

struct ProbeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "probe", abstract: "Tells as JSON what a file holds.", shouldDisplay: false)

  @Argument(help: "The sound file.")
  var input: String

  @OptionGroup var options: WorkerOptions

  func run() throws {
    var options = options
    options.progress = .json
    try options.run(on: input) { _ in
      var report = WorkerReport()
      report.probe = try ProbeRecording(source: input, limits: options.limits).run()
      return report
    }
  }
}
