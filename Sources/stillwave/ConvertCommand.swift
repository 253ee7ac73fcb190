import ArgumentParser
import AudioIO
import Media
import Processing

struct ConvertCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "convert", abstract: "Writes a recording in another format.", shouldDisplay: false)

  @Argument(help: "The sound file to read.")
  var input: String

  @Option(name: .customShort("o"), help: ArgumentHelp("The sound file to write.", valueName: "OUT"))
  var destination: String

  @Option(help: "The kind of file to write: wav, flac, mp3, ogg or opus.")
  var format: OutputFormat

  @Option(help: ArgumentHelp("The source's rate and channels, where ffmpeg is to encode.", valueName: "HZ,N"))
  var encode: SoundShape?

  @OptionGroup var options: WorkerOptions

  func run() throws {
    let path = TemporaryFiles.shared.newPath(near: destination)
    try options.run(on: input, opening: { try encoding(to: path) }) { display, encoding in
      let file = try OutputFile(path: destination, through: path)
      var report = WorkerReport()
      report.converted = try ConvertRecording(source: input, output: path, format: format, encoding: encoding).run {
        display.show($0)
      }
      try file.commit()
      return report
    }
  }

  private func encoding(to path: String) throws(ProcessingError) -> MediaEncoding? {
    guard let encode, let codec = MediaEncoding.Codec(rawValue: format.rawValue) else { return nil }
    return try Processing.media { () throws(MediaError) in
      try MediaEncoding(
        path: path, codec: codec, sampleRate: encode.sampleRate, channels: encode.channels,
        with: options.encoder(), in: options.encoderFencing)
    }
  }
}

/// `HZ,N`.
struct SoundShape: ExpressibleByArgument {
  let sampleRate, channels: Int

  init?(argument: String) {
    let numbers = argument.split(separator: ",").compactMap { Int($0) }
    guard numbers.count == 2, numbers[0] > 0, numbers[1] > 0 else { return nil }
    (sampleRate, channels) = (numbers[0], numbers[1])
  }
}
