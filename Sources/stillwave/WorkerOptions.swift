import ArgumentParser
import AudioIO
import Glibc
import Media
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

  @Option(
    help: ArgumentHelp(
      "The ffmpeg that reads m4a, mp4, webm and others; by default the one on PATH.", valueName: "PATH"))
  var ffmpeg: String?

  /// What a probe has found out about a file that ffmpeg reads: see `MediaFacts`.
  @Option(help: .hidden)
  var media: MediaFacts?

  /// Where the working copy of such a file is left.
  @Option(help: .hidden)
  var working: String?

  var limits: AudioLimits {
    var limits = AudioLimits()
    limits.channels = maxChannels
    limits.sampleRates = 1...max(maxSampleRate, 1)
    limits.durationSeconds = maxDuration
    return limits
  }

  /// Runs `work` on the file `source` with a progress display; shows how it ended. Exit status 0 only where the output
  /// is whole.
  func run(on source: String, _ work: (inout ProgressDisplay) throws -> WorkerReport) throws {
    try run(on: source, opening: {}) { (display, _: Void) in try work(&display) }
  }

  /// The same with what has to be begun before the fence: other programs, which can't be started behind it.
  func run<Opened>(
    on source: String, opening open: () throws -> Opened,
    _ work: (inout ProgressDisplay, Opened) throws -> WorkerReport
  ) throws {
    var display = ProgressDisplay(progress)
    defer { TemporaryFiles.shared.removeAll() }
    do {
      // Here, where it has a name: further down there are descriptors.
      guard unsafe access(source, R_OK) == 0 else {
        throw ProcessingError.system(operation: "open", path: source, errno: errno)
      }
      let opened = try open()
      // There libsndfile keeps the packets of ALAC until it knows their number: no other folder is open to a worker.
      if let workFolder, workFolder.hasPrefix("/"), source.hasPrefix("/") { _ = unsafe chdir(workFolder) }
      // Before anything that a stranger made is looked at, but for the first bytes that tell its kind.
      if let refusal = fenced?.enter(source: source, folder: workFolder) {
        display.tellUnfenced(refusal)
        throw ProcessingError.system(operation: "fence", path: source, errno: refusal)
      }
      Interruption.watch(standardInput: untilStandardInputCloses)
      if let workFolder { try WorkFolderLock.take(workFolder) }
      display.finish(try work(&display, opened))
    } catch let error as ProcessingError {
      display.fail(WorkerFailure(error, namesPaths: progress != .json))
      throw ExitCode.failure
    } catch let error as OutputFailure {
      display.fail(WorkerFailure(code: "io_error", detail: error.description, retry: true))
      throw ExitCode.failure
    } catch let error as CommandFailure {
      display.fail(error.failure)
      throw ExitCode.failure
    }
  }

  /// Makes room for what lies beside no file of the user's, if `input` or `output` is `-`; where `input` is, reads
  /// standard input into a file there and makes `input` its path. By hand only: a worker's standard input is its
  /// service's sign of life.
  func receive(_ input: inout String, output: String? = nil) throws {
    guard [input, output].contains(OutputFile.standardName), !untilStandardInputCloses else { return }
    do throws(CommandFailure) {
      try TemporaryFiles.shared.makeFolder()
      guard input == OutputFile.standardName else { return }
      Interruption.watch(standardInput: false)
      input = try InputFile.receive()
    } catch {
      TemporaryFiles.shared.removeAll()
      ProgressDisplay(progress).fail(error.failure)
      throw ExitCode.failure
    }
  }

  /// Throws where standard output would be given both the result and the progress.
  func checkOutput(_ destination: String?) throws {
    guard destination == OutputFile.standardName, progress == .json else { return }
    throw ValidationError("Standard output can't take both the result (-o -) and --progress json.")
  }
}

// MARK: What ffmpeg reads

extension WorkerOptions {
  /// Begins to look at a file; nil where it is none of those that ffmpeg reads.
  func look(at input: String) throws(ProcessingError) -> MediaProbe? {
    guard let demuxer = Demuxer(path: input) else { return nil }
    return try Processing.media { () throws(MediaError) in
      try MediaProbe(path: input, demuxer: demuxer, with: program(toRead: input, as: demuxer), in: fencing)
    }
  }

  /// Begins to check that ffmpeg works at all.
  func checkFFmpeg() throws(MediaError) -> FFmpegCheck { try FFmpegCheck(try encoder(), in: fencing) }

  /// Begins to decode a file into a working copy; nil where it is read as it is. A worker is told what the probe has
  /// found. By hand, where there is no fence, it is found out first; what libsndfile can't seek in is decoded from its
  /// start then.
  func decode(_ input: String) throws(ProcessingError) -> (any WorkingSource)? {
    var known = media
    if known == nil { known = try facts(of: input) }
    guard let facts = known else { return nil }
    guard let demuxer = facts.demuxer else { return SoundDecoding(path: input, facts: facts, limits: limits) }
    return try Processing.media { () throws(MediaError) in
      try MediaDecoding(path: input, facts: facts, with: program(toRead: input, as: demuxer), in: fencing)
    }
  }

  private func facts(of input: String) throws(ProcessingError) -> MediaFacts? {
    guard fenced == nil, let look = try look(at: input) else { return nil }
    return try Processing.media { () throws(MediaError) in try look.facts() }
  }

  private func program(toRead input: String, as demuxer: Demuxer) throws(MediaError) -> FFmpeg {
    try FFmpeg.find((try? setting("ffmpeg", ffmpeg, default: "ffmpeg")) ?? "ffmpeg", toRead: input, as: demuxer)
  }

  /// The program, to write a file. Throws `.missingEncoder` where there is none.
  func encoder() throws(MediaError) -> FFmpeg {
    guard let found = FFmpeg((try? setting("ffmpeg", ffmpeg, default: "ffmpeg")) ?? "ffmpeg") else {
      throw .missingEncoder
    }
    return found
  }

  /// It may use up what the worker may, and writes no file. By hand it runs as the one who asks for it: the file is
  /// theirs, and keeps its mode.
  private var fencing: Fencing {
    var fence = limitsOfPrograms
    fence.outputBytes = 0
    return Fencing(limits: fence.text, dropsRoot: fenced != nil)
  }

  /// The same for a program that writes the worker's file in its place.
  var encoderFencing: Fencing { Fencing(limits: limitsOfPrograms.text, dropsRoot: fenced != nil) }

  private var limitsOfPrograms: WorkerFence {
    fenced ?? WorkerFence(memoryBytes: 4 << 30, processorSeconds: 1_000_000_000, outputBytes: 1 << 62)
  }

  /// Gives `body` a file that libsndfile reads: `input` itself, or the working copy of what is decoded, which is made
  /// first, at `working` or under a name near `place` that goes when `body` has returned.
  func withSound<R>(
    of input: String, _ decoding: (any WorkingSource)?, near place: String, _ display: inout ProgressDisplay,
    _ body: (String, inout ProgressDisplay) throws -> R
  ) throws -> R {
    guard let decoding else { return try body(input, &display) }
    let scratch = OutputFile(scratch: "working", near: place)
    let path = working ?? scratch.temporaryPath
    // A small share of the work, which is told as none, so that what follows never falls behind it.
    _ = try ImportRecording(decoding, working: path, limits: limits).run { _ in
      display.show(WorkerProgress(fraction: 0, readyFrames: 0, totalFrames: nil, estimatedFrames: nil))
    }
    let result = try body(path, &display)
    _ = consume scratch
    return result
  }
}

extension MediaFacts: ExpressibleByArgument {
  /// As `json` writes it.
  package init?(argument: String) { self.init(json: argument) }
}

extension WorkerFence: ExpressibleByArgument {
  /// `MEMORY,SECONDS,OUTPUT`.
  package init?(argument: String) { self.init(text: argument) }
}
