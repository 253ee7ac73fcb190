import ArgumentParser
import Media
import Processing

/// Ends with status 0 if ffmpeg works here: how the service finds out whether a failure is ffmpeg's or a file's.
struct CheckFFmpegCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check-ffmpeg", abstract: "Checks that ffmpeg works.", shouldDisplay: false)

  @OptionGroup var options: WorkerOptions

  func run() throws {
    guard let check = try? options.checkFFmpeg(), check.works() else { throw ExitCode.failure }
  }
}
