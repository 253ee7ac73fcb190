import ArgumentParser
import AudioIO
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

  @Option(help: ArgumentHelp("Address and port; port 0 lets the system choose.", valueName: "HOST:PORT"))
  var listen: String?

  @Option(help: ArgumentHelp("Where recordings and the catalogue live.", valueName: "DIR"))
  var data: String?

  @Option(help: "Children that run at once; by default one per core.")
  var workers: Int?

  @Option(help: "Bytes of one upload at the most; by default 8 GiB.")
  var maxUploadBytes: Int64?

  @Option(help: "Seconds without a byte after which a resumable upload is given up; by default 24 hours.")
  var uploadExpiry: Double?

  @Option(help: "The same for one of which no byte has come; by default an hour, at most --upload-expiry.")
  var emptyUploadExpiry: Double?

  @Option(help: "Resumable uploads that may be unfinished at a time; by default 1000.")
  var maxOpenUploads: Int?

  @Option(help: "Of these, those of one client, past which it gets 429; by default 50.")
  var maxOpenUploadsPerClient: Int?

  @Option(help: "Seconds of sound of one recording at the most; by default 24 hours.")
  var maxDuration: Double?

  @Option(help: "Channels of one recording at the most; by default 32.")
  var maxChannels: Int?

  @Option(help: "Sample rate of one recording at the most, in hertz; by default 768000.")
  var maxSampleRate: Int?

  @Option(help: "Bytes of disk that uploads leave free, and jobs half of it; by default 256 MiB.")
  var reserveBytes: Int64?

  @Option(help: "Jobs that may wait; by default 1000.")
  var maxQueuedJobs: Int?

  @Option(help: "Of these, those of one client, past which it gets 429; by default 100.")
  var maxQueuedJobsPerClient: Int?

  @Option(help: "Uploads that may wait to be looked at; by default 500.")
  var maxWaitingProbes: Int?

  @Option(help: "Of these, those of one client, past which it gets 429; by default 50.")
  var maxWaitingProbesPerClient: Int?

  @Option(help: "Previews and spectra that may wait; by default 64.")
  var maxWaitingPreviews: Int?

  @Option(help: "Of these, those of one client, past which it gets 429; by default 8.")
  var maxWaitingPreviewsPerClient: Int?

  @Option(help: "Pictures and long slices that may wait; by default 512.")
  var maxWaitingPictures: Int?

  @Option(help: "Of these, those of one client, past which it gets 429; by default 64.")
  var maxWaitingPicturesPerClient: Int?

  @Option(help: "Seconds after which a recording is deleted, unless a job works on it; by default 0, never.")
  var maxAge: Double?

  @Option(help: "Bytes of memory that a job's process may use; by default 1 GiB.")
  var workerMemoryBytes: Int64?

  @Option(help: "Bytes that conversions made for downloads may take together; by default 10 GiB.")
  var maxConversionBytes: Int64?

  @Option(
    help: ArgumentHelp(
      "The ffmpeg that reads m4a, mp4, webm and others: a path, or a name on PATH; by default ffmpeg.",
      valueName: "PATH"))
  var ffmpeg: String?

  @Option(help: "Seconds after which a job that gets no further is ended and begun again; by default 600.")
  var stallTimeout: Double?

  @Option(help: "Seconds that running requests get to finish after SIGTERM; by default 10.")
  var gracePeriod: Double?

  @Option(
    help: ArgumentHelp(
      "Signs webhooks, 16 characters or more; without it none are sent. Better as the variable: others see flags.",
      valueName: "TEXT"))
  var webhookSecret: String?

  @Option(
    help: ArgumentHelp(
      "Private networks, by comma, that webhooks may go to, for example 10.0.0.0/8,fd00::/8; by default none.",
      valueName: "NETWORKS"))
  var webhookNetworks: String?

  @Option(
    help: ArgumentHelp(
      "Certificates (PEM) of the authorities that webhooks over https trust; by default the system's.",
      valueName: "FILE"))
  var webhookCa: String?

  @Option(help: "trace, debug, info, notice, warning, error or critical; by default info.")
  var logLevel: String?

  @OptionGroup(title: "HTTP")
  var http: HTTPOptions

  func run() async throws {
    OwnProcess.keepDescriptors()
    let configuration = try settings()
    let level = try setting("log-level", logLevel, default: "info")
    guard let logLevel = Logger.Level(rawValue: level) else { throw ValidationError("--log-level has no “\(level)”.") }
    LoggingSystem.bootstrap { label in JSONLogHandler(label: label) }
    var logger = Logger(label: "stillwave")
    logger.logLevel = logLevel
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

  private func settings() throws -> Configuration {
    var settings = Configuration()
    let address = try setting("listen", listen, default: "127.0.0.1:8080")
    guard let colon = address.lastIndex(of: ":"), let port = UInt16(address[address.index(after: colon)...]) else {
      throw ValidationError("--listen is HOST:PORT, for example 127.0.0.1:8080; it was “\(address)”.")
    }
    settings.host = String(address[..<colon]).trimmingBrackets
    settings.port = port
    settings.allowedHosts = try http.hosts()
    settings.corsOrigins = try http.origins()
    settings.httpLimits = try http.limits()
    settings.trustedProxies = try http.proxies()
    settings.basePath = try http.base()
    settings.dataDirectory = try setting("data", data, default: settings.dataDirectory)
    settings.workerCount = try positive("workers", workers, default: sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    settings.maximumUploadBytes = try positive("max-upload-bytes", maxUploadBytes, default: settings.maximumUploadBytes)
    settings.uploadExpirySeconds = try positive("upload-expiry", uploadExpiry, default: settings.uploadExpirySeconds)
    settings.emptyUploadExpirySeconds = try positive(
      "empty-upload-expiry", emptyUploadExpiry, default: settings.emptyUploadExpirySeconds)
    try setClientLimits(&settings)
    settings.audioLimits.durationSeconds = try positive(
      "max-duration", maxDuration, default: settings.audioLimits.durationSeconds)
    settings.audioLimits.channels = try positive("max-channels", maxChannels, default: settings.audioLimits.channels)
    let rate = try positive("max-sample-rate", maxSampleRate, default: settings.audioLimits.sampleRates.upperBound)
    settings.audioLimits.sampleRates = 1...rate
    settings.reservedDiskBytes = try positive("reserve-bytes", reserveBytes, default: settings.reservedDiskBytes)
    settings.workerMemoryBytes = try positive(
      "worker-memory-bytes", workerMemoryBytes, default: settings.workerMemoryBytes)
    settings.maximumConversionBytes = try positive(
      "max-conversion-bytes", maxConversionBytes, default: settings.maximumConversionBytes)
    settings.ffmpeg = try setting("ffmpeg", ffmpeg, default: settings.ffmpeg)
    settings.stallSeconds = try positive("stall-timeout", stallTimeout, default: settings.stallSeconds)
    settings.gracePeriodSeconds = try positive("grace-period", gracePeriod, default: settings.gracePeriodSeconds)
    settings.maximumAgeSeconds = try age()
    settings.webhooks.secret = try secret()
    settings.webhooks.networks = try list("webhook-networks", webhookNetworks).map { text in
      guard let network = Network(text) else {
        throw ValidationError("--webhook-networks takes networks such as 10.0.0.0/8; “\(text)” is none.")
      }
      return network
    }
    settings.webhooks.authorities = try authorities()
    return settings
  }

  /// What all clients together may have, and each of them.
  private func setClientLimits(_ settings: inout Configuration) throws {
    settings.maximumOpenUploads = try positive("max-open-uploads", maxOpenUploads, default: settings.maximumOpenUploads)
    settings.maximumOpenUploadsPerClient = try positive(
      "max-open-uploads-per-client", maxOpenUploadsPerClient, default: settings.maximumOpenUploadsPerClient)
    settings.maximumQueuedJobs = try positive("max-queued-jobs", maxQueuedJobs, default: settings.maximumQueuedJobs)
    settings.maximumQueuedJobsPerClient = try positive(
      "max-queued-jobs-per-client", maxQueuedJobsPerClient, default: settings.maximumQueuedJobsPerClient)
    settings.maximumWaitingProbes = try positive(
      "max-waiting-probes", maxWaitingProbes, default: settings.maximumWaitingProbes)
    settings.maximumWaitingProbesPerClient = try positive(
      "max-waiting-probes-per-client", maxWaitingProbesPerClient, default: settings.maximumWaitingProbesPerClient)
    settings.maximumWaitingPreviews = try positive(
      "max-waiting-previews", maxWaitingPreviews, default: settings.maximumWaitingPreviews)
    settings.maximumWaitingPreviewsPerClient = try positive(
      "max-waiting-previews-per-client", maxWaitingPreviewsPerClient,
      default: settings.maximumWaitingPreviewsPerClient)
    settings.maximumWaitingPictures = try positive(
      "max-waiting-pictures", maxWaitingPictures, default: settings.maximumWaitingPictures)
    settings.maximumWaitingPicturesPerClient = try positive(
      "max-waiting-pictures-per-client", maxWaitingPicturesPerClient,
      default: settings.maximumWaitingPicturesPerClient)
  }

  private func authorities() throws -> String? {
    let path = try setting("webhook-ca", webhookCa, default: "")
    guard !path.isEmpty else { return nil }
    guard unsafe access(path, R_OK) == 0 else { throw ValidationError("--webhook-ca: “\(path)” can't be read.") }
    return path
  }

  private func age() throws -> Double? {
    let age: Double = try setting("max-age", maxAge, default: 0)
    guard age >= 0, age <= 315_360_000 else {
      throw ValidationError("--max-age must be 0, for never, or at most 315360000; it was \(age).")
    }
    return age > 0 ? age : nil
  }

  private func secret() throws -> WebhookSecret? {
    let text = try setting("webhook-secret", webhookSecret, default: "")
    // Children, which read strangers' files, inherit the environment; and they share its first bytes until they are
    // started.
    OwnProcess.eraseVariable("STILLWAVE_WEBHOOK_SECRET")
    OwnProcess.eraseArgument("--webhook-secret")
    guard !text.isEmpty else { return nil }
    guard let secret = WebhookSecret(text) else {
      throw ValidationError("--webhook-secret must have at least \(WebhookSecret.leastBytes) characters.")
    }
    guard WebhookSecret.canBeUsed else {
      throw ValidationError("--webhook-secret turns on webhooks, which need libcurl: install the package libcurl4.")
    }
    return secret
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

extension String {
  /// `::1` of `[::1]`.
  fileprivate var trimmingBrackets: String {
    hasPrefix("[") && hasSuffix("]") ? String(dropFirst().dropLast()) : self
  }
}
