import ArgumentParser

@main
struct Stillwave: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stillwave",
    abstract: "Shows recordings as waveforms and removes their noise, as a service or file by file.",
    version: "0.1.0",
    subcommands: [
      ServeCommand.self, WaveformCommand.self, DenoiseCommand.self, NoiseRegionsCommand.self, ProbeCommand.self,
      SpectrumCommand.self,
    ])
}
