/// One piece of work on a recording, from the request for it to its end.
public struct Job: Sendable, Equatable {
  /// Also the name of its work folder.
  public let id: JobID
  /// What it does.
  public var kind: JobKind
  /// The source. It may have been deleted since.
  public var recording: RecordingID
  /// The recording that the job makes, if it makes one: there from the start, unfinished.
  public var output: RecordingID?
  /// How far it is.
  public var state: JobState
  /// 0 … 1.
  public var progress: Double
  /// When it was asked for.
  public var createdAt: Timestamp
  /// When its latest attempt began.
  public var startedAt: Timestamp?
  /// When it reached its last state.
  public var finishedAt: Timestamp?
  /// How often it was started.
  public var attempts: Int
  /// How many of the attempts ended because the service was stopped, for which the job is not to blame.
  public var interruptions: Int
  /// What was asked for, JSON.
  public var parameters: String
  /// What came of it, JSON.
  public var result: String?
  /// A problem object, JSON.
  public var error: String?
  /// Whom it counts for where clients take turns; opaque, empty where that is not known.
  public var client: String

  /// A queued job.
  public init(
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
public enum JobKind: String, Sendable, Hashable, CaseIterable {
  case waveform, denoise, convert
}

/// `queued` → `running` → one of the three others, for good.
public enum JobState: String, Sendable, Hashable, CaseIterable {
  case queued, running, succeeded, failed, cancelled

  /// It will not change any more.
  public var isFinished: Bool {
    self != .queued && self != .running
  }
}
