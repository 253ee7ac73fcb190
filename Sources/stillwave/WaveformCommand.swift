import ArgumentParser
import Processing
import Terms
import Waveform
import Workers

struct WaveformCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "waveform",
    abstract: "Writes the waveforms of recordings.",
    discussion: """
      The ending of OUT decides what is written: .dat (BBC audiowaveform's binary format), .json (its JSON), .png or \
      .svg (a picture with peaks in a light shade and loudness in a dark one). “-” stands for standard input and \
      output; for standard output, give --format.

      The waveforms of several files, or of the files in a folder, are written into a folder (-o OUT/), each under the \
      name of its source with another ending. Those that are there already, and not older than their source, are \
      skipped. The exit status is 0 only if none failed.
      """)

  @Argument(help: "The sound file to read; - for standard input. Or several files or folders, with -o OUT/.")
  var inputs: [String]

  @Option(
    name: .customShort("o"),
    help: ArgumentHelp("The file to write; - for standard output. Or a folder.", valueName: "OUT"))
  var destination: String?

  @Option(help: "What to write: dat, json, png or svg (default: by the ending of OUT; dat in a folder).")
  var format: WaveformFile?

  @Option(help: "Frames per pixel, 1 to 16777216 (default: 256; pictures go by --width).")
  var scale: Int?

  @Option(help: "Bits per value, 8 or 16.")
  var bits = 16

  @Option(
    help: ArgumentHelp("The mean of all channels, all of them, or one by its number from 0.", valueName: "mix|split|N"))
  var channels: ChannelSelection = .mix

  @Option(help: "Start of the window, in seconds.")
  var start: Double?

  @Option(help: "End of the window, in seconds.")
  var end: Double?

  @Option(help: ArgumentHelp("Cores to use for formats that take long to decode (default: all).", valueName: "N"))
  var threads: Int?

  @OptionGroup(title: "Pictures") var pictures: PictureOptions

  @OptionGroup var several: FolderOptions

  @OptionGroup var options: WorkerOptions

  func validate() throws {
    guard threads ?? 1 >= 1 else { throw ValidationError("--threads must be at least 1.") }
    guard SampleBits(rawValue: bits) != nil else { throw ValidationError("--bits must be 8 or 16.") }
    guard let destination else {
      throw ValidationError("Name the file to write: -o OUT.dat, OUT.json, OUT.png or OUT.svg.")
    }
    guard let kind = kind(of: destination) else {
      throw ValidationError(
        destination == OutputFile.standardName
          ? "Say with --format what to write to standard output: dat, json, png or svg."
          : "OUT must end in .dat, .json, .png or .svg, or give --format.")
    }
    try options.checkOutput(destination)
    try several.check(inputs, destination)
    guard !inputs.contains(OutputFile.standardName) || pictures.overlay != OutputFile.standardName else {
      throw ValidationError("Only one of IN and --overlay can be standard input.")
    }
    guard kind.isPicture || !pictures.isUsed else {
      throw ValidationError("The options for pictures need an OUT that ends in .png or .svg.")
    }
    guard scale == nil || pictures.width == nil else {
      throw ValidationError("Only one of --scale and --width can be given.")
    }
  }

  private func kind(of destination: String) -> WaveformFile? {
    format ?? (FolderWork.isFolder(destination) ? .dat : WaveformFile(path: destination))
  }

  mutating func run() throws {
    guard let destination, let kind = kind(of: destination) else { return }
    if var overlay = pictures.overlay {
      try options.receive(&overlay)
      pictures.overlay = overlay
    }
    if FolderWork.isFolder(destination) {
      let work = FolderWork(
        inputs: inputs, folder: destination, options: several, progress: options.progress, done: "drawn",
        ending: kind.rawValue, threads: threads, make: write)
      return try ProgressDisplay.run(options.progress) { _ in
        try work.run()
        return nil
      }
    }
    var input = inputs[0]
    try options.receive(&input, output: destination)
    try ProgressDisplay.run(options.progress) { try write(input, destination, threads, &$0) }
  }

  private func write(
    _ input: String, _ destination: String, _ threads: Int?, _ display: inout ProgressDisplay
  ) throws -> WorkerReport {
    guard let kind = kind(of: destination), let bits = SampleBits(rawValue: bits) else {
      preconditionFailure("these are validated")
    }
    let file = try OutputFile(path: destination)
    let (recording, report) = try analyze(input, threads: threads, near: destination, &display)
    // With many files, they would fill the disk.
    defer { for path in [recording.source, recording.pyramid] { TemporaryFiles.shared.remove(path) } }
    let width = kind.isPicture ? pictures.width ?? PictureStyle.defaultWidth : nil
    let resolution: WaveformResolution = scale.map { .scale($0) } ?? width.map { .width($0) } ?? .scale(256)
    let query = WaveformQuery(
      start: start, end: end, resolution: resolution, channels: channels, measures: .peak, bits: bits)
    var silent = ProgressDisplay(.none)
    let overlay = try pictures.overlay.map { try analyze($0, threads: 1, near: destination, &silent).recording }
    defer { for path in overlay.map({ [$0.source, $0.pyramid] }) ?? [] { TemporaryFiles.shared.remove(path) } }
    try ExportWaveform(
      source: recording.source, pyramid: recording.pyramid, query: query, style: pictures.style, overlay: overlay
    ).write(kind, to: file.temporaryPath)
    try file.commit()
    return report
  }

  /// Writes a recording's pyramid, and its working copy if it needs one, under temporary names near `place` that are
  /// removed when the process ends.
  private func analyze(
    _ path: String, threads: Int?, near place: String, _ display: inout ProgressDisplay
  ) throws -> (recording: AnalyzedRecording, report: WorkerReport) {
    let copy = try options.copy(of: path, near: place)
    let pyramid = TemporaryFiles.shared.newPath(near: place, "pyramid")
    let work = WaveformWork(pyramid: pyramid, copy: copy)
    let report = try display.perform(options.request(.waveform(work), on: path, threads: threads))
    return (AnalyzedRecording(source: copy?.path ?? path, pyramid: pyramid), report)
  }
}

extension WaveformFile: ExpressibleByArgument {}

extension ChannelSelection: ExpressibleByArgument {
  /// `mix`, `split` or a channel's number from 0.
  package init?(argument: String) {
    switch argument {
    case "mix": self = .mix
    case "split": self = .split
    default:
      guard let channel = Int(argument), channel >= 0 else { return nil }
      self = .channel(channel)
    }
  }
}
