/// One piece of work on a recording, from the request for it to its end.
package struct Job: Sendable, Equatable {
  /// Also the name of its work folder.
  package let id: JobID
  /// What it does.
  package var kind: JobKind
  /// The source. It may have been deleted since.
  package var recording: RecordingID
  /// The recording that the job makes, if it makes one: there from the start, unfinished.
  package var output: RecordingID?
  /// How far it is.
  package var state: JobState
  /// 0 … 1.
  package var progress: Double
  /// When it was asked for.
  package var createdAt: Timestamp
  /// When its latest attempt began.
  package var startedAt: Timestamp?
  /// When it reached its last state.
  package var finishedAt: Timestamp?
  /// How often it was started.
  package var attempts: Int
  /// How many of the attempts ended because the service was stopped, for which the job is not to blame.
  package var interruptions: Int
  /// What was asked for, JSON.
  package var parameters: String
  /// What came of it, JSON.
  package var result: String?
  /// A problem object, JSON.
  package var error: String?
  /// Whom it counts for where clients take turns; opaque, empty where that is not known.
  package var client: String

  /// A queued job.
  package init(
    id: JobID = JobID(), kind: JobKind, recording: RecordingID, output: RecordingID? = nil,
    state: JobState = .queued, progress: Double = 0, createdAt: Timestamp = .now, startedAt: Timestamp? = nil,
    finishedAt: Timestamp? = nil, attempts: Int = 0, interruptions: Int = 0, parameters: String = "{}",
    result: String? = nil,
    error: String? = nil, client: String = ""
  ) {
    self.id = id
    self.kind = kind
    self.recording = recording
    self.output = output
    self.state = state
    self.progress = progress
    self.createdAt = createdAt
    self.startedAt = startedAt
    self.finishedAt = finishedAt
    self.attempts = attempts
    self.interruptions = interruptions
    self.parameters = parameters
    self.result = result
    self.error = error
    self.client = client
  }
}

/// What a job does.
package enum JobKind: String, Sendable, Hashable, CaseIterable {
  case waveform, denoise, convert
}

/// `queued` → `running` → one of the three others, for good.
package enum JobState: String, Sendable, Hashable, CaseIterable {
  case queued, running, succeeded, failed, cancelled

  /// It will not change any more.
  package var isFinished: Bool {
    self != .queued && self != .running
  }
}
