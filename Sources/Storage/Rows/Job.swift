/// One piece of work on a recording, from the request to its end.
package struct Job: Sendable, Equatable {
  /// The ID, which also names its work folder.
  package let id: JobID
  /// The tenant of the source recording. Set when the row is inserted.
  package internal(set) var tenant = Tenant.none
  /// The kind of work.
  package var kind: JobKind
  /// The source recording. It may have been deleted since.
  package var recording: RecordingID
  /// The batch that it is part of, if any.
  package var batch: BatchID?
  /// The recording that the job produces, if any. It exists from the start, unfinished.
  package var output: RecordingID?
  /// The state of the job.
  package var state: JobState
  /// The progress, 0 … 1.
  package var progress: Double
  /// When it was requested.
  package var createdAt: Timestamp
  /// When its latest attempt began.
  package var startedAt: Timestamp?
  /// When it reached its last state.
  package var finishedAt: Timestamp?
  /// Number of attempts so far, which is also the number of the latest one.
  package var attempts: Int
  /// Number of attempts that were lost with their node, given back because it stopped, or postponed, which isn't the
  /// job's fault.
  package var interruptions: Int
  /// Number of interruptions that were postponements: the store of media, or the disk of one node of several, failed
  /// the attempt. See Job+Lease.swift.
  package var postponements = 0
  /// Before this time no attempt begins; nil for any time.
  package var notBefore: Timestamp?
  /// The random part of the latest attempt's token; nil before the first attempt. See Job+Lease.swift.
  package var nonce: String?
  /// The node that began the latest attempt.
  package var node: String?
  /// When the lease of the running attempt ends; nil if it lasts as long as the process that has locked the data
  /// folder.
  package var leaseUntil: Timestamp?
  /// Bytes that its results are expected to take. They count toward what the tenant may store until it ends.
  package var expectedBytes: Int64 { didSet { expectedBytes = Self.plausible(expectedBytes) } }
  /// The request, in JSON.
  package var parameters: String
  /// The result, in JSON.
  package var result: String?
  /// A problem object, in JSON.
  package var error: String?
  /// The client that the job counts toward when clients take turns; opaque, and empty if unknown.
  package var client: String

  /// Creates a job, queued by default. `id`: nil for a new one.
  package init(
    id: JobID? = nil, kind: JobKind, recording: RecordingID, output: RecordingID? = nil,
    state: JobState = .queued, progress: Double = 0, createdAt: Timestamp, startedAt: Timestamp? = nil,
    finishedAt: Timestamp? = nil, attempts: Int = 0, interruptions: Int = 0, nonce: String? = nil,
    node: String? = nil, leaseUntil: Timestamp? = nil, expectedBytes: Int64 = 0, parameters: String = "{}",
    result: String? = nil, error: String? = nil, client: String = "", batch: BatchID? = nil
  ) {
    self.id = id ?? JobID(at: createdAt)
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
    self.nonce = nonce
    self.node = node
    self.leaseUntil = leaseUntil
    self.expectedBytes = Self.plausible(expectedBytes)
    self.parameters = parameters
    self.result = result
    self.error = error
    self.client = client
    self.batch = batch
  }
}

extension Job {
  /// More than any job makes, and little enough that those of all jobs together are a number.
  static let expectedBytesLimit: Int64 = 1 << 50

  private static func plausible(_ bytes: Int64) -> Int64 { min(max(bytes, 0), expectedBytesLimit) }
}

/// The kind of work that a job does.
package enum JobKind: String, Sendable, Hashable, CaseIterable {
  case waveform, denoise, convert, loudness, trim
}

/// The state of a job: `queued` → `running` → permanently one of the other three.
package enum JobState: String, Sendable, Hashable, CaseIterable {
  case queued, running, succeeded, failed, cancelled

  /// Whether the state is final.
  package var isFinished: Bool {
    self != .queued && self != .running
  }
}
