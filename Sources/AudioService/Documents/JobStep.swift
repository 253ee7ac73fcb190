import Storage

/// A job's progress as the id of its events: "2-370" is 37 % of the second attempt, "2-wait" the pause after it, "done"
/// the end. Later steps compare greater, even across a restart of the service, which begins a new attempt.
struct JobStep: Comparable, Sendable, CustomStringConvertible {
  private let attempt: Int
  /// Thousandths of the attempt, or `waiting` for the pause after it.
  private let position: Int

  private static let waiting = 1001
  private static let end = JobStep(attempt: .max, position: 0)

  /// The step that a job has reached.
  init(_ job: JobDocument) {
    switch job.state {
    case "queued": self.init(attempt: job.attempts, position: Self.waiting)
    case "running": self.init(attempt: job.attempts, position: Int((min(max(job.progress, 0), 1) * 1000).rounded()))
    default: self = Self.end
    }
  }

  /// Parses a `Last-Event-ID`; nil if no event can have had this id.
  init?(_ text: String) {
    if text == "done" {
      self = Self.end
      return
    }
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let attempt = Int(parts[0]), (0..<1_000_000).contains(attempt) else { return nil }
    if parts[1] == "wait" {
      self.init(attempt: attempt, position: Self.waiting)
    } else {
      guard let position = Int(parts[1]), (0...1000).contains(position) else { return nil }
      self.init(attempt: attempt, position: position)
    }
  }

  private init(attempt: Int, position: Int) {
    (self.attempt, self.position) = (attempt, position)
  }

  /// Whether the job has finished.
  var isEnd: Bool { self == Self.end }

  var description: String {
    isEnd ? "done" : "\(attempt)-\(position == Self.waiting ? "wait" : "\(position)")"
  }

  static func < (a: JobStep, b: JobStep) -> Bool { (a.attempt, a.position) < (b.attempt, b.position) }
}

/// A Job at one moment.
struct JobSnapshot: Sendable {
  let document: JSONDocument
  let step: JobStep
  private let recordings: [RecordingID]

  /// `row` is the job's row.
  init(_ job: JobDocument, of row: Job) throws {
    document = try JSONDocument(job)
    step = JobStep(job)
    recordings = [row.recording, row.output].compactMap { $0 }
  }

  /// Whether the job reads or makes a recording.
  func concerns(_ id: RecordingID) -> Bool { recordings.contains(id) }
}
