import ArgumentParser
import Glibc

struct WatchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Removes the noise from each file added to a folder.",
    discussion: """
      Runs until it is stopped (Ctrl-C or SIGTERM). A file is cleaned once it hasn't changed for a second, and its \
      result has the same name. If a result already exists and is newer than its source, the source is skipped. A file \
      that changes is cleaned again; one that failed is retried only after a change. Hidden files and subfolders are \
      ignored. Failures are written to standard error and to --manifest.
      """)

  @Argument(help: ArgumentHelp("The folder to watch.", valueName: "DIR"))
  var folder: String

  @Option(help: ArgumentHelp("The folder of the results.", valueName: "DIR"))
  var to: String

  @OptionGroup var denoise: DenoiseOptions

  func validate() throws {
    guard FolderWork.isFolder(folder) else { throw ValidationError("There is no folder \(folder).") }
    var (source, target) = (stat(), stat())
    if unsafe stat(folder, &source) == 0, unsafe stat(to, &target) == 0 {
      guard target.st_mode & S_IFMT == S_IFDIR else { throw ValidationError("\(to) is not a folder.") }
      guard source.st_ino != target.st_ino || source.st_dev != target.st_dev else {
        throw ValidationError("The results would replace their sources: name another folder with --to.")
      }
    }
  }

  func run() throws {
    try ProgressDisplay.run(denoise.options.progress) { _ in
      try denoise.work(on: [folder], folder: to).watch()
      return nil
    }
  }
}
