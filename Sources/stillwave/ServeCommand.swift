import ArgumentParser
import AudioService
import Dispatch
import Glibc
import Jobs
import Logging
import Processing
import Synchronization
import Terms
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

  // One group per case of Setting.Group, in their order.
  @OptionGroup(title: Setting.Group.main.rawValue) var main: SettingFlags<Group.Main>
  @OptionGroup(title: Setting.Group.access.rawValue) var access: SettingFlags<Group.Access>
  @OptionGroup(title: Setting.Group.http.rawValue) var http: SettingFlags<Group.HTTP>
  @OptionGroup(title: Setting.Group.limits.rawValue) var limits: SettingFlags<Group.Limits>
  @OptionGroup(title: Setting.Group.disk.rawValue) var disk: SettingFlags<Group.Disk>
  @OptionGroup(title: Setting.Group.webhooks.rawValue) var webhooks: SettingFlags<Group.Webhooks>
  @OptionGroup(title: Setting.Group.cluster.rawValue) var cluster: SettingFlags<Group.Cluster>
  @OptionGroup(title: Setting.Group.bucket.rawValue) var bucket: SettingFlags<Group.Bucket>

  private var flags: [String: String] {
    [
      main.given, access.given, http.given, limits.given, disk.given, webhooks.given, cluster.given, bucket.given,
    ].reduce(into: [:]) { $0.merge($1) { $1 } }
  }

  func run() async throws {
    OwnProcess.keepDescriptors()
    var configuration = try configuration()
    LoggingSystem.bootstrap { label in JSONLogHandler(label: label) }
    JSONLogHandler.finishAtCrash()
    var logger = Logger(label: "stillwave")
    logger.logLevel = configuration.logLevel
    // Makes a write beyond the file size limit fail instead of ending the service.
    _ = signal(SIGXFSZ, SIG_IGN)
    // Only the owner can read recordings, even if others use the machine. Workers inherit this.
    umask(0o077)
    // Before there are children.
    _ = WorkerGroups.own
    configuration.workerTemplate = WorkerTemplate(program: configuration.program)
    configuration.takesInShortUploads = true
    let termination = Termination(
      patienceSeconds: configuration.stopSeconds, logger: logger)
    // SIGHUP would end the process otherwise.
    _ = signal(SIGHUP, SIG_IGN)
    let service: Service
    do {
      let isThere = try await Service.waitForCatalog(configuration, logger: logger) { seconds in
        await !termination.hasCome(within: seconds)
      }
      guard isThere else { return JSONLogHandler.flush(within: 1) }
      service = try Service(configuration, logger: logger, logRequest: JSONLogHandler.request)
      let address = try service.start()
      writeAll(Array("Stillwave listens on http://\(address)\n".utf8), to: STDOUT_FILENO)
    } catch {
      logger.critical("could not start", metadata: ["error": "\(Service.words(forFailedStart: error))"])
      JSONLogHandler.flush(within: 1)
      throw ExitCode.failure
    }
    let hangUp = DispatchSource.makeSignalSource(signal: SIGHUP, queue: DispatchQueue(label: "hang-up"))
    hangUp.setEventHandler { service.reload() }
    hangUp.resume()
    await termination.wait()
    await service.drain()
    await service.stop()
    JSONLogHandler.flush(within: 1)
    // Not exit(3), whose handlers would take apart what unfinished background work still uses.
    withExtendedLifetime((service, hangUp)) { _exit(EXIT_SUCCESS) }
  }

  private func configuration() throws -> Configuration {
    // Children read untrusted files and inherit the environment. Until they execute their program, they also share its
    // initial bytes.
    defer {
      OwnProcess.eraseVariable("STILLWAVE_WEBHOOK_SECRET")
      OwnProcess.eraseVariable("STILLWAVE_CATALOG")
      for name in BucketSettings.secretVariables { OwnProcess.eraseVariable(name) }
      // Refused, but it was given.
      OwnProcess.eraseArgument("--webhook-secret")
    }
    do throws(SettingError) {
      return try Configuration(flags: flags, variable: environmentVariable)
    } catch {
      throw ValidationError(error.description)
    }
  }
}

/// Handles SIGTERM and SIGINT from its creation on, so that a service that has printed its address can be stopped. Ends
/// the process itself if that takes longer than `patienceSeconds`: a worker that can't be killed, or a thread that
/// never returns from the catalog, must not keep it alive.
private struct Termination {
  private final class Arrival: Sendable {
    let hasCome = Atomic(false)
  }

  private let signals: AsyncStream<Int32>
  private let arrival = Arrival()
  private let sources: [any DispatchSourceSignal]

  init(patienceSeconds: Double, logger: Logger) {
    let (signals, continuation) = AsyncStream<Int32>.makeStream()
    // Serial, so that it gets a thread even when blocked work has taken all threads of shared queues.
    let queue = DispatchQueue(label: "termination")
    self.signals = signals
    sources = [SIGTERM, SIGINT].map { [arrival] number in
      _ = signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler {
        arrival.hasCome.store(true, ordering: .relaxed)
        continuation.yield(number)
        Clock.system.after(patienceSeconds, on: queue) {
          logger.critical("the service did not stop in time", metadata: ["seconds": "\(Int(patienceSeconds))"])
          JSONLogHandler.flush(within: 1)
          _exit(EXIT_FAILURE)
        }
      }
      source.resume()
      return source
    }
  }

  /// Whether a signal has arrived, which may still take some seconds.
  func hasCome(within seconds: Double) async -> Bool {
    let (clock, end) = (Clock.system, Clock.system.instant(after: seconds))
    while !arrival.hasCome.load(ordering: .relaxed), clock.now < end { try? await clock.sleep(0.1) }
    return arrival.hasCome.load(ordering: .relaxed)
  }

  /// Returns once a signal has arrived.
  func wait() async {
    for await _ in signals { break }
    withExtendedLifetime(sources) {}
  }
}
