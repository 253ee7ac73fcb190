import ArgumentParser
import AudioIO
import Denoise
import Glibc
import Media
import Processing

struct DenoiseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "denoise",
    abstract: "Removes the noise from a recording.",
    discussion: """
      The noise is learnt from a stretch in which only noise is heard (--noise 1.25-2.75, seconds). Without one the \
      best such stretch is looked for; where there is none, the noise is what is quietest at every frequency over the \
      whole recording. “-” stands for standard input and output.
      """)

  @Argument(help: "The sound file to clean; - for standard input.")
  var input: String

  @Option(
    name: .customShort("o"), help: ArgumentHelp("The sound file to write; - for standard output.", valueName: "OUT"))
  var destination: String

  @Option(help: ArgumentHelp("Where only noise is heard.", valueName: "START-END|auto"))
  var noise: NoiseSource = .automatic

  @Option(help: "mmse_lsa, wiener or spectral_subtraction.")
  var method: DenoiseMethod = .mmseLSA

  @Option(help: "gentle (12 dB), natural (18 dB, the default) or strong (25 dB).")
  var strength: Strength?

  @Option(help: ArgumentHelp("The most that noise is turned down, 0 to 60.", valueName: "DB"))
  var reduction: Double?

  @Option(help: ArgumentHelp("A factor on the noise learnt, 0.5 to 2.", valueName: "X"))
  var sensitivity = 1.0

  @Option(help: "denoised, or residue: what was removed, to listen to.")
  var output: DenoiseSettings.Output = .denoised

  @Option(help: "The kind of file to write: same, wav, flac, mp3, ogg or opus; by default what OUT's ending says.")
  var format: OutputFormat?

  @Option(help: ArgumentHelp("Write only this stretch of the result, in seconds.", valueName: "START-END"))
  var window: WindowArgument?

  @Option(help: ArgumentHelp("1 or 2; the result is the same. By default 2 where there are as many cores."))
  var threads: Int?

  @Option(help: .hidden)
  var pyramid: String?

  @Flag(help: .hidden)
  var noiseRegions = false

  /// The file whose sound is replaced by the result, which is kept at OUT as well; its facts, and the file to write.
  @Option(help: .hidden)
  var replaceIn: String?

  @Option(help: .hidden)
  var replaceFacts: MediaFacts?

  @Option(help: .hidden)
  var replaced: String?

  @OptionGroup var options: WorkerOptions

  func validate() throws {
    guard strength == nil || reduction == nil else {
      throw ValidationError("Give --strength or --reduction, not both.")
    }
    guard (0...60).contains(reduction ?? 0) else { throw ValidationError("--reduction is 0 to 60 dB.") }
    guard (1...2).contains(threads ?? 1) else { throw ValidationError("--threads is 1 or 2.") }
    try options.checkOutput(destination)
    guard (0.5...2).contains(sensitivity) else { throw ValidationError("--sensitivity is 0.5 to 2.") }
  }

  mutating func run() throws {
    try options.receive(&input, output: destination)
    try clean()
  }

  private func clean() throws {
    try options.run(on: input, opening: { try begin() }) { display, begun in
      try options.withSound(of: input, begun.decoding, near: destination, &display) { sound, display in
        try denoise(sound, begun, &display)
      }
    }
  }

  /// What has to be started before the fence, and where the two files go.
  private struct Begun {
    var decoding: (any WorkingSource)?
    var encoding: (writer: any CleanedFile, tracks: CopiedTracks?)?
    /// Of what `encoding` writes.
    var replaced: String?
    /// Of the sound alone.
    let sound: String
    let format: OutputFormat
  }

  private func begin() throws -> Begun {
    let decoding = try options.decode(input)
    try checkEnding(decoding?.facts)
    let wanted = format ?? OutputFormat(ending: destination)
    if let replaceIn, let replaceFacts, let replaced {
      let path = TemporaryFiles.shared.newPath(near: replaced)
      return Begun(
        decoding: decoding, encoding: try encoding(replaceIn, replaceFacts, into: path), replaced: path,
        sound: TemporaryFiles.shared.newPath(near: destination), format: wanted)
    }
    // By hand: what ffmpeg reads becomes the same kind of file again, and nobody needs the sound beside it.
    let path = TemporaryFiles.shared.newPath(near: destination)
    guard fencedOrPlain(decoding), wanted == .same, window == nil, let facts = decoding?.facts,
      facts.writtenCodec != nil
    else { return Begun(decoding: decoding, sound: path, format: wanted) }
    let scratch = TemporaryFiles.shared.newPath(near: destination, "sound")
    // ffmpeg would make one that nobody else can read, as the service's are.
    try TemporaryFiles.shared.create(path)
    return Begun(
      decoding: decoding, encoding: try encoding(input, facts, into: path), replaced: path, sound: scratch,
      format: wanted)
  }

  /// By hand: throws where OUT's ending is that of another kind of file than the one that is written.
  private func checkEnding(_ facts: MediaFacts?) throws {
    guard format == nil, options.fenced == nil, replaceIn == nil, OutputFormat(ending: destination) == .same else {
      return
    }
    let written: String?
    if let facts {
      written = window == nil ? facts.ofResult?.fileExtension : nil
    } else {
      // What can't be read, or written, is complained of where it is.
      guard let source = try? AudioReader(path: input, limits: options.limits).format,
        let target = try? OutputFormat.same.format(for: source)
      else { return }
      written = target.fileExtension
    }
    try OutputEnding(of: destination)?.check(isOf: written)
  }

  private func fencedOrPlain(_ decoding: (any WorkingSource)?) -> Bool { options.fenced == nil && decoding != nil }

  private func encoding(_ original: String, _ facts: MediaFacts, into path: String) throws(ProcessingError)
    -> (any CleanedFile, CopiedTracks?)
  {
    if facts.demuxer == nil { return (try SoundEncoding(path: path, facts: facts, of: original), nil) }
    return try Processing.media { () throws(MediaError) in
      let (ffmpeg, fencing) = (try options.encoder(), options.encoderFencing)
      let tracks = try CopiedTracks.writable(of: original, facts, tryingAt: path, with: ffmpeg, in: fencing)
      return (
        try MediaEncoding(
          replacingSoundOf: original, facts, keeping: tracks, into: path, with: ffmpeg, in: fencing), tracks
      )
    }
  }

  private func denoise(_ sound: String, _ begun: Begun, _ display: inout ProgressDisplay) throws -> WorkerReport {
    let job = DenoiseRecording(
      source: sound, output: begun.sound, pyramid: pyramid, noise: noise, settings: settings, format: begun.format,
      limits: options.limits, findsNoiseRegions: noiseRegions, window: window?.window,
      usesSecondThread: (threads ?? sysconf(Int32(_SC_NPROCESSORS_ONLN))) > 1, encoding: begun.encoding?.writer)
    let soundFile = try OutputFile(path: destination, through: begun.sound)
    var report = WorkerReport()
    var outcome = try job.run { display.show($0) }
    if let tracks = begun.encoding?.tracks { outcome.warnings += Anomaly.leftOut(tracks) }
    if options.fenced == nil, begun.format == .same, window == nil {
      let source = try? begun.decoding == nil ? AudioReader(path: input, limits: options.limits).format : nil
      outcome.warnings += begun.decoding.map { Anomaly.ofKind($0.facts) } ?? source.map(Anomaly.ofKind) ?? []
    }
    report.denoised = outcome
    if let path = begun.replaced { try OutputFile(path: replaced ?? destination, through: path).commit() }
    // By hand the sound beside the file it went into is of no use, and goes.
    if begun.replaced == nil || replaced != nil { try soundFile.commit() }
    return report
  }

  private var settings: DenoiseSettings {
    var settings = DenoiseSettings()
    settings.method = method
    settings.reductionDB = reduction ?? (strength ?? .natural).reductionDB
    settings.sensitivity = sensitivity
    settings.output = output
    return settings
  }
}

extension DenoiseMethod: ExpressibleByArgument {}
extension DenoiseSettings.Output: ExpressibleByArgument {}
extension Strength: ExpressibleByArgument {}

extension OutputFormat: ExpressibleByArgument {
  /// What the ending of a file's name asks for; the source's own kind where it says nothing.
  init(ending path: String) {
    let ending = path.split(separator: ".").last.map { $0.lowercased() }
    self = ending.flatMap(OutputFormat.init(rawValue:)) ?? .same
  }
}

/// `START-END` in seconds, `auto`, or `quantile:Q`.
extension NoiseSource: ExpressibleByArgument {
  /// nil where the text is none of the three.
  package init?(argument: String) {
    if argument == "auto" {
      self = .automatic
    } else if argument.hasPrefix("quantile:"), let quantile = Double(argument.dropFirst(9)),
      (0.01...0.9).contains(quantile)
    {
      self = .quantile(quantile)
    } else if let region = WindowArgument(argument: argument)?.window {
      self = .region(start: region.start, end: region.end)
    } else {
      return nil
    }
  }

  /// As the help shows it.
  package var defaultValueDescription: String { "auto" }
}

/// `START-END` in seconds.
struct WindowArgument: ExpressibleByArgument {
  let window: TimeWindow

  /// Tries every hyphen: a number may have one in its exponent.
  init?(argument text: String) {
    for index in text.indices where text[index] == "-" {
      if let start = Double(text[..<index]), let end = Double(text[text.index(after: index)...]), start >= 0,
        start < end, end.isFinite
      {
        window = TimeWindow(start: start, end: end)
        return
      }
    }
    return nil
  }
}
