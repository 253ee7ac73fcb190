import AudioIO
import Glibc
import HTTP
import Logging
import Storage
import Webhooks

/// Every setting of the service, with its default. A row of Setting+Table.swift makes one a flag and a variable.
package struct Configuration: Sendable {
  /// Address to listen on. Loopback by default: the service has no password of its own.
  package var host = "127.0.0.1"
  /// 0 lets the system choose.
  package var port: UInt16 = 8080
  /// Names that requests may be sent to, besides IP addresses and the loopback names; any other is refused, whatever
  /// address the service listens on.
  package var allowedHosts: Set<String> = []
  /// Pages of these origins may use the service from a browser; none by default.
  package var corsOrigins = AllowedOrigins.only([])
  /// The path that clients reach the service under, where a proxy serves it below its root. Absolute paths in fields
  /// get it from `BasePathResponder`; whatever writes one into a body takes it from `basePath.absolute(_:)`.
  package var basePath = BasePath.root
  /// Folder of the recordings and the catalog.
  package var dataDirectory = "stillwave-data"
  /// Maximum size of an upload.
  package var maximumUploadBytes: Int64 = 8 << 30
  /// Disk space that uploads leave free, and jobs half of it.
  package var reservedDiskBytes: Int64 = 256 << 20
  /// Time without a byte after which a resumable upload expires; a finished one is remembered as long.
  package var uploadExpirySeconds = 86_400.0
  /// Resumable uploads that may be unfinished at once; past that, new ones get 429.
  package var maximumOpenUploads = 1000
  /// Of these, those of one client.
  package var maximumOpenUploadsPerClient = 50
  /// Time after which a resumable upload without a byte expires, at most `uploadExpirySeconds`.
  package var emptyUploadExpirySeconds = 3600.0
  /// How often a resumable upload is made durable: after this many bytes, or this many seconds. A crash loses at most
  /// about this much, and the client sends it again.
  var uploadCheckpointBytes: Int64 = 16 << 20
  var uploadCheckpointSeconds = 5.0
  /// The limits of a recording.
  package var audioLimits = AudioLimits()
  /// Jobs that run at once; one per core by default.
  package var workerCount = sysconf(Int32(_SC_NPROCESSORS_ONLN))
  /// Jobs that may wait; past that, uploads and denoise requests get 429.
  package var maximumQueuedJobs = 1000
  /// Of these, those of one client.
  package var maximumQueuedJobsPerClient = 100
  /// Uploads that may wait to be checked, in each of the two lanes; past that, they get 503.
  package var maximumWaitingProbes = 500
  /// Of these, those of one client; past that it gets 429.
  package var maximumWaitingProbesPerClient = 50
  /// Previews and spectra that may wait; past that they get 503.
  package var maximumWaitingPreviews = 64
  /// Of these, those of one client; past that it gets 429.
  package var maximumWaitingPreviewsPerClient = 8
  /// Pictures and long slices that may wait to be drawn or written; past that they get 503.
  package var maximumWaitingPictures = 512
  /// Of these, those of one client; past that it gets 429.
  package var maximumWaitingPicturesPerClient = 64
  /// Proxies whose word (`X-Forwarded-For`) counts as to who asks; none by default.
  package var trustedProxies: [Network] = []
  /// Times a job is begun before it is given up.
  package var maximumAttempts = 3
  /// Half of the pause before a job's second attempt, in seconds; each further pause is twice as long.
  var retryPauseSeconds = 0.25
  /// Seconds without news after which a stream of events says that it is still there.
  var heartbeatSeconds = 15.0
  /// Memory that a child may use, not counting files that it maps.
  package var workerMemoryBytes: Int64 = 1 << 30
  /// Time without progress after which a child is ended.
  package var stallSeconds = 600.0
  /// A job may take so many times the processor time it is allowed.
  var jobSecondsPerProcessorSecond = 10.0
  /// Multiplies the time that the child of a probe or a preview may take, where tests hold one.
  var childPatience = 1.0
  /// Seconds that running requests get to finish after SIGTERM.
  package var gracePeriodSeconds = 10.0
  /// The program that children run: this one.
  package var program = "/proc/self/exe"
  /// The ffmpeg that workers read m4a, mp4, webm and others with: a path, or a name to be looked for on PATH.
  package var ffmpeg = "ffmpeg"
  /// Disk space for conversions made for downloads; the least recently used go first.
  package var maximumConversionBytes: Int64 = 10 << 30
  /// Seconds that a request waits for a conversion.
  var conversionWaitSeconds = 10.0
  /// Seconds after which a recording is deleted; by default never.
  package var maximumAgeSeconds: Double?
  /// How webhooks are signed, and where they may go.
  package var webhooks = WebhookSettings()
  /// Called when a finished job has found its recording and is about to add files to it, where tests delete it.
  var willAddFiles: @Sendable (JobID) -> Void = { _ in }
  /// What is logged from this level on.
  package var logLevel = Logger.Level.info
  /// Limits of the HTTP server.
  package var httpLimits = HTTPLimits()

  /// All defaults.
  package init() {}
}
