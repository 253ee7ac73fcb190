import Storage
import Terms
import Workers

/// How workers are started, and the limits on what they use.
package struct WorkerSettings: Sendable {
  /// The path of the program that children run.
  package var program: String
  /// The process that becomes workers; nil if each starts the program.
  package var template: WorkerTemplate?
  /// The ffmpeg that workers use: a path, or a name to look up on PATH.
  package var ffmpeg: String
  /// The file of weights of the method `voice`, which may be missing.
  package var voice: String
  /// The limits on a recording.
  package var audioLimits: AudioLimits
  /// The maximum memory of one child in bytes, not counting mapped files.
  package var memoryBytes: Int64

  /// Creates settings.
  package init(
    program: String, template: WorkerTemplate? = nil, ffmpeg: String, voice: String = VoiceFile.usualPath,
    audioLimits: AudioLimits, memoryBytes: Int64
  ) {
    self.program = program
    self.template = template
    self.ffmpeg = ffmpeg
    self.voice = voice
    self.audioLimits = audioLimits
    self.memoryBytes = memoryBytes
  }
}

/// The configuration of the job queue.
package struct JobSettings: Sendable {
  /// How the jobs' children are started.
  package var workers: WorkerSettings
  /// The limits on children, attempts, and running times.
  package var lifecycle: JobLifecycle.Limits
  /// The maximum number of waiting and running jobs.
  package var maximumQueued: Int
  /// The maximum number of one client's waiting and running jobs.
  package var maximumQueuedPerClient: Int
  /// The limits of clients and tenants that have their own.
  package var clientLimits: ClientLimits
  /// The disk space to reserve, in bytes. Jobs are stopped before they use more than half of it.
  package var reservedDiskBytes: Int64
  /// The maximum size of a tenant's conversions together, in bytes.
  package var maximumConversionBytes: Int64
  /// Called when a finished job has found its recording and is about to add files to it. Tests delete the recording
  /// here.
  package var willAddFiles: @Sendable (JobID) -> Void

  /// Creates settings.
  package init(
    workers: WorkerSettings, lifecycle: JobLifecycle.Limits, maximumQueued: Int, maximumQueuedPerClient: Int,
    reservedDiskBytes: Int64, maximumConversionBytes: Int64, clientLimits: ClientLimits = ClientLimits(),
    willAddFiles: @escaping @Sendable (JobID) -> Void = { _ in }
  ) {
    self.workers = workers
    self.lifecycle = lifecycle
    self.maximumQueued = maximumQueued
    self.maximumQueuedPerClient = maximumQueuedPerClient
    self.clientLimits = clientLimits
    self.reservedDiskBytes = reservedDiskBytes
    self.maximumConversionBytes = maximumConversionBytes
    self.willAddFiles = willAddFiles
  }
}
