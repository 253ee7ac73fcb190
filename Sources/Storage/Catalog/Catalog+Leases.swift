// The transitions of Job+Lease.swift as transactions. Each reads the job, applies one transition and writes the job
// back on condition that its state and its token are still those that were read. On a catalog whose transactions run
// side by side, the job's row is locked meanwhile (Catalog+Locks), so a late worker's write finds another token.

/// The outcome of a write that needs an attempt's token.
package enum Fenced<Value: Sendable>: Sendable {
  /// The attempt held its job, and the write was committed.
  case written(Value)
  /// The attempt doesn't hold its job any more, and nothing was written. The value is the job as it is now, or nil if
  /// there is no such job.
  case refused(Job?)

  /// The value, if it was written.
  package var written: Value? {
    if case .written(let value) = self { value } else { nil }
  }
}

/// An attempt that has begun.
package struct ClaimedJob: Sendable {
  /// The job, as its row says now.
  package let job: Job
  /// The job's source.
  package let source: Recording
  /// The right to write for the job.
  package let token: AttemptToken
}

extension Catalog {
  /// Begins an attempt at a job, for as long as the holder's terms say. In the same transaction, marks the waveform of
  /// the recording that `building` returns as being built. `failed` is the number of the holder's last attempt if that
  /// has failed; another one that the row shows as running here counts as lost.
  ///
  /// Refused if the job has ended, another node runs it, its source is gone, it is postponed, as many jobs of its
  /// client run as may, or `suits` returns false (in the last three cases it is still queued).
  package func claim(
    _ id: JobID, failed: Int? = nil, if suits: @Sendable (Job) -> Bool = { _ in true },
    building: @Sendable (Job) -> RecordingID? = { _ in nil }
  ) throws(StorageError) -> Fenced<ClaimedJob> {
    let nonce = AttemptToken.newNonce()
    return try write(.statementLocks) { db in
      guard let (before, now) = try locked(id, db) else { return .refused(nil) }
      guard let source = try Self.recording(before.recording, db), suits(before), try mayRun(before, db) else {
        return .refused(before)
      }
      let moved = try begin(before, nonce: nonce, failed: failed, at: now, db)
      guard case .written(let job) = moved, let token = job.token else { return .refused(before) }
      if let written = building(job) {
        // Its description says the same as before: the lease mustn't pass while the store is asked.
        _ = try Self.update(written, db) { $0.waveformState = .building }
      }
      return .written(ClaimedJob(job: job, source: source, token: token))
    }
  }

  /// Begins an attempt at a job that was read in this transaction.
  func begin(
    _ before: Job, nonce: String, failed: Int? = nil, at now: Timestamp, _ db: CatalogTransaction
  ) throws -> Fenced<Job> {
    let moved = try move(before, hasWritten: true, at: now, db) {
      $0.claim(by: holder.node, nonce: nonce, until: holder.terms.map { now + $0.seconds }, at: now, failed: failed)
    }
    guard case .written(let job) = moved, let token = job.token else { return moved }
    try db.run(
      "INSERT INTO attempts (job, attempt, nonce, node, folder, begun_at) VALUES (?, ?, ?, ?, ?, ?)",
      [job.id.text, token.attempt, token.nonce, holder.node, job.resultRecording.text, now.milliseconds])
    return moved
  }

  /// Prolongs an attempt's lease by the holder's terms. Returns false if the attempt has lost it.
  package func renew(_ token: AttemptToken) throws(StorageError) -> Bool {
    // Not by `write`: it looks at the folder with the media, and while that hangs, leases must not be lost.
    try engine.write(.statementLocks) {
      let db = CatalogTransaction($0)
      guard let (before, now) = try locked(token.job, by: db.dialect.changingRows, db) else { return false }
      var job = before
      guard job.renew(token, until: now + (holder.terms?.seconds ?? 0)) else { return false }
      // Not noted as a change: nothing that is shown has changed, and each would be a message to every node.
      try Self.writeRow(job, over: before, db)
      return true
    }
  }

  /// Changes a job and the recording that has its result in one transaction, so that both become visible together.
  ///
  /// Inserts `tracks`, labels found in the recording's file, but at most as many as make `limit` with those that it
  /// has. A waveform or working copy that the recording no longer names becomes garbage, after an hour, because it may
  /// be in use. Throws `.limitReached`, without any change, if that adds bytes and the tenant would have more than
  /// `limits`.
  package func finish(
    _ token: AttemptToken, with result: String, _ change: @Sendable (inout Recording) -> Void = { _ in },
    adding tracks: [(track: LabelTrack, chunks: [LabelChunk])] = [], limit: Int = 64,
    within limits: StoredLimits? = nil
  ) throws(StorageError) -> Fenced<Job> {
    try naming(tracks.map(\.chunks)) { series, db in
      guard let (current, now) = try locked(token.job, db) else { return .refused(nil) }
      let moved = try move(current, hasWritten: true, at: now, db) { $0.succeed(token, with: result, at: now) }
      guard case .written(let job) = moved, let before = try Self.recording(job.resultRecording, db) else {
        return moved
      }
      if let recording = try Self.update(before.id, db, change) {
        try withdraw(objectsOf: recording, before: before, db)
        for key in before.derivedFiles where !recording.derivedFiles.contains(key) {
          try Self.addGarbage(key, due: now + Self.supersededSeconds, db)
        }
        try insert(embedded: Array(zip(tracks.map(\.track), series)), of: recording, limit: limit, db)
        if recording.keptBytes > before.keptBytes || !tracks.isEmpty {
          try Self.checkBytes(limits, of: recording.tenant, db)
        }
      }
      return moved
    }
  }

  /// Fails a job for good, and deletes the recording it was producing, in one transaction. `error` is a problem object
  /// in JSON, `progress` how far the attempt has come.
  ///
  /// Returns the job followed by the unfinished jobs on that recording, which are canceled (as in `deleteRecording`).
  /// Afterward, the caller must remove the files.
  package func fail(
    _ token: AttemptToken, error: String, progress: Double, hasWritten: Bool = false
  ) throws(StorageError) -> Fenced<[Job]> {
    try write(.statementLocks) { db in
      guard let (before, now) = try locked(token.job, db) else { return .refused(nil) }
      return try abandoning(
        try move(before, hasWritten: hasWritten, at: now, db) {
          $0.fail(token, error: error, progress: progress, at: now)
        }, at: now, db)
    }
  }

  /// Fails a job that could not be claimed, like `fail`.
  package func failUnclaimed(_ id: JobID, error: String) throws(StorageError) -> Fenced<[Job]> {
    try write(.statementLocks) { db in
      guard let (before, now) = try locked(id, db) else { return .refused(nil) }
      return try abandoning(
        try move(before, hasWritten: true, at: now, db) {
          $0.failUnclaimed(by: holder.node, error: error, at: now)
        }, at: now, db)
    }
  }

  /// Cancels a job, which has come as far as `progress`, and deletes the recording it was producing, in one
  /// transaction.
  ///
  /// Returns the job followed by the unfinished jobs on that recording, which are canceled too, or nil if there is no
  /// such job. A job that has already finished is left alone, and so is its result. Afterward, the caller must remove
  /// the files. Throws `.changedMeanwhile`, without any change, if `isExpected` returns false for the current job.
  @discardableResult
  package func cancel(
    _ id: JobID, if isExpected: @Sendable (Job) -> Bool = { _ in true }, progress: Double? = nil
  ) throws(StorageError) -> [Job]? {
    try cancel(id, if: isExpected, progress: progress, describing: .now)
  }

  func cancel(
    _ id: JobID, of tenant: Tenant? = nil, if isExpected: @Sendable (Job) -> Bool, progress: Double?,
    describing time: DescribingTime
  ) throws(StorageError) -> [Job]? {
    try write(.statementLocks, describing: time) { db in
      guard let (before, now) = try locked(id, of: tenant, db) else { return nil }
      guard isExpected(before) else { throw StorageError.changedMeanwhile }
      let moved = try move(before, hasWritten: true, at: now, db) { $0.cancel(progress: progress, at: now) }
      return try abandoning(moved, at: now, db).written ?? [before]
    }
  }

  /// Returns a job to the queue for another attempt. An interrupted attempt doesn't count as failed. `hasWritten` is
  /// whether the attempt may have begun to write its result.
  package func giveBack(
    _ token: AttemptToken, interrupted: Bool, hasWritten: Bool = false
  ) throws(StorageError) -> Fenced<Job> {
    try write(.statementLocks) { db in
      guard let (before, now) = try locked(token.job, by: db.dialect.changingRows, db) else { return .refused(nil) }
      return try move(before, hasWritten: hasWritten, at: now, db) { $0.giveBack(token, interrupted: interrupted) }
    }
  }

  /// Returns a job to the queue for another attempt in `seconds` or later, because the store of media has failed this
  /// one, which doesn't count as failed.
  package func postpone(
    _ token: AttemptToken, seconds: Double, hasWritten: Bool = false
  ) throws(StorageError) -> Fenced<Job> {
    try write(.statementLocks) { db in
      guard let (before, now) = try locked(token.job, by: db.dialect.changingRows, db) else { return .refused(nil) }
      return try move(before, hasWritten: hasWritten, at: now, db) { $0.postpone(token, until: now + seconds) }
    }
  }

  /// Returns the jobs to the queue whose lease has ended; under the data folder's lock, those that another process ran,
  /// which is gone. Their number is returned. Several nodes may call it at once: each takes the jobs that no other is
  /// changing.
  @discardableResult
  package func endLostLeases() throws(StorageError) -> Int {
    let lost = try read { db in
      let now = try now(db)
      return try Self.intact(db.rows("SELECT * FROM jobs WHERE state = 'running' ORDER BY id")) {
        try JobRow(row: $0).job
      }.filter { isLost($0, at: now) }
    }
    // Usually there are none, and nothing is written.
    guard !lost.isEmpty else { return 0 }
    return try write(.statementLocks) { db in
      try lost.count { job in
        guard let (current, now) = try locked(job.id, by: db.dialect.skippingLocked, db) else { return false }
        let moved = try move(current, hasWritten: true, at: now, db) { $0.expire(at: now, orIf: isOthers) }
        return moved.written != nil
      }
    }
  }

  private func isLost(_ job: Job, at now: Timestamp) -> Bool {
    var job = job
    return job.expire(at: now, orIf: isOthers)
  }

  /// Whether another process ran the job, which is gone if this one has the lock.
  private func isOthers(_ job: Job) -> Bool { holder.terms == nil && job.node != holder.node }

  // MARK: In a transaction

  /// Applies a transition to a job that was locked in this transaction, and records how its attempt ended.
  func move(
    _ before: Job, hasWritten: Bool, at now: Timestamp, _ db: CatalogTransaction, _ transition: (inout Job) -> Bool
  ) throws -> Fenced<Job> {
    var job = before
    guard transition(&job) else { return .refused(before) }
    try Self.writeRow(job, over: before, db)
    db.note(changed: job)
    if let ended = EndedAttempt(before, job, hasWritten: hasWritten) { try record(ended, at: now, db) }
    return .written(job)
  }

  /// Writes the columns that transitions change.
  private static func writeRow(_ job: Job, over before: Job, _ db: CatalogTransaction) throws {
    let count = try db.run(
      """
      UPDATE jobs SET state = ?, progress = ?, started_at = ?, finished_at = ?, attempts = ?, interruptions = ?,
        postponements = ?, not_before = ?, nonce = ?, node = ?, lease_until = ?, result = ?, error = ?
      WHERE id = ? AND state = ? AND attempts = ? AND nonce IS NOT DISTINCT FROM ?
      """,
      [
        job.state.rawValue, job.progress, job.startedAt?.milliseconds, job.finishedAt?.milliseconds, job.attempts,
        job.interruptions, job.postponements, job.notBefore?.milliseconds, job.nonce, job.node,
        job.leaseUntil?.milliseconds, job.result, job.error, job.id.text,
        before.state.rawValue, before.attempts, before.nonce,
      ])
    guard count == 1 else { throw StorageError.changedMeanwhile }
  }

  private func record(_ ended: EndedAttempt, at now: Timestamp, _ db: CatalogTransaction) throws {
    let due = ended.mayHaveFiles ? now + (holder.terms?.graceSeconds ?? 0) : nil
    try db.run(
      "UPDATE attempts SET ended_at = ?, ending = ?, due = ? WHERE job = ? AND attempt = ? AND nonce = ?",
      [
        now.milliseconds, ended.ending.rawValue, due?.milliseconds, ended.token.job.text, ended.token.attempt,
        ended.token.nonce,
      ])
  }

  /// Cleans up after a job that failed or was canceled.
  private func abandoning(_ moved: Fenced<Job>, at now: Timestamp, _ db: CatalogTransaction) throws -> Fenced<[Job]> {
    guard case .written(let job) = moved else {
      if case .refused(let job) = moved { return .refused(job) }
      return .refused(nil)
    }
    // In the same transaction: a crash in between would leave a waveform in state building forever.
    if try Self.recording(job.recording, db)?.waveformJob == job.id {
      _ = try Self.update(job.recording, db) { $0.waveformState = .failed }
    }
    let others = try job.output.map { try delete($0, of: job.tenant, at: now, db) } ?? []
    return .written([job] + others)
  }

  /// Files that were replaced may still be in use for this long.
  static let supersededSeconds = 3600.0
}

extension Recording {
  /// The files that are made from the audio.
  fileprivate var derivedFiles: [ObjectKey] { [workingKey, waveformKey].compactMap { $0 } }
}
