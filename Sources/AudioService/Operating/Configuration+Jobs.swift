import Jobs

extension Configuration {
  /// What all workers take from it.
  var workerSettings: WorkerSettings {
    WorkerSettings(program: program, ffmpeg: ffmpeg, audioLimits: audioLimits, memoryBytes: workerMemoryBytes)
  }

  /// What the queue of jobs takes from it.
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
