import ArgumentParser
import AudioService
import Glibc
import Storage
import Terms

struct RestoreCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Restores the data folder of one machine from a backup.",
    discussion: """
      Every file is copied and checked against the backup's SHA256SUMS. If one is missing or has changed, nothing is \
      restored and the exit status is not 0; with --keep-damaged, everything else is restored anyway. The data folder \
      must not exist yet or be empty. If root runs the command, it writes the files as the user who owns that folder, \
      or its parent. What several machines share (--catalog, --media) is \
      restored with the tools of its database and of its disk or store: see “Backups” in docs/cluster.md.
      """)

  @Argument(help: ArgumentHelp("A backup made by “stillwave backup”.", valueName: "BACKUP"))
  var backup: String

  @OptionGroup var folder: DataFolderOptions

  @Flag(help: "Restore the intact files of a damaged backup.")
  var keepDamaged = false

  @OptionGroup var style: ProgressOptions

  func run() throws {
    let path = try folder.path()
    umask(0o077)
    try DataFolderOptions.run(asOwnerOf: path, showing: style) { display in
      let report = try Restoration(of: backup, to: path, keepsDamaged: keepDamaged).run { share in
        display.show(share: share)
      }
      for name in report.damaged {
        writeAll(Array("stillwave: \(name) is missing or doesn't match SHA256SUMS.\n".utf8), to: STDERR_FILENO)
      }
      if report.damaged.isEmpty || keepDamaged {
        display.finish(["files": report.files, "bytes": Int(report.bytes)])
      } else {
        writeAll(Array("Nothing was restored.\n".utf8), to: STDERR_FILENO)
      }
      return report.damaged.isEmpty
    }
  }
}
