import GRDB

extension Catalog {
  /// Inserts a job; throws `.noSuchRecording` where its source is not in the catalogue.
  package func insert(_ job: Job) throws(StorageError) {
    try write { try Self.insert(job, $0) }
  }

  /// The job, nil where there is none.
  package func job(_ id: JobID) throws(StorageError) -> Job? {
    try read { try Self.job(id, $0) }
  }

  /// At most `limit` jobs, newest first, from the first that is older than `before`; with `state`, those in it; with
  /// `recording`, those whose source it is.
  package func jobs(
    state: JobState? = nil, recording: RecordingID? = nil, limit: Int, before: JobID? = nil
  ) throws(StorageError) -> [Job] {
    var conditions: [String] = []
    var arguments: [String: (any DatabaseValueConvertible)?] = ["limit": max(0, limit)]
    for (column, comparison, value) in [
      ("state", "=", state?.rawValue), ("recording", "=", recording?.text), ("id", "<", before?.text),
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

  /// Changes a job by what `change` makes of it; the job as it is now, nil where there is none.
  ///
  /// `change` sees the job as it is: one that was cancelled meanwhile says so, and should be left alone.
  @discardableResult
  package func update(_ id: JobID, _ change: (inout Job) -> Void) throws(StorageError) -> Job? {
    try write { try Self.update(id, $0, change) }
  }

  /// Changes a job and a recording in one transaction: what a job made and that it has made it are known together.
  ///
  /// Either may be gone; the other is changed all the same. Both as they are now.
  @discardableResult
  package func finish(
    job: JobID, _ changeJob: (inout Job) -> Void,
    recording: RecordingID?, _ changeRecording: (inout Recording) -> Void
  ) throws(StorageError) -> (job: Job?, recording: Recording?) {
    try write { db in
      let job = try Self.update(job, db, changeJob)
      let recording = try recording.flatMap { try Self.update($0, db, changeRecording) }
      return (job, recording)
    }
  }

  /// Ends a job that failed or was cancelled, and removes the recording it was making, in one transaction.
  ///
  /// The job as it is now, then the unfinished jobs on that recording, now cancelled (as `deleteRecording` does); nil
  /// where there is no such job. `change` must finish the job; one that has finished already is left as it is, with
  /// what it made. The files are the caller's to remove, after this. Throws `.changedMeanwhile`, and ends nothing,
  /// where `isExpected` says no to the job as it is.
  @discardableResult
  package func abandon(
    _ id: JobID, if isExpected: (Job) -> Bool = { _ in true }, _ change: (inout Job) -> Void
  ) throws(StorageError) -> [Job]? {
    try write { db in
      guard let before = try Self.job(id, db) else { return nil }
      guard isExpected(before) else { throw StorageError.changedMeanwhile }
      guard !before.state.isFinished, let job = try Self.update(id, db, change) else { return [before] }
      precondition(job.state.isFinished, "an abandoned job is finished")
      // Not a transaction later: a crash in between would leave a waveform that is built for ever.
      if job.kind == .waveform {
        _ = try Self.update(job.recording, db) { if $0.waveformJob == id { $0.waveformState = .failed } }
      }
      return [job] + (try job.output.map { try Self.delete($0, db) } ?? [])
    }
  }

  /// Queued and running jobs, oldest first: what a restart runs again.
  package func unfinishedJobs() throws(StorageError) -> [Job] {
    try read { db in
      try Self.intact(
        Row.fetchAll(db.cachedStatement(sql: "SELECT * FROM jobs WHERE state IN ('queued', 'running') ORDER BY id"))
      ) { try JobRow(row: $0).job }
    }
  }

  static func insert(_ job: Job, _ db: Database) throws {
    guard try recording(job.recording, db) != nil else { throw StorageError.noSuchRecording(job.recording) }
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

  /// The queued and running jobs that read `id` or make it. Goes through all unfinished jobs, of which there are few.
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
