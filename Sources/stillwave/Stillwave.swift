import ArgumentParser
import CVersion
import Dispatch
import Processing

struct Stillwave: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stillwave",
    abstract: "Draws waveforms of recordings and removes their noise, as a service or file by file.",
    version: version,
    subcommands: [
      ServeCommand.self, WaveformCommand.self, SpectrogramCommand.self, DenoiseCommand.self, WatchCommand.self,
      NoiseRegionsCommand.self, NoiseProfileCommand.self, LabelsCommand.self, WorkerCommand.self,
      WorkerTemplateCommand.self, ReaderCommand.self, RunFencedCommand.self,
      BackupCommand.self, RestoreCommand.self, CheckCommand.self, MoveCommand.self, KeysCommand.self,
    ])

  private static var version: String {
    let commit = unsafe String(cString: stillwave_commit())
    return "0.1.0" + (commit.isEmpty ? "" : " (\(commit))")
  }
}

/// The program's entry point. ArgumentParser's own is asynchronous and starts threads before a command runs, but a
/// worker must fence itself in while it has a single thread, because each thread keeps the rights it started with.
@main
enum Program {
  static func main() {
    StandardStreams.fillClosed()
    do {
      var command = try Stillwave.parseAsRoot()
      guard let service = command as? ServeCommand else {
        StandardStreams.ignoreBrokenPipes()
        return try command.run()
      }
      // The service holds secrets and everything that strangers have sent.
      OwnProcess.closeToOthers()
      Task {
        do {
          try await service.run()
          Stillwave.exit()
        } catch {
          Stillwave.exit(withError: error)
        }
      }
      dispatchMain()
    } catch {
      Stillwave.exit(withError: error)
    }
  }
}
