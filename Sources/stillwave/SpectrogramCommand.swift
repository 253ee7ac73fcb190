import ArgumentParser
import Denoise
import Processing
import Terms
import Waveform
import Workers

struct SpectrogramCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "spectrogram",
    abstract: "Draws the spectrogram of a recording as a PNG.",
    discussion: """
      Each column is a run of frames, each row a band of frequencies; the color shows how loud it is. “-” stands for \
      standard input and output.
      """)

  @Argument(help: "The sound file to read; - for standard input.")
  var input: String

  @Option(name: .customShort("o"), help: ArgumentHelp("The PNG to write; - for standard output.", valueName: "OUT.png"))
  var destination: String

  @Option(help: "Start of the window, in seconds.")
  var start: Double?

  @Option(help: "End of the window, in seconds.")
  var end: Double?

  @Option(help: "Frames per column, a power of two from 64 to 16777216. Not together with --width.")
  var scale: Int?

  @Option(help: "Maximum number of columns, 1 to 4096 (default: 1024).")
  var width: Int?

  @Option(help: "Number of rows, 1 to 2048.")
  var height = 256

  @Option(
    help: ArgumentHelp("The mean of all channels, all of them, or one by its number from 0.", valueName: "mix|split|N"))
  var channels: ChannelSelection = .mix

  @Option(help: ArgumentHelp("How frequencies are spaced.", valueName: "linear|mel|log"))
  var frequencyScale: FrequencyScale = .mel

  @Option(help: "The frequency at the lower edge (default: 0; log: 20).")
  var minHz: Double?

  @Option(help: "The frequency at the upper edge (default: half the sample rate).")
  var maxHz: Double?

  @Option(
    name: .customLong("min-db"), parsing: .unconditional, help: "The level of the darkest color, -120 to -1.")
  var minDB = -120.0

  @Option(
    name: .customLong("max-db"), parsing: .unconditional, help: "The level of the lightest color, -119 to 0.")
  var maxDB = 0.0

  @Option(help: "Samples per transform, a power of two from 256 to 16384.")
  var window = 2048

  @Option(help: ArgumentHelp("The colors.", valueName: "magma|viridis|grey"))
  var palette: PicturePalette = .magma

  @OptionGroup var options: WorkerOptions

  func validate() throws {
    try options.checkOutput(destination)
    guard scale == nil || width == nil else {
      throw ValidationError("Only one of --scale and --width can be given.")
    }
  }

  mutating func run() throws {
    try options.receive(&input, output: destination)
    try ProgressDisplay.run(options.progress) { try draw(&$0) }
  }

  /// Returns the report of making a working copy; nil if the file is read directly.
  private func draw(_ display: inout ProgressDisplay) throws -> WorkerReport? {
    let copy = try options.copy(of: input, near: destination)
    let report = try copy.map { copy in
      let pyramid = TemporaryFiles.shared.newPath(near: destination, "pyramid")
      return try display.perform(options.request(.waveform(WaveformWork(pyramid: pyramid, copy: copy)), on: input))
    }
    let file = try OutputFile(path: destination)
    try ExportSpectrogram(source: copy?.path ?? input, query: query, palette: palette).write(to: file.temporaryPath)
    try file.commit()
    display.show(WorkerProgress(fraction: 1, readyFrames: 0, totalFrames: nil, estimatedFrames: nil))
    return report
  }

  private var query: SpectrogramQuery {
    var query = SpectrogramQuery()
    (query.start, query.end, query.height, query.channels) = (start, end, height, channels)
    if let scale { query.resolution = .scale(scale) }
    if let width { query.resolution = .width(width) }
    (query.frequencyScale, query.minHz, query.maxHz) = (frequencyScale, minHz, maxHz)
    (query.minDB, query.maxDB, query.window) = (minDB, maxDB, window)
    return query
  }
}

extension FrequencyScale: ExpressibleByArgument {}
extension PicturePalette: ExpressibleByArgument {}
