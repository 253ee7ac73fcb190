import ArgumentParser
import AudioService
import Glibc
import Storage
import Terms

struct BackupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Backs up the data folder of one machine, even while the service runs.",
    discussion: """
      The backup contains the catalog as of one moment, every file of its recordings, the acknowledged bytes of \
      unfinished uploads, the secrets for tokens, and SHA256SUMS, which “sha256sum -c” checks. If the service has \
      --token-secret-file, name that file here too; a service that is started on the backup without it then knows the \
      same secrets. Audio on the same disk is hard-linked, which takes no room; --copy copies it. Every file is read once. The backup appears under \
      its name when it is complete; if the folder exists already and is empty, such as the root of a disk, SHA256SUMS \
      appears last. The exit status is 0 only if every row can be read and every audio file matches the catalog.

      It doesn't cover what several machines share (--catalog, --media): their database is backed up with PostgreSQL's \
      tools, and then the folder or the bucket with those of the disk or the store. See “Backups” in docs/cluster.md.
      """)

  @OptionGroup var folder: DataFolderOptions

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("The backup's folder, which must not exist yet or be empty.", valueName: "DIR"))
  var output: String

  @Option(
    help: ArgumentHelp(
      "The service's file of secrets for tokens, if it has one (default: STILLWAVE_TOKEN_SECRET_FILE).",
      valueName: "FILE"))
  var tokenSecretFile: String?

  @Flag(help: "Copy files even if they could be linked.")
  var copy = false

  @OptionGroup var style: ProgressOptions

  func run() throws {
    let path = try folder.path()
    umask(0o077)
    try DataFolderOptions.run(showing: style) { display in
      try MediaStore(lookingAt: path).checkIsDataFolder()
      try checkHasCatalog(path)
      let secrets = setting("token-secret-file", tokenSecretFile)
      let report = try Backup(of: path, to: output, method: copy ? .copy : .link, secrets: secrets).make { share in
        display.show(share: share)
      }
      if !report.hasSecrets {
        StandardStreams.complain(
          "the backup has no secret for tokens; if the service has --token-secret-file, name that file here, or keep it "
            + "elsewhere")
      }
      for id in report.damaged {
        writeAll(
          Array("stillwave: recordings/\(id): the row can't be read, or the audio doesn't match it.\n".utf8),
          to: STDERR_FILENO)
      }
      display.finish([
        "recordings": report.recordings, "uploads": report.uploads, "files": report.files, "bytes": Int(report.bytes),
      ])
      return report.damaged.isEmpty
    }
  }

  /// A folder of one of several nodes has no catalog and no recordings, so there is nothing to back up in it.
  private func checkHasCatalog(_ path: String) throws {
    func has(_ name: String) -> Bool { unsafe access("\(path)/\(name)", F_OK) == 0 }
    guard !has("catalog.sqlite"), has("scratch") || environmentVariable("STILLWAVE_CATALOG") != nil else { return }
    throw ValidationError(
      """
      \(path) is the folder of one of several nodes and has no recordings. What nodes share is backed up with the tools \
      of their database and of their disk or store: see “Backups” in docs/cluster.md.
      """)
  }
}
