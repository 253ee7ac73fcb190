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
    try options.run(on: input, opening: { try options.look(at: input) }) { _, look in
      let probe = ProbeRecording(source: input, limits: options.limits)
      var report = WorkerReport()
      report.probe = if let look { try probe.run(look) } else { try probe.run() }
      return report
    }
  }
}
