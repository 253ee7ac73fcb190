import ArgumentParser
import AudioIO
import Denoise
import Media
import Processing
import Terms
import Workers

/// The options of commands that remove noise, and the work on one file.
struct DenoiseOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Where only noise is heard, or the file of a profile.", valueName: "START-END[,…]|auto|PROFILE.json"),
    transform: NoiseArgument.init(parsing:))
  var noise = NoiseArgument.automatic

  @Flag(
    inversion: .prefixedNo,
    help: """
      Follow the noise where its level or color changes (default: with auto, where it is certain to be noise). Long \
      tones that begin in the middle may be taken for noise.
      """)
  var adapt: Bool?

  @Option(
    help: """
      mmse_lsa, wiener, spectral_subtraction, voice (a network for speech, which deploy/install voice installs), or \
      none, which only applies --box.
      """)
  var method: DenoiseMethod = .mmseLSA

  @Option(help: "gentle (12 dB), natural (18 dB, the default) or strong (25 dB); with voice 12, 20 or 30 dB.")
  var strength: Strength?

  @Option(help: ArgumentHelp("Maximum reduction of the noise, 0 to 60.", valueName: "DB"))
  var reduction: Double?

  @Option(help: ArgumentHelp("Factor applied to the learned noise, 0.5 to 2.", valueName: "X"))
  var sensitivity: Double?

  @Option(help: "denoised, or residue for the part that was removed.")
  var output: DenoiseSettings.Output = .denoised

  @Option(
    help: ArgumentHelp(
      "Which channels share one gain: all, pairs or none (default: all of 1 or 2 channels, pairs of more).",
      valueName: "all|pairs|none"))
  var link: ChannelLink?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Bring the result to this integrated loudness (EBU R 128), -70 to -5, with a true peak of at most -1 dBTP.",
      valueName: "LUFS"))
  var loudness: Double?

  @Option(
    help: ArgumentHelp(
      "Turn down a box in time (seconds) and frequency (Hz) by -60 to 0 dB; times or frequencies that are left out mean "
        + "all. Give it up to 1,000 times.", valueName: "START-END,MINHZ-MAXHZ,DB"))
  var box: [BoxArgument] = []

  @Option(help: "The kind of file to write: same, wav, flac, mp3, ogg or opus (default: by the ending of OUT).")
  var format: OutputFormat?

  @Option(help: ArgumentHelp("Write only this stretch of the result, in seconds.", valueName: "START-END"))
  var window: WindowArgument?

  @Option(help: ArgumentHelp("1 or 2; the result is the same (default: 2 if there are two cores)."))
  var threads: Int?

  @OptionGroup var several: FolderOptions

  @OptionGroup var options: WorkerOptions

  func validate() throws {
    guard box.count <= SoundEdit.boxLimit else { throw ValidationError("--box can be given at most 1,000 times.") }
    if method == .editOnly {
      guard !box.isEmpty else { throw ValidationError("--method none needs a --box.") }
      guard strength == nil, reduction == nil, sensitivity == nil, adapt == nil, link == nil, noise.source == nil else {
        throw ValidationError(
          "--method none takes no --noise, --strength, --reduction, --sensitivity, --adapt or --link.")
      }
    }
    guard strength == nil || reduction == nil else {
      throw ValidationError("Give --strength or --reduction, not both.")
    }
    guard (0...60).contains(reduction ?? 0) else { throw ValidationError("--reduction must be 0 to 60 dB.") }
    if let loudness {
      guard DenoiseParameters.loudnessRange.contains(loudness) else {
        throw ValidationError("--loudness must be -70 to -5 LUFS.")
      }
      guard window == nil else {
        throw ValidationError("--loudness needs the whole recording: give it without --window.")
      }
    }
    guard (1...2).contains(threads ?? 1) else { throw ValidationError("--threads must be 1 or 2.") }
    guard method != .voice || sensitivity == nil && adapt == nil else {
      throw ValidationError("With --method voice, leave out --sensitivity and --adapt.")
    }
    guard (0.5...2).contains(sensitivity ?? 1) else { throw ValidationError("--sensitivity must be 0.5 to 2.") }
  }

  /// Cleans several files. Throws if the profile can't be used.
  func work(on inputs: [String], folder: String) throws(CommandFailure) -> FolderWork {
    if case .profile(let path) = noise.source { try Self.check(profile: path) }
    return FolderWork(
      inputs: inputs, folder: folder, options: several, progress: options.progress, done: "cleaned",
      ending: format.flatMap { $0 == .same ? nil : $0.rawValue }, threads: threads, make: clean)
  }

  private static func check(profile path: String) throws(CommandFailure) {
    do { _ = try NoiseProfileFile(path: path) } catch {
      let failure = WorkerFailure(ProcessingError.profile(path: path, error), namesPaths: true)
      throw CommandFailure(code: failure.code, detail: failure.detail)
    }
  }

  /// Cleans one file.
  func clean(
    _ input: String, to destination: String, _ threads: Int?, _ display: inout ProgressDisplay
  ) throws -> WorkerReport {
    let copy = try options.copy(of: input, near: destination)
    // With many files, they would fill the disk.
    defer { if let copy { TemporaryFiles.shared.remove(copy.path) } }
    try checkEnding(of: destination, copy?.facts, input)
    let result = TemporaryFiles.shared.newPath(near: destination)
    let file = try OutputFile(path: destination, through: result)
    let parameters = DenoiseParameters(
      noise: noise.source, settings: settings, format: format ?? OutputFormat(ending: destination),
      loudness: loudness, edit: box.isEmpty ? nil : SoundEdit(box.map(\.box)))
    var work = DenoiseWork(parameters, output: result, copy: copy, window: window?.window)
    let keepsKind = parameters.format == .same && window == nil
    // A file that ffmpeg reads becomes the same kind of file again, and the audio alone isn't needed.
    if keepsKind, let facts = copy?.facts, facts.writtenCodec != nil {
      work.output = TemporaryFiles.shared.newPath(near: destination, "sound")
      work.replacement = .init(of: input, facts, output: result)
      // ffmpeg would create it readable only by its owner, like the service's files.
      try TemporaryFiles.shared.create(result)
    }
    defer { if work.replacement != nil { TemporaryFiles.shared.remove(work.output) } }
    var report = try display.perform(options.request(.denoise(work), on: input, threads: threads))
    if keepsKind, case .denoised(var outcome) = report {
      outcome.warnings += copy.map { Warning.ofKind($0.facts) } ?? sourceFormat(input).map(Warning.ofKind) ?? []
      report = .denoised(outcome)
    }
    try file.commit()
    return report
  }

  /// Throws if OUT's extension belongs to a different format than the one written.
  private func checkEnding(of destination: String, _ facts: MediaFacts?, _ input: String) throws {
    guard format == nil, OutputFormat(ending: destination) == .same else { return }
    let written: String?
    if let facts {
      written = window == nil ? facts.ofResult?.fileExtension : nil
    } else {
      // Files that can't be read or written are reported later.
      guard let source = sourceFormat(input), let target = try? OutputFormat.same.format(for: source) else { return }
      written = target.fileExtension
    }
    try OutputEnding(of: destination)?.check(isOf: written)
  }

  private func sourceFormat(_ input: String) -> AudioFormat? { try? AudioReader(path: input).format }

  private var settings: DenoiseSettings {
    var settings = DenoiseSettings()
    settings.method = method
    settings.reductionDB = reduction ?? (strength ?? .natural).reductionDB(method)
    settings.sensitivity = sensitivity ?? 1
    settings.output = output
    settings.link = link
    settings.adaptation = DenoiseParameters.adaptation(asked: adapt, noise: noise.source)
    return settings
  }
}

extension DenoiseMethod: ExpressibleByArgument {}
extension DenoiseSettings.Output: ExpressibleByArgument {}
extension ChannelLink: ExpressibleByArgument {}
extension Strength: ExpressibleByArgument {}

extension OutputFormat: ExpressibleByArgument {
  /// Returns the format for a file name's extension; the source's own for any other extension.
  init(ending path: String) {
    let ending = path.split(separator: ".").last.map { $0.lowercased() }
    self = ending.flatMap(OutputFormat.init(rawValue:)) ?? .same
  }
}

/// `START-END` in seconds.
struct WindowArgument: ExpressibleByArgument {
  let window: TimeWindow

  /// Tries every hyphen, because a number may have one in its exponent.
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
