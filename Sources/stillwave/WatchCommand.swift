import ArgumentParser
import Glibc

struct WatchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Removes the noise from each file that comes into a folder.",
    discussion: """
      Works until it is ended (Ctrl-C, SIGTERM). A file has come when it hasn't changed for a second. Results have the \
      names of their sources. A file whose result is there already, and not older, is skipped; one that has changed \
      since is cleaned again, and so is one that failed once it has changed. Hidden files and folders are left alone. If \
      a file fails, the reason is written to standard error, and to --manifest.
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
