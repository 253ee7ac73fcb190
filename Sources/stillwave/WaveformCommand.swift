import ArgumentParser
import AudioIO
import Processing
import Waveform

struct WaveformCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "waveform",
    abstract: "Writes the waveform of a recording.",
    discussion: """
      The ending of OUT says what is written: .dat (BBC audiowaveform's binary form) or .json (its JSON).
      """)

  @Argument(help: "The sound file to read.")
  var input: String

  @Option(name: .customShort("o"), help: ArgumentHelp("The file to write.", valueName: "OUT"))
  var destination: String?

  @Option(help: .hidden)
  var pyramid: String?

  @Option(help: "Frames per pixel, 1 to 16777216.")
  var scale = 256

  @Option(help: "8 or 16 bits a value.")
  var bits = 16

  @Option(help: ArgumentHelp("The mean of all channels, each, or one by number from 0.", valueName: "mix|split|N"))
  var channels: ChannelSelection = .mix

  @Option(help: "Where to begin, in seconds.")
  var start: Double?

  @Option(help: "Where to end, in seconds.")
  var end: Double?

  @OptionGroup var options: WorkerOptions

  func validate() throws {
    guard SampleBits(rawValue: bits) != nil else { throw ValidationError("--bits is 8 or 16.") }
    guard let destination else {
      guard pyramid != nil else { throw ValidationError("Name the file to write: -o OUT.dat or -o OUT.json.") }
      return
    }
    guard WaveformFile(path: destination) != nil else { throw ValidationError("OUT ends in .dat or .json.") }
  }

  func run() throws {
    try options.run { display in
      var report = WorkerReport()
      if let pyramid {
        // The service reads this one while it grows, so it is written under its own name.
        report.analysis = try analyze(into: pyramid, &display)
        try export(from: pyramid)
      } else if let destination {
        let working = try OutputFile(path: destination + ".pyramid")
        report.analysis = try analyze(into: working.temporaryPath, &display)
        try export(from: working.temporaryPath)
      }
      return report
    }
  }

  private func analyze(into path: String, _ display: inout ProgressDisplay) throws -> Analysis {
    try AnalyzeRecording(source: input, pyramid: path, limits: options.limits).run { display.show($0) }
  }

  private func export(from pyramid: String) throws {
    guard let destination, let kind = WaveformFile(path: destination), let bits = SampleBits(rawValue: bits) else {
      return
    }
    let query = WaveformQuery(
      start: start, end: end, resolution: .scale(scale), channels: channels, measures: .peak, bits: bits)
    let file = try OutputFile(path: destination)
    try ExportWaveform(source: input, pyramid: pyramid, query: query).write(kind, to: file.temporaryPath)
    try file.commit()
  }
}

extension ChannelSelection: ExpressibleByArgument {
  /// `mix`, `split` or a channel's number from 0.
  public init?(argument: String) {
    switch argument {
    case "mix": self = .mix
    case "split": self = .split
    default:
      guard let channel = Int(argument), channel >= 0 else { return nil }
      self = .channel(channel)
    }
  }
}
