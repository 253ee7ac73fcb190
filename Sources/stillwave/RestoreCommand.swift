import ArgumentParser
import AudioService
import Glibc
import Storage

struct RestoreCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Makes a data folder of a backup.",
    discussion: """
      Every file is copied and held against the backup's SHA256SUMS. Where one is missing or has changed, nothing is \
      restored and the exit status is not 0; with --keep-damaged, what is left is restored all the same. The data \
      folder must not exist, or be empty. Run by root, the files are written as the user who owns it, or the folder it \
      is made in; that user must be able to read the backup.
      """)

  @Argument(help: ArgumentHelp("The backup that “stillwave backup” has made.", valueName: "BACKUP"))
  var backup: String

  @OptionGroup var folder: DataFolderOptions

  @Flag(help: "Restore what is left of a damaged backup.")
  var keepDamaged = false

  func run() throws {
    let path = try folder.path()
    umask(0o077)
    try DataFolderOptions.run { display in
      try DataFolderOptions.becomeOwner(of: path)
      let report = try Restoration(of: backup, to: path, keepsDamaged: keepDamaged).run { share in
        display.show(share: share)
      }
      for name in report.damaged {
        writeAll(Array("stillwave: \(name) is missing or is not what SHA256SUMS says.\n".utf8), to: STDERR_FILENO)
      }
      let isRestored = report.damaged.isEmpty || keepDamaged
      let text = isRestored ? "\(report.files) files, \(report.bytes) bytes\n" : "Nothing was restored.\n"
      writeAll(Array(text.utf8), to: isRestored ? STDOUT_FILENO : STDERR_FILENO)
      return report.damaged.isEmpty
    }
  }
}
