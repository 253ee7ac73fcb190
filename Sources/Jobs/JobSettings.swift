import AudioIO
import Storage

/// How workers are started, and what they may use up.
package struct WorkerSettings: Sendable {
  /// The program that children run.
  package var program: String
  /// The ffmpeg that workers use: a path, or a name to be looked for on PATH.
  package var ffmpeg: String
  /// Limits of a recording.
  package var audioLimits: AudioLimits
  /// Maximum memory of one child in bytes, not counting files that it maps.
  package var memoryBytes: Int64

  /// Settings of known parts.
  package init(program: String, ffmpeg: String, audioLimits: AudioLimits, memoryBytes: Int64) {
    self.program = program
    self.ffmpeg = ffmpeg
    self.audioLimits = audioLimits
    self.memoryBytes = memoryBytes
  }
}

/// What the queue of jobs takes from the service's configuration.
package struct JobSettings: Sendable {
  /// How jobs' children are started.
  package var workers: WorkerSettings
  /// Children at once, which attempts a job has, and when its child is ended.
  package var lifecycle: JobLifecycle.Limits
  /// Jobs that may wait or run.
  package var maximumQueued: Int
  /// Of these, those of one client.
  package var maximumQueuedPerClient: Int
  /// Jobs leave half of these bytes of disk free.
  package var reservedDiskBytes: Int64
  /// Bytes that all conversions may take together.
  package var maximumConversionBytes: Int64
  /// Called when a finished job has found its recording and is about to add files to it, where tests delete it.
  package var willAddFiles: @Sendable (JobID) -> Void

  /// Settings of known parts.
  package init(
    workers: WorkerSettings, lifecycle: JobLifecycle.Limits, maximumQueued: Int, maximumQueuedPerClient: Int,
    reservedDiskBytes: Int64, maximumConversionBytes: Int64,
    willAddFiles: @escaping @Sendable (JobID) -> Void = { _ in }
  ) {
    self.workers = workers
    self.lifecycle = lifecycle
    self.maximumQueued = maximumQueued
    self.maximumQueuedPerClient = maximumQueuedPerClient
    self.reservedDiskBytes = reservedDiskBytes
    self.maximumConversionBytes = maximumConversionBytes
    self.willAddFiles = willAddFiles
  }
}
