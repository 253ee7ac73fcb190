import ArgumentParser
import AudioIO
import Glibc
import Media
import Processing
import Waveform

struct WaveformCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "waveform",
    abstract: "Writes the waveform of a recording.",
    discussion: """
      The ending of OUT says what is written: .dat (BBC audiowaveform's binary form), .json (its JSON), .png or .svg \
      (a picture: peaks in a light shade, loudness in a dark one). “-” stands for standard input and output; for the \
      latter, --format says it.
      """)

  @Argument(help: "The sound file to read; - for standard input.")
  var input: String

  @Option(name: .customShort("o"), help: ArgumentHelp("The file to write; - for standard output.", valueName: "OUT"))
  var destination: String?

  @Option(help: "What to write: dat, json, png or svg; by default what OUT's ending says.")
  var format: WaveformFile?

  @Option(help: .hidden)
  var pyramid: String?

  @Option(help: .hidden)
  var soundMap: String?

  @Flag(help: .hidden)
  var noiseRegions = false

  @Option(help: "Frames per pixel, 1 to 16777216 (default: 256; pictures go by --width).")
  var scale: Int?

  @Option(help: "8 or 16 bits a value.")
  var bits = 16

  @Option(help: ArgumentHelp("The mean of all channels, each, or one by number from 0.", valueName: "mix|split|N"))
  var channels: ChannelSelection = .mix

  @Option(help: "Where to begin, in seconds.")
  var start: Double?

  @Option(help: "Where to end, in seconds.")
  var end: Double?

  @Option(help: ArgumentHelp("Cores to use for what takes long to decode; by default all.", valueName: "N"))
  var threads: Int?

  @OptionGroup(title: "Pictures") var pictures: PictureOptions

  @OptionGroup var options: WorkerOptions

  func validate() throws {
    guard threads ?? 1 >= 1 else { throw ValidationError("--threads is 1 or more.") }
    guard SampleBits(rawValue: bits) != nil else { throw ValidationError("--bits is 8 or 16.") }
    guard let destination else {
      guard pyramid != nil else {
        throw ValidationError("Name the file to write: -o OUT.dat, OUT.json, OUT.png or OUT.svg.")
      }
      return
    }
    guard let kind = kind(of: destination) else {
      throw ValidationError(
        destination == OutputFile.standardName
          ? "Say with --format what to write to standard output: dat, json, png or svg."
          : "OUT ends in .dat, .json, .png or .svg, or --format says which it is.")
    }
    try options.checkOutput(destination)
    guard input != OutputFile.standardName || pictures.overlay != OutputFile.standardName else {
      throw ValidationError("Only one of IN and --overlay can be standard input.")
    }
    guard kind.isPicture || !pictures.isUsed else {
      throw ValidationError("The options for pictures go with an OUT that ends in .png or .svg.")
    }
    guard scale == nil || pictures.width == nil else {
      throw ValidationError("Only one of --scale and --width can be given.")
    }
  }

  private func kind(of destination: String) -> WaveformFile? { format ?? WaveformFile(path: destination) }

  mutating func run() throws {
    try options.receive(&input, output: destination)
    if var overlay = pictures.overlay {
      try options.receive(&overlay)
      pictures.overlay = overlay
    }
    try write()
  }

  private func write() throws {
    try options.run(on: input, opening: begin) { display, begun in
      let decoding = begun.decoding
      var report = WorkerReport()
      if let pyramid {
        // The service reads this one while it grows, so it is written under its own name.
        report.analysis = try analyze(decoding, into: pyramid, sound: options.working, &display)
        try export(from: pyramid, sound: options.working ?? input, under: begun.overlay)
      } else if let destination {
        let working = OutputFile(scratch: "pyramid", near: destination)
        let sound = OutputFile(scratch: "working", near: destination)
        report.analysis = try analyze(decoding, into: working.temporaryPath, sound: sound.temporaryPath, &display)
        try export(
          from: working.temporaryPath, sound: decoding == nil ? input : sound.temporaryPath, under: begun.overlay)
      }
      return report
    }
  }

  /// What ffmpeg reads of the two recordings.
  private struct Begun {
    var decoding: (any WorkingSource)?
    var overlay: (any WorkingSource)?
  }

  private func begin() throws(ProcessingError) -> Begun {
    var begun = Begun(decoding: try options.decode(input))
    if let overlay = pictures.overlay { begun.overlay = try options.decode(overlay) }
    return begun
  }

  /// Of what is decoded, the working copy is left at `sound`.
  private func analyze(
    _ decoding: (any WorkingSource)?, into path: String, sound: String?, _ display: inout ProgressDisplay
  ) throws -> Analysis {
    guard let decoding, let sound else { return try analyze(into: path, &display) }
    return try ImportRecording(
      decoding, working: sound, pyramid: path, limits: options.limits, findsNoiseRegions: noiseRegions
    ).run { display.show($0) }
  }

  private func analyze(into path: String, _ display: inout ProgressDisplay) throws -> Analysis {
    // More than four would take more memory, and wait for the disk.
    let threads = min(threads ?? sysconf(Int32(_SC_NPROCESSORS_ONLN)), 4)
    return try AnalyzeRecording(
      source: input, pyramid: path, limits: options.limits, threads: threads, findsNoiseRegions: noiseRegions,
      soundMap: soundMap
    ).run { display.show($0) }
  }

  private func export(from pyramid: String, sound: String, under overlayDecoding: (any WorkingSource)?) throws {
    guard let destination, let kind = kind(of: destination), let bits = SampleBits(rawValue: bits) else {
      return
    }
    let width = kind.isPicture ? pictures.width ?? PictureStyle.defaultWidth : nil
    let resolution: WaveformResolution = scale.map { .scale($0) } ?? width.map { .width($0) } ?? .scale(256)
    let query = WaveformQuery(
      start: start, end: end, resolution: resolution, channels: channels, measures: .peak, bits: bits)
    let file = try OutputFile(path: destination)
    guard let overlay = pictures.overlay else {
      let export = ExportWaveform(source: sound, pyramid: pyramid, query: query, style: pictures.style)
      try export.write(kind, to: file.temporaryPath)
      return try file.commit()
    }
    let working = OutputFile(scratch: "overlay", near: destination)
    let overlaySound = OutputFile(scratch: "overlay-working", near: destination)
    if let overlayDecoding {
      _ = try ImportRecording(
        overlayDecoding, working: overlaySound.temporaryPath, pyramid: working.temporaryPath, limits: options.limits
      ).run { _ in }
    } else {
      _ = try AnalyzeRecording(source: overlay, pyramid: working.temporaryPath, limits: options.limits).run { _ in }
    }
    let export = ExportWaveform(
      source: sound, pyramid: pyramid, query: query, style: pictures.style,
      overlay: AnalyzedRecording(
        source: overlayDecoding == nil ? overlay : overlaySound.temporaryPath, pyramid: working.temporaryPath))
    try export.write(kind, to: file.temporaryPath)
    try file.commit()
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
