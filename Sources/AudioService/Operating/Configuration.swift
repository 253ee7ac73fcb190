import Glibc
import HTTP
import Jobs
import Logging
import Storage
import Terms
import Webhooks
import Workers

/// What the service is configured with. The properties that operators need are settings: a row of Setting+Table.swift
/// adds the flag and the variable. The others are for tests.
package struct Configuration: Sendable {
  /// Address to listen on. Loopback by default, because without keys the service is open to everyone who can reach it.
  package var host = "127.0.0.1"
  /// 0 lets the system choose.
  package var port: UInt16 = 8080
  /// Names that requests may be addressed to, besides IP addresses and the loopback names. Requests to any other name
  /// are refused, whatever address the service listens on.
  package var allowedHosts: Set<String> = []
  /// Origins whose pages may use the service from a browser; none by default.
  package var corsOrigins = AllowedOrigins.only([])
  /// Origins whose pages may show `/embed` in a frame; none by default.
  package var embedOrigins = AllowedOrigins.only([])
  /// Which caches may keep responses that never change.
  package var cacheScope = CacheScope.private
  /// The path under which a proxy serves the service, if that isn't the root. `BasePathResponder` adds it to absolute
  /// paths in fields; code that writes such a path into a body must call `basePath.absolute(_:)`.
  package var basePath = BasePath.root
  /// The folder that holds the recordings and the catalog.
  package var dataDirectory = "stillwave-data"
  /// How the service shares its work with others; by default not at all.
  package var cluster = ClusterSettings()
  /// Maximum size of an upload.
  package var maximumUploadBytes: Int64 = 8 << 30
  /// Disk space that uploads leave free; jobs leave half as much.
  package var reservedDiskBytes: Int64 = 256 << 20
  /// The file of keys; without one, everything is open to everyone who can reach the service.
  package var keysPath: String?
  /// The file of secrets that sign tokens; by default, the service makes one and keeps it in the data folder.
  package var tokenSecretPath: String?
  /// Whether metrics have figures for each tenant.
  package var metricsTenants = false
  /// The audit log; by default none.
  package var auditLogPath: String?
  /// The service that is asked before an upload is accepted; by default none.
  package var hookURL: String?
  /// Seconds that it has to answer.
  package var hookTimeoutSeconds = 5.0
  /// The operators' own port: an address and a port. Without one, a service with keys uses `defaultAdminAddress` if it
  /// is free.
  package var adminAddress: ListeningAddress?
  /// The operators' port of a service with keys.
  package static let defaultAdminAddress = ListeningAddress(host: "127.0.0.1", port: 8081)
  /// The limits of tenants whose keys name none; only with keys.
  package var tenantLimits = TenantLimits()
  /// Time without data after which a resumable upload expires. A finished one is remembered for the same time.
  package var uploadExpirySeconds = 86_400.0
  /// Maximum number of unfinished resumable uploads; beyond that, new ones get 429.
  package var maximumOpenUploads = 1000
  /// Maximum number of unfinished resumable uploads of one client.
  package var maximumOpenUploadsPerClient = 50
  /// Time after which a resumable upload without any data expires; at most `uploadExpirySeconds`.
  package var emptyUploadExpirySeconds = 3600.0
  /// How often a resumable upload is made durable: after this many bytes or this many seconds. A crash loses about this
  /// much at most, and the client sends it again.
  var uploadCheckpointBytes: Int64 = 16 << 20
  var uploadCheckpointSeconds = 5.0
  /// The limits of a recording.
  package var audioLimits = AudioLimits()
  /// Number of jobs that run at the same time; by default one per core.
  package var workerCount = sysconf(Int32(_SC_NPROCESSORS_ONLN))
  /// Maximum number of waiting jobs; beyond that, uploads and denoise requests get 429.
  package var maximumQueuedJobs = 1000
  /// Maximum number of waiting jobs of one client.
  package var maximumQueuedJobsPerClient = 100
  /// Maximum number of uploads that wait to be probed, in each of the two lanes; beyond that, uploads get 503.
  package var maximumWaitingProbes = 500
  /// Maximum number of uploads of one client that wait to be probed; beyond that, it gets 429.
  package var maximumWaitingProbesPerClient = 50
  /// Maximum number of waiting previews and spectra; beyond that, requests get 503.
  package var maximumWaitingPreviews = 64
  /// Maximum number of waiting previews and spectra of one client; beyond that, it gets 429.
  package var maximumWaitingPreviewsPerClient = 8
  /// Maximum number of parts of recordings that may be on their way at once; beyond that, requests get 503.
  package var maximumOpenParts = 128
  /// Maximum number of parts on their way to one client; beyond that, it gets 429.
  package var maximumOpenPartsPerClient = 32
  /// Maximum number of waiting pictures, long slices and windows of samples; beyond that, requests get 503.
  package var maximumWaitingPictures = 512
  /// Maximum number of waiting pictures, slices and windows of one client; beyond that, it gets 429.
  package var maximumWaitingPicturesPerClient = 64
  /// Proxies that are trusted to name the client (`X-Forwarded-For`); none by default.
  package var trustedProxies: [Network] = []
  /// Number of attempts before a job fails for good.
  package var maximumAttempts = 3
  /// Half of the pause before a job's second attempt, in seconds; each further pause is twice as long.
  var retryPauseSeconds = 0.25
  /// The first pause of a job that the store of media has failed, in seconds.
  var storePauseSeconds = 5.0
  /// Maximum number of event streams of the list (`GET /v1/events`) open at once; beyond that, requests get 503.
  package var maximumEventStreams = 1000
  /// Maximum number of event streams of one client; beyond that, it gets 429.
  package var maximumEventStreamsPerClient = 50
  /// Seconds without an event after which an event stream sends a comment to show that it's alive.
  var heartbeatSeconds = 15.0
  /// Memory that a child may use, not counting files that it maps.
  package var workerMemoryBytes: Int64 = 1 << 30
  /// Time without progress after which a child is killed.
  package var stallSeconds = 600.0
  /// A job's maximum running time, as a multiple of the processor time it's allowed.
  var jobSecondsPerProcessorSecond = 10.0
  /// Multiplies the time limit of the children of probes and previews, for tests that delay one.
  var childPatience = 1.0
  /// Seconds that running requests have to finish after SIGTERM.
  package var gracePeriodSeconds = 10.0
  /// How long a stop may take in all: the time to drain, that for requests, and some for closing the catalog.
  package var stopSeconds: Double { cluster.drainSeconds + gracePeriodSeconds + 3 }
  /// The program that children run; by default this one.
  package var program = "/proc/self/exe"
  /// The process that becomes workers; without one, each worker starts the program.
  package var workerTemplate: WorkerTemplate?
  /// Whether the waveform of a short upload is built together with its probe, before the response.
  package var takesInShortUploads = false
  /// The ffmpeg that workers use to read m4a, mp4, webm, and others: a path, or a name to look up on PATH.
  package var ffmpeg = "ffmpeg"
  /// The file of weights of the method `voice`, which may be missing.
  package var voice = VoiceFile.usualPath
  /// Disk space for conversions made for downloads; the least recently used go first.
  package var maximumConversionBytes: Int64 = 10 << 30
  /// Seconds that a request waits for a conversion.
  var conversionWaitSeconds = 10.0
  /// Seconds after which a recording is deleted; by default never.
  package var maximumAgeSeconds: Double?
  /// Seconds after which recordings of single tenants are deleted, instead of `maximumAgeSeconds`.
  package var tenantMaximumAges: [Tenant: Double] = [:]
  /// Seconds in which each recording's file is compared with its SHA-256 once; nil for never.
  package var scrubSeconds: Double? = 30 * 86_400
  /// How webhooks are signed and where they may be sent.
  package var webhooks = WebhookSettings()
  /// What the service waits, expires, retries and measures by; tests move it.
  package var clock = Clock.system
  /// Called when a finished job has found its recording and is about to add files to it; tests delete the recording
  /// here.
  var willAddFiles: @Sendable (JobID) -> Void = { _ in }
  /// The lowest level that is logged.
  package var logLevel = Logger.Level.info
  /// Limits of the HTTP server.
  package var httpLimits = HTTPLimits()

  /// All defaults.
  package init() {}
}

/// An address and a port to listen on.
package struct ListeningAddress: Sendable, Equatable {
  /// A name or an address of this machine.
  package var host: String
  /// 0 lets the system choose.
  package var port: UInt16

  /// Creates an address from its parts.
  package init(host: String, port: UInt16) { (self.host, self.port) = (host, port) }

  /// Parses `HOST:PORT`, with an IPv6 address in brackets.
  init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else { return nil }
    let host = text[..<colon]
    // `::1` of `[::1]`.
    self.host = String(host.hasPrefix("[") && host.hasSuffix("]") ? host.dropFirst().dropLast() : host)
    self.port = port
  }
}
