// A job's lease: which attempt may write for the job, as a state machine on the job's value. Each transition is applied
// inside a transaction (Catalog+Leases); it needs no clock, no random numbers and no catalog.
//
//   state              transition   condition                              next state
//   ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────
//   queued             claim        its time has come                      running: attempt + 1, a new nonce
//   running            claim        by the node that already runs it       the same; the earlier attempt was lost,
//                                                                          unless the node says that it has failed
//   running            renew        the token is the job's                 running, for longer
//   running            succeed      the token is the job's                 succeeded
//   running            fail         the token is the job's                 failed
//   queued, running    fail         without an attempt; if running, then   failed
//                                   by the node that runs it
//   running            giveBack     the token is the job's                 queued; if interrupted, that doesn't count
//   running            postpone     the token is the job's                 queued, until a time; that doesn't count
//   running            expire       its lease has ended                    queued; that doesn't count
//   queued, running    cancel                                              cancelled
//
// Anything else changes nothing, so whatever a worker sends late, twice or after the job was given to another attempt
// is refused. A transition that a worker doesn't know to have been committed may be repeated: the row says whether the
// worker's own attempt has won (`hasWon`).
//
// A lease ends at `leaseUntil` by the catalog's clock. Under the data folder's lock it has no end: it lasts as long as
// the process, so nothing is written while a job runs, and a process that has the lock may end all leases but its own.
//
// Invariants, whatever is lost, late or repeated (LeaseSimulationTests): a job finishes once; only the attempt that
// holds it finishes it; no file of a finished job is removed as garbage, and in the end no other file is left; a job
// has at most three failed and ten lost attempts.
//
// A job is postponed if the store of media can't give its source or take its result, or if the disk of one node of
// several fails it.

import Terms

extension Job {
  /// The token of the attempt that holds the job; nil if none does.
  package var token: AttemptToken? {
    guard state == .running, let nonce else { return nil }
    return AttemptToken(job: id, attempt: attempts, nonce: nonce)
  }

  /// The recording whose folder gets the results of the job.
  package var resultRecording: RecordingID { output ?? recording }

  /// The number of attempts that were lost with their node or given back because it stopped.
  package var losses: Int { interruptions - postponements }

  /// How often a job is postponed at most. With the pauses below, that takes more than half an hour.
  package static let postponementLimit = 10

  /// The pause that follows if the job is postponed now, in seconds: `first`, and each time twice as long, up to 120
  /// times that. A random part of up to a quarter is taken off, so that jobs that were postponed together don't come
  /// back together.
  package func postponementSeconds(first: Double, using generator: inout some RandomNumberGenerator) -> Double {
    Backoff(firstSeconds: first, limitSeconds: 120 * first, randomPart: 0.25)
      .seconds(after: postponements + 1, using: &generator)
  }

  /// The number of attempts that failed, not counting one that is running.
  package var failures: Int { attempts - interruptions - (state == .running ? 1 : 0) }

  /// Whether the job has succeeded with the result of this attempt.
  package func hasWon(_ token: AttemptToken) -> Bool {
    state == .succeeded && attempts == token.attempt && nonce == token.nonce
  }

  /// Begins an attempt. Returns false if the job has ended, another node runs it, or it is too early.
  ///
  /// A node runs a job at most once at a time. So if it already runs this one according to the row, then it couldn't
  /// write how its earlier attempt ended, or hasn't heard that this has begun. `failed` is the number of that attempt
  /// if it has failed; otherwise it was lost.
  package mutating func claim(
    by node: String, nonce: String, until end: Timestamp?, at now: Timestamp, failed: Int? = nil
  ) -> Bool {
    guard isFree(for: node), notBefore.map({ $0 <= now }) ?? true else { return false }
    if state == .running, attempts != failed { interruptions += 1 }
    state = .running
    attempts += 1
    startedAt = now
    (self.nonce, self.node, leaseUntil, notBefore) = (nonce, node, end, nil)
    return true
  }

  /// Prolongs the lease of an attempt.
  package mutating func renew(_ token: AttemptToken, until end: Timestamp) -> Bool {
    guard self.token == token else { return false }
    leaseUntil = end
    return true
  }

  /// Finishes the job with an attempt's result, in JSON.
  package mutating func succeed(_ token: AttemptToken, with result: String, at now: Timestamp) -> Bool {
    guard self.token == token else { return false }
    end(.succeeded, at: now)
    progress = 1
    self.result = result
    return true
  }

  /// Finishes the job because its result was found, which the catalog had lost.
  mutating func succeed(asFound result: String, at now: Timestamp) -> Bool {
    guard !state.isFinished else { return false }
    end(.succeeded, at: now)
    progress = 1
    self.result = result
    return true
  }

  /// Fails the job for good. `error` is a problem object in JSON, `progress` how far the attempt has come.
  package mutating func fail(
    _ token: AttemptToken, error: String, progress: Double, at now: Timestamp
  ) -> Bool {
    guard self.token == token else { return false }
    end(.failed, at: now)
    (self.error, self.progress) = (error, progress)
    return true
  }

  /// Fails a job that `node` could not begin.
  package mutating func failUnclaimed(by node: String, error: String, at now: Timestamp) -> Bool {
    guard isFree(for: node) else { return false }
    end(.failed, at: now)
    self.error = error
    return true
  }

  /// Returns the job to the queue for another attempt. An interruption isn't the job's fault and doesn't count as a
  /// failure.
  package mutating func giveBack(_ token: AttemptToken, interrupted: Bool) -> Bool {
    guard self.token == token else { return false }
    requeue(interrupted: interrupted)
    return true
  }

  /// Returns the job to the queue because the store of media, or the disk of one node of several, has failed the
  /// attempt. No other begins before `time`.
  package mutating func postpone(_ token: AttemptToken, until time: Timestamp) -> Bool {
    guard self.token == token else { return false }
    requeue(interrupted: true)
    postponements += 1
    notBefore = time
    return true
  }

  /// Returns the job to the queue if its lease has ended. `isOver` decides that for a lease without an end.
  package mutating func expire(at now: Timestamp, orIf isOver: (Job) -> Bool) -> Bool {
    guard state == .running, leaseUntil.map({ $0 < now }) ?? isOver(self) else { return false }
    requeue(interrupted: true)
    return true
  }

  /// Cancels the job, which has come as far as `progress`.
  package mutating func cancel(progress: Double? = nil, at now: Timestamp) -> Bool {
    guard !state.isFinished else { return false }
    end(.cancelled, at: now)
    if let progress { self.progress = progress }
    return true
  }

  private func isFree(for node: String) -> Bool { state == .queued || state == .running && self.node == node }

  private mutating func requeue(interrupted: Bool) {
    state = .queued
    leaseUntil = nil
    if interrupted { interruptions += 1 }
  }

  private mutating func end(_ state: JobState, at now: Timestamp) {
    (self.state, finishedAt, leaseUntil) = (state, now, nil)
  }
}

/// The end of an attempt, as it follows from a transition of its job.
package struct EndedAttempt: Sendable, Equatable {
  /// The attempt.
  package let token: AttemptToken
  /// How it ended.
  package let ending: AttemptEnding
  /// Whether it may have written files that aren't a result.
  package let mayHaveFiles: Bool

  /// Returns the attempt that a transition from `before` to `after` has ended, or nil. `hasWritten` is whether it may
  /// have begun to write its result.
  package init?(_ before: Job, _ after: Job, hasWritten: Bool) {
    guard let token = before.token, after.token != token else { return nil }
    self.token = token
    switch after.state {
    case .succeeded: ending = .succeeded
    case .failed: ending = .failed
    case .cancelled: ending = .cancelled
    case .queued, .running: ending = after.interruptions > before.interruptions ? .interrupted : .failed
    }
    mayHaveFiles = ending != .succeeded && hasWritten
  }
}
