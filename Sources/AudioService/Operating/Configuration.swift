import AudioIO
import HTTP
import Storage
import Webhooks

/// Every setting of the service, with its default. `stillwave serve --help` lists them.
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
  /// Where recordings, jobs and the catalogue live.
  package var dataDirectory = "stillwave-data"
  /// Bytes of one upload at the most, default 8 GiB.
  package var maximumUploadBytes: Int64 = 8 << 30
  /// Bytes of disk that uploads leave free, and jobs half of it; default 256 MiB.
  package var reservedDiskBytes: Int64 = 256 << 20
  /// Seconds without a byte after which an upload in pieces is given up; a finished one is remembered as long.
  package var uploadExpirySeconds = 86_400.0
  /// Uploads in pieces that may be unfinished at a time; past that new ones get 429.
  package var maximumOpenUploads = 1000
  /// Of these, those of one client.
  package var maximumOpenUploadsPerClient = 50
  /// Seconds after which a resumable upload without a byte expires, at most `uploadExpirySeconds`.
  package var emptyUploadExpirySeconds = 3600.0
  /// How often a resumable upload is made durable: after this many bytes, or this many seconds. A crash loses at most
  /// about this much, and the client sends it again.
  var uploadCheckpointBytes: Int64 = 16 << 20
  var uploadCheckpointSeconds = 5.0
  /// What a recording may be at the most.
  package var audioLimits = AudioLimits()
  /// Children that run at once; default one per core.
  package var workerCount = 2
  /// Jobs that may wait; past that uploads and denoise requests get 429.
  package var maximumQueuedJobs = 1000
  /// Of these, those of one client.
  package var maximumQueuedJobsPerClient = 100
  /// Uploads that may wait to be looked at, in each of the two lanes; past that they get 503.
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
  /// Memory of one child at the most, in bytes, files that it maps aside; default 1 GiB.
  package var workerMemoryBytes: Int64 = 1 << 30
  /// Seconds after which a child that tells no progress is ended; default ten minutes.
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
  /// Bytes that conversions made for downloads may take together, default 10 GiB; those asked for longest ago go first.
  package var maximumConversionBytes: Int64 = 10 << 30
  /// Seconds that a request waits for a conversion.
  var conversionWaitSeconds = 10.0
  /// Seconds after which a recording is deleted; by default never.
  package var maximumAgeSeconds: Double?
  /// How webhooks are signed, and where they may go.
  package var webhooks = WebhookSettings()
  /// Called when a finished job has found its recording and is about to add files to it, where tests delete it.
  var willAddFiles: @Sendable (JobID) -> Void = { _ in }
  /// Limits of the HTTP server.
  package var httpLimits = HTTPLimits()

  /// All defaults.
  package init() {}
}
