import ArgumentParser
import AudioIO
import Processing

/// What every command that works on one file has in common.
struct WorkerOptions: ParsableArguments {
  @Option(help: "How to show progress: auto, bar, json (one object a line) or none.")
  var progress: ProgressStyle = .auto

  @Flag(help: .hidden)
  var untilStandardInputCloses = false

  /// Bytes of memory, seconds of processor time and bytes of a file, by commas: see `WorkerFence`.
  @Option(help: .hidden)
  var fenced: WorkerFence?

  /// The job's folder, which one worker at a time may use, and where a fenced one finds all that it writes.
  @Option(help: .hidden)
  var workFolder: String?

  @Option(help: .hidden)
  var maxChannels = AudioLimits().channels

  @Option(help: .hidden)
  var maxSampleRate = AudioLimits().sampleRates.upperBound

  @Option(help: .hidden)
  var maxDuration = AudioLimits().durationSeconds

  var limits: AudioLimits {
    var limits = AudioLimits()
    limits.channels = maxChannels
    limits.sampleRates = 1...max(maxSampleRate, 1)
    limits.durationSeconds = maxDuration
    return limits
  }

  /// Runs `work` on the file `source` with a progress display; shows how it ended. Exit status 0 only where the output is
  /// whole.
  func run(on source: String, _ work: (inout ProgressDisplay) throws -> WorkerReport) throws {
    // Before anything that a stranger made is looked at.
    let refusal = fenced?.enter(source: source, folder: workFolder)
    Interruption.watch(standardInput: untilStandardInputCloses)
    var display = ProgressDisplay(progress)
    if let refusal { display.tellUnfenced(refusal) }
    do {
      if let workFolder { try WorkFolderLock.take(workFolder) }
      display.finish(try work(&display))
    } catch let error as ProcessingError {
      display.fail(WorkerFailure(error))
      throw ExitCode.failure
    } catch let error as OutputFailure {
      display.fail(WorkerFailure(code: "io_error", detail: error.description, retry: true))
      throw ExitCode.failure
    }
  }
}

extension WorkerFence: ExpressibleByArgument {
  /// `MEMORY,SECONDS,OUTPUT`.
  public init?(argument: String) { self.init(text: argument) }
}
