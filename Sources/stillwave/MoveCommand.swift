import ArgumentParser
import AudioService
import FoundationEssentials
import Glibc
import Storage

enum MoveSettings: SettingList { static let settings = MovePlaces.settings }

struct MoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "move",
    abstract: "Moves a data folder to several machines, or back.",
    discussion: """
      Copies everything from the data folder of one machine into a catalog in PostgreSQL and a bucket or a folder that \
      several machines share, or the reverse: recordings with their IDs and times, labels, noise profiles, waveforms, \
      conversions, waiting jobs, and the bytes of unfinished uploads. Every file is compared with the catalog's \
      SHA-256, and in the end all rows of both places are compared.

      All services must be stopped: a data folder is locked, and a catalog that nodes are connected to is refused. The \
      place to move to must be empty. The place to move from isn't changed; remove it yourself once the services work \
      with the new one. If the command is interrupted, run it again: it goes on where it was, and until it has ended, \
      no service starts with the new place. Of two commands that move into one place, the one that was started last \
      goes on. Jobs that ran are queued again. Waveforms, working copies and conversions whose files are missing or \
      damaged are left out and made again; sounds that are end the move before any row is copied.

      Instead of the URL of a catalog on the command line, STILLWAVE_CATALOG can name it. A password belongs there, in \
      PGPASSWORD or in a password file. If root runs the command, it works as the user who owns the data folder. See \
      docs/cluster.md. The exit status is 0 only if everything was moved.
      """)

  @Option(
    help: ArgumentHelp("The place to move from: a data folder, or postgres://user@host/name.", valueName: "PLACE"))
  var from: String?

  @Option(
    help: ArgumentHelp("The place to move to: a data folder, or postgres://user@host/name.", valueName: "PLACE"))
  var to: String?

  @OptionGroup(title: "Media of several machines") var media: SettingFlags<MoveSettings>

  @Flag(help: "Print one JSON object instead of lines.")
  var json = false

  @OptionGroup var style: ProgressOptions

  private struct Answer: Encodable {
    let ok: Bool
    let recordings, uploads, files: Int
    let bytes: Int64
    let earlierFiles, lostConversions, lostWaveforms, forgottenRecordings: Int
    let problems: [DataCheck.Finding]
    let problemCounts: [String: Int]
  }

  func run() throws {
    umask(0o077)
    let places: MovePlaces
    do throws(SettingError) {
      places = try MovePlaces(from: from, to: to, flags: media.given, variable: environmentVariable)
    } catch {
      throw ValidationError(error.description)
    }
    try DataFolderOptions.run(asOwnerOf: places.folder, showing: style) { display in
      let report = try places.run(waveformFault: CheckCommand.fault) { display.show(share: $0) }
      StandardStreams.write(try text(report))
      return report.foundProblems.isEmpty
    }
  }

  private func text(_ report: Move.Report) throws -> [UInt8] {
    if json || style.progress == .json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      encoder.keyEncodingStrategy = .convertToSnakeCase
      let answer = Answer(
        ok: report.foundProblems.isEmpty, recordings: report.recordings, uploads: report.uploads, files: report.files,
        bytes: report.bytes, earlierFiles: report.earlierFiles, lostConversions: report.lostConversions,
        lostWaveforms: report.lostWaveforms, forgottenRecordings: report.forgottenRecordings, problems: report.problems,
        problemCounts: report.foundProblems.counts)
      return Array(try encoder.encode(answer)) + [UInt8(ascii: "\n")]
    }
    var lines = report.foundProblems.lines("problem")
    if !report.foundProblems.isEmpty {
      let count = report.foundProblems.count
      lines.append(
        "Nothing was moved: \(count < Move.problemLimit ? "" : "at least ")\(count) problems. Run “stillwave check” on the "
          + "place to move from, repair it, and run the same command again.")
    } else {
      lines.append(
        "\(report.recordings) recordings, \(report.uploads) uploads, \(report.files) files, \(report.bytes) bytes")
      if report.earlierFiles > 0 { lines.append("\(report.earlierFiles) files were there from an earlier run") }
      if report.lostConversions > 0 {
        lines.append(
          "\(report.lostConversions) conversions had lost their files, and are made again when they are needed")
      }
      if report.lostWaveforms > 0 {
        lines.append(
          "\(report.lostWaveforms) waveforms will be built again, when the service starts or somebody looks at them: their "
            + "files, or those of the working copies, are missing or damaged")
      }
      if report.forgottenRecordings > 0 {
        lines.append(
          "\(report.forgottenRecordings) recordings that an earlier run had copied have been deleted since; their files were "
            + "moved to “orphaned”")
      }
    }
    return Array(lines.map { $0 + "\n" }.joined().utf8)
  }
}
