import ArgumentParser
import Dispatch
import Processing

struct Stillwave: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stillwave",
    abstract: "Shows recordings as waveforms and removes their noise, as a service or file by file.",
    version: "0.1.0",
    subcommands: [
      ServeCommand.self, WaveformCommand.self, DenoiseCommand.self, NoiseRegionsCommand.self, WorkerCommand.self,
      RunFencedCommand.self, BackupCommand.self, RestoreCommand.self, CheckCommand.self,
    ])
}

/// Where the program begins. Not ArgumentParser's own beginning, which is asynchronous and so starts threads before a
/// command runs: a worker fences itself in while it has one thread, as each keeps the rights that it began with.
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
      // It keeps secrets, and everything that strangers have sent.
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
