import ArgumentParser
import AudioService
import Dispatch
import Glibc
import Logging
import Processing
import Webhooks

/// Every setting is a flag and an environment variable; the flag wins.
struct ServeCommand: AsyncParsableCommand, Sendable {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Runs the service.",
    discussion: """
      Every setting can also be given as an environment variable: --data as STILLWAVE_DATA, --max-upload-bytes as \
      STILLWAVE_MAX_UPLOAD_BYTES. The flag wins.
      """)

  @OptionGroup var service: SettingFlags<ServiceSettings>

  @OptionGroup(title: "HTTP") var http: SettingFlags<HTTPSettings>

  func run() async throws {
    OwnProcess.keepDescriptors()
    let configuration = try configuration()
    LoggingSystem.bootstrap { label in JSONLogHandler(label: label) }
    var logger = Logger(label: "stillwave")
    logger.logLevel = configuration.logLevel
    // A file that may not grow any more is an error of the write, not the end of the service.
    _ = signal(SIGXFSZ, SIG_IGN)
    // Recordings are their owner's alone, whoever else is on the machine; workers inherit it.
    umask(0o077)
    let termination = Termination()
    let service: Service
    do {
      service = try Service(configuration, logger: logger)
      let address = try service.start()
      writeAll(Array("Stillwave listens on http://\(address)\n".utf8), to: STDOUT_FILENO)
    } catch {
      logger.critical("could not start", metadata: ["error": "\(Service.words(forFailedStart: error))"])
      JSONLogHandler.flush(within: 1)
      throw ExitCode.failure
    }
    await termination.wait()
    await service.stop()
    JSONLogHandler.flush(within: 1)
  }

  private func configuration() throws -> Configuration {
    // Children, which read strangers' files, inherit the environment; and they share its first bytes until they are
    // started.
    defer {
      OwnProcess.eraseVariable("STILLWAVE_WEBHOOK_SECRET")
      OwnProcess.eraseArgument("--webhook-secret")
    }
    do throws(SettingError) {
      return try Configuration(flags: service.given.merging(http.given) { $1 }, variable: environmentVariable)
    } catch {
      throw ValidationError(error.description)
    }
  }
}

/// SIGTERM and SIGINT, from the moment that this is made: a service that has said where it listens can be stopped.
private struct Termination {
  private let signals: AsyncStream<Int32>
  private let sources: [any DispatchSourceSignal]

  init() {
    let (signals, continuation) = AsyncStream<Int32>.makeStream()
    let queue = DispatchQueue(label: "termination")
    self.signals = signals
    sources = [SIGTERM, SIGINT].map { number in
      _ = signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler { continuation.yield(number) }
      source.resume()
      return source
    }
  }

  /// Returns when one has come.
  func wait() async {
    for await _ in signals { break }
    withExtendedLifetime(sources) {}
  }
}
