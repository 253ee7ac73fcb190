import ArgumentParser
import AudioService
import Glibc
import Storage

struct BackupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Copies a data folder into a backup, while the service runs.",
    discussion: """
      The backup holds the catalog as it is at one moment, every file of the recordings in it, the acknowledged bytes \
      of unfinished uploads, and SHA256SUMS, which “sha256sum -c” checks. Files that are on the same disk are linked, \
      which takes no room; --copy copies them. Every file is read once. The backup appears under its name when it is \
      whole; in an empty folder that is there already, as the root of a disk is, SHA256SUMS appears last. The exit \
      status is 0 only if every row can be read and every audio file is what the catalog says.
      """)

  @OptionGroup var folder: DataFolderOptions

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("The backup; a folder that does not exist yet, or is empty.", valueName: "DIR"))
  var output: String

  @Flag(help: "Copy files even where they could be linked.")
  var copy = false

  func run() throws {
    let path = try folder.path()
    umask(0o077)
    try DataFolderOptions.run { display in
      let report = try Backup(of: path, to: output, method: copy ? .copy : .link).make { share in
        display.show(share: share)
      }
      for id in report.damaged {
        writeAll(
          Array("stillwave: recordings/\(id): the row can't be read, or the audio is not what it says.\n".utf8),
          to: STDERR_FILENO)
      }
      let text =
        "\(report.recordings) recordings, \(report.uploads) uploads, \(report.files) files, \(report.bytes) bytes\n"
      StandardStreams.write(Array(text.utf8))
      return report.damaged.isEmpty
    }
  }
}
