import GRDB

extension Catalog {
  /// Inserts a job. Throws `.noSuchRecording` if its source isn't in the catalog.
  package func insert(_ job: Job) throws(StorageError) {
    try write { try Self.insert(job, $0) }
  }

  /// Returns the job, or nil.
  package func job(_ id: JobID) throws(StorageError) -> Job? {
    try read { try Self.job(id, $0) }
  }

  /// Returns at most `limit` jobs older than `before`, newest first, optionally only those in `state` or with
  /// `recording` as their source.
  package func jobs(
    state: JobState? = nil, recording: RecordingID? = nil, limit: Int, before: JobID? = nil
  ) throws(StorageError) -> [Job] {
    try jobs(of: nil, state: state, recording: recording, limit: limit, before: before)
  }

  /// The same for one tenant; nil for all of them.
  func jobs(
    of tenant: Tenant?, state: JobState?, recording: RecordingID?, limit: Int, before: JobID?
  ) throws(StorageError) -> [Job] {
    var conditions: [String] = []
    var arguments: [String: (any DatabaseValueConvertible)?] = ["limit": max(0, limit)]
    for (column, comparison, value) in [
      ("tenant", "=", tenant?.name), ("state", "=", state?.rawValue), ("recording", "=", recording?.text),
      ("id", "<", before?.text),
    ] {
      guard let value else { continue }
      conditions.append("\(column) \(comparison) :\(column)")
      arguments[column] = value
    }
    let sql = "SELECT * FROM jobs\(Self.filter(conditions)) ORDER BY id DESC LIMIT :limit"
    let bound = StatementArguments(arguments)
    return try read { db in
      try Self.intact(Row.fetchAll(db.cachedStatement(sql: sql), arguments: bound)) { try JobRow(row: $0).job }
    }
  }

  /// Returns the newest job of a kind, in this state, with `recording` as its source; nil if there is none.
  package func latestJob(
    kind: JobKind, state: JobState, of recording: RecordingID
  ) throws(StorageError) -> Job? {
    let sql = "SELECT * FROM jobs WHERE recording = ? AND kind = ? AND state = ? ORDER BY id DESC LIMIT 1"
    return try read { db in
      try Self.intact(
        Row.fetchAll(
          db.cachedStatement(sql: sql), arguments: [recording.text, kind.rawValue, state.rawValue])
      ) { try JobRow(row: $0).job }.first
    }
  }

  /// Applies `change` to a job and returns the result, or nil if there is no such job.
  ///
  /// The job passed to `change` is current. If it was canceled meanwhile, its state says so, and `change` should leave
  /// it alone.
  @discardableResult
  package func update(_ id: JobID, _ change: (inout Job) -> Void) throws(StorageError) -> Job? {
    try write { try Self.update(id, $0, change) }
  }

  /// Changes a job and a recording in one transaction, so that a job's result and its success become visible together.
  ///
  /// Either may have been deleted; the other is changed regardless. Returns both as they are then. `tracks` is called
  /// last and returns labels found in the recording's file; as many as make at most `limit` with those that it has are
  /// inserted.
  @discardableResult
  package func finish(
    job: JobID, _ changeJob: (inout Job) -> Void,
    recording: RecordingID?, _ changeRecording: (inout Recording) -> Void,
    adding tracks: () -> [(track: LabelTrack, chunks: [LabelChunk])] = { [] }, limit: Int = 64
  ) throws(StorageError) -> (job: Job?, recording: Recording?) {
    try write { db in
      let job = try Self.update(job, db, changeJob)
      let recording = try recording.flatMap { try Self.update($0, db, changeRecording) }
      if let recording { try Self.insert(embedded: tracks(), of: recording, limit: limit, db) }
      return (job, recording)
    }
  }

  /// Ends a job that failed or was canceled, and deletes the recording it was producing, in one transaction.
  ///
  /// Returns the job followed by the unfinished jobs on that recording, which are canceled (as in `deleteRecording`),
  /// or nil if there is no such job. `change` must finish the job; a job that has already finished is left alone, and
  /// so is its result. Afterwards, the caller must remove the files. Throws `.changedMeanwhile`, without any change, if
  /// `isExpected` returns false for the current job.
  @discardableResult
  package func abandon(
    _ id: JobID, if isExpected: (Job) -> Bool = { _ in true }, _ change: (inout Job) -> Void
  ) throws(StorageError) -> [Job]? {
    try write { db in
      guard let before = try Self.job(id, db) else { return nil }
      guard isExpected(before) else { throw StorageError.changedMeanwhile }
      guard !before.state.isFinished, let job = try Self.update(id, db, change) else { return [before] }
      precondition(job.state.isFinished, "an abandoned job is finished")
      // In the same transaction: a crash in between would leave a waveform in state building forever.
      if try Self.recording(job.recording, db)?.waveformJob == id {
        _ = try Self.update(job.recording, db) { $0.waveformState = .failed }
      }
      let others = try job.output.map { try Self.delete($0, db) } ?? []
      for deleted in ([job] + others).compactMap(\.output) { changes.note(owner: job.tenant, of: deleted) }
      return [job] + others
    }
  }

  /// Returns queued and running jobs, oldest first; a restart runs them again.
  package func unfinishedJobs() throws(StorageError) -> [Job] {
    try read { db in
      try Self.intact(
        Row.fetchAll(db.cachedStatement(sql: "SELECT * FROM jobs WHERE state IN ('queued', 'running') ORDER BY id"))
      ) { try JobRow(row: $0).job }
    }
  }

  static func insert(_ job: Job, _ db: Database) throws {
    guard let source = try recording(job.recording, db) else { throw StorageError.noSuchRecording(job.recording) }
    var job = job
    job.tenant = source.tenant
    try JobRow(job).insert(db)
  }

  static func job(_ id: JobID, _ db: Database) throws -> Job? {
    try JobRow.fetchOne(db.cachedStatement(sql: "SELECT * FROM jobs WHERE id = ?"), arguments: [id.text])?.job
  }

  static func update(_ id: JobID, _ db: Database, _ change: (inout Job) -> Void) throws -> Job? {
    guard var job = try job(id, db) else { return nil }
    change(&job)
    precondition(job.id == id, "an update keeps the id")
    try JobRow(job).update(db)
    return job
  }

  /// Returns the queued and running jobs that read or produce `id`. Scans all unfinished jobs, of which there are few.
  static func unfinishedJobs(touching id: RecordingID, _ db: Database) throws -> [Job] {
    try intact(
      Row.fetchAll(
        db.cachedStatement(
          sql: """
            SELECT * FROM jobs WHERE (recording = :id OR output = :id) AND state IN ('queued', 'running') ORDER BY id
            """),
        arguments: ["id": id.text])
    ) { try JobRow(row: $0).job }
  }

  static func cancel(_ job: Job, _ db: Database) throws -> Job {
    var job = job
    job.state = .cancelled
    job.finishedAt = .now
    try JobRow(job).update(db)
    return job
  }
}
