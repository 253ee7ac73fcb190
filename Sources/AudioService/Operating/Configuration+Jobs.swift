import Jobs

extension Configuration {
  /// Settings for all workers.
  var workerSettings: WorkerSettings {
    WorkerSettings(
      program: program, template: workerTemplate, ffmpeg: ffmpeg, voice: voice, audioLimits: audioLimits,
      memoryBytes: workerMemoryBytes)
  }

  /// Settings for the job queue.
  var jobSettings: JobSettings {
    JobSettings(
      workers: workerSettings,
      lifecycle: .init(
        places: cluster.role.runsJobs ? workerCount : 0, maximumAttempts: maximumAttempts,
        retryPauseSeconds: retryPauseSeconds, storePauseSeconds: storePauseSeconds,
        stallSeconds: stallSeconds, secondsPerProcessorSecond: jobSecondsPerProcessorSecond),
      maximumQueued: maximumQueuedJobs, maximumQueuedPerClient: maximumQueuedJobsPerClient,
      reservedDiskBytes: reservedDiskBytes, maximumConversionBytes: maximumConversionBytes, willAddFiles: willAddFiles)
  }
}
