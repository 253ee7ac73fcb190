import ArgumentParser
import Processing
import Workers

/// How a command shows its progress.
struct ProgressOptions: ParsableArguments {
  @Option(help: "How to show progress: auto, bar, json (one object per line) or none.")
  var progress: ProgressStyle = .auto
}

/// The options shared by commands that work on one file.
struct WorkerOptions: ParsableArguments {
  @OptionGroup var display: ProgressOptions

  @Option(
    help: ArgumentHelp(
      "The ffmpeg that reads m4a, mp4, webm and others (default: the one on PATH).", valueName: "PATH"))
  var ffmpeg: String?

  var progress: ProgressStyle { display.progress }

  /// A request for this process.
  func request(_ work: WorkerRequest.Work, on source: String, threads: Int? = nil) -> WorkerRequest {
    WorkerRequest(
      work, on: source, ffmpeg: setting("ffmpeg", ffmpeg) ?? "ffmpeg", voice: setting("voice", nil), threads: threads)
  }

  /// A working copy of `input`, if it needs one, under a temporary name near `place` that is removed when the process
  /// ends.
  func copy(of input: String, near place: String) throws(ProcessingError) -> WorkingCopy? {
    try request(.probe, on: input).facts().map {
      WorkingCopy($0, at: TemporaryFiles.shared.newPath(near: place, "working"))
    }
  }

  /// Creates the private folder if `input` or `output` is `-`. If `input` is, copies standard input to a file there and
  /// sets `input` to its path.
  func receive(_ input: inout String, output: String? = nil) throws {
    guard [input, output].contains(OutputFile.standardName) else { return }
    do throws(CommandFailure) {
      try TemporaryFiles.shared.makeFolder()
      guard input == OutputFile.standardName else { return }
      Interruption.watch()
      input = try InputFile.receive()
    } catch {
      TemporaryFiles.shared.removeAll()
      ProgressDisplay(progress).fail(error.failure)
      throw ExitCode.failure
    }
  }

  /// Throws if both the result and the progress would go to standard output.
  func checkOutput(_ destination: String?) throws {
    guard destination == OutputFile.standardName, progress == .json else { return }
    throw ValidationError("Standard output can't take both the result (-o -) and --progress json.")
  }
}

extension WorkerFence: ExpressibleByArgument {
  /// `MEMORY,SECONDS,OUTPUT`.
  package init?(argument: String) { self.init(text: argument) }
}
