import Jobs

extension Configuration {
  /// The settings of all workers.
  var workerSettings: WorkerSettings {
    WorkerSettings(program: program, ffmpeg: ffmpeg, audioLimits: audioLimits, memoryBytes: workerMemoryBytes)
  }

  /// The settings of the job queue.
  var jobSettings: JobSettings {
    JobSettings(
      workers: workerSettings,
      lifecycle: .init(
        places: workerCount, maximumAttempts: maximumAttempts, retryPauseSeconds: retryPauseSeconds,
        stallSeconds: stallSeconds, secondsPerProcessorSecond: jobSecondsPerProcessorSecond),
      maximumQueued: maximumQueuedJobs, maximumQueuedPerClient: maximumQueuedJobsPerClient,
      reservedDiskBytes: reservedDiskBytes, maximumConversionBytes: maximumConversionBytes, willAddFiles: willAddFiles)
  }
}
