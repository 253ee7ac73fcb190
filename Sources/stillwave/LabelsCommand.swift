import ArgumentParser
import Glibc
import Labels
import Terms

struct LabelsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "labels",
    abstract: "Works on timed text: subtitles, transcripts, lyrics and chapters.",
    subcommands: [ConvertLabelsCommand.self])
}

struct ConvertLabelsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "convert",
    abstract: "Converts timed text from one format to another.",
    discussion: """
      Reads WebVTT, SubRip, SBV, LRC (plain and enhanced), TTML, SubStation Alpha, Audacity's labels, JSON and tables \
      of Whisper and its relatives, chapters and transcripts of Podcasting 2.0, chapters of Podlove, lists of times and \
      titles, and the service's own JSON; the content shows which. Writes WebVTT, SubRip, LRC, Audacity's labels, \
      Podcasting 2.0 chapters and the service's own JSON. The ending of OUT decides what is written: .vtt, .srt, .lrc, .json (the service's own) or .txt (Audacity). What \
      the format can't hold is left out and named on standard error. “-” stands for standard input and output.
      """)

  @Argument(help: "The file to read; - for standard input.")
  var input: String

  @Option(name: .customShort("o"), help: ArgumentHelp("The file to write; - for standard output.", valueName: "OUT"))
  var destination: String

  @Option(
    help: ArgumentHelp(
      "The format to read: \(names(LabelFormat.readable)) (default: by the content).", valueName: "FORMAT"))
  var from: LabelFormat?

  @Option(
    help: ArgumentHelp(
      "The format to write: \(names(LabelFormat.writable)) (default: by the ending of OUT).", valueName: "FORMAT"))
  var format: LabelFormat?

  private static func names(_ formats: [LabelFormat]) -> String {
    formats.dropLast().map(\.rawValue).joined(separator: ", ") + " or " + (formats.last?.rawValue ?? "")
  }

  /// nil if it can't be written.
  private var written: LabelFormat? {
    let format = format ?? LabelFormat(ending: OutputEnding.text(of: destination) ?? "")
    return format.flatMap { LabelFormat.writable.contains($0) ? $0 : nil }
  }

  func validate() throws {
    guard written == nil else { return }
    throw ValidationError(
      "OUT must end in .vtt, .srt, .lrc, .json or .txt, or give --format with \(Self.names(LabelFormat.writable)).")
  }

  func run() throws {
    defer { TemporaryFiles.shared.removeAll() }
    do {
      guard let written else { return }
      try convert(to: written)
    } catch let error as CommandFailure {
      StandardStreams.complain(error.failure.detail)
      throw ExitCode.failure
    } catch let error as OutputFailure {
      StandardStreams.complain(error.description)
      throw ExitCode.failure
    }
  }

  private func convert(to format: LabelFormat) throws {
    if [input, destination].contains(OutputFile.standardName) { try TemporaryFiles.shared.makeFolder() }
    let isStandard = input == OutputFile.standardName
    let bytes = try contents(of: isStandard ? InputFile.receive() : input)
    let file: LabelFile
    do throws(LabelsError) { file = try LabelFile(parsing: bytes, as: from) } catch {
      throw CommandFailure(
        code: "invalid_labels", detail: "\(isStandard ? "Standard input" : input): \(error.words)")
    }
    for (position, fault) in file.leftOut.named {
      StandardStreams.complain("Left out: line \(position.line), column \(position.column): \(fault.words)")
    }
    let result = WrittenLabels(file.labels, as: format)
    let output = try OutputFile(path: destination)
    try TemporaryFiles.shared.create(output.temporaryPath)
    let descriptor = unsafe open(output.temporaryPath, O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw CommandFailure(system: errno, on: destination) }
    defer { close(descriptor) }
    if let number = writeAll(result.bytes, to: descriptor) { throw CommandFailure(system: number, on: destination) }
    try output.commit()
    if !result.leftOut.isEmpty {
      let names = result.leftOut.map(\.rawValue).joined(separator: ", ")
      StandardStreams.complain("\(destination): \(format.rawValue) can't hold these, which were left out: \(names).")
    }
  }

  private func contents(of path: String) throws(CommandFailure) -> [UInt8] {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw CommandFailure(system: errno, on: path) }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    while true {
      var failure: Int32?
      let piece = unsafe [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, count in
        let got = unsafe read(descriptor, buffer.baseAddress, buffer.count)
        failure = got < 0 ? errno : nil
        count = max(0, got)
      }
      if let failure { throw CommandFailure(system: failure, on: path) }
      guard !piece.isEmpty else { return bytes }
      bytes += piece
      guard bytes.count <= LabelLimits.bytes else {
        throw CommandFailure(
          code: "content_too_large", detail: "\(path): the file is longer than the \(LabelLimits.bytes) bytes allowed.")
      }
    }
  }
}

extension LabelFormat: ExpressibleByArgument {}
