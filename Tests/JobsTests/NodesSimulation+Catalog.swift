import Processing
import Storage

@testable import Jobs

// The catalog, with a transaction for each call, and its feed.

extension NodesSimulation {
  mutating func apply(_ call: Call, by name: String) -> Answer {
    var pauses = random
    _ = random.next()
    let time = Timestamp(milliseconds: now)
    switch call {
    case .submit(let job):
      guard rows[job.id] == nil else { return .written(job) }
      rows[job.id] = job
      order.append(job.id)
      (unfinished, submissionsLeft) = (unfinished + 1, submissionsLeft - 1)
      announce(job, by: name)
      return .written(job)
    case .cancel(let id):
      // Before its submission, the job's client doesn't know it.
      guard rows[id] != nil else { return .refused(nil) }
      count("cancellations")
      return move(id, by: name) { $0.cancel(at: time) }
    case .claim(let id, let nonce, let failed):
      return move(id, by: name) {
        $0.claim(by: name, nonce: nonce, until: time + Self.terms.seconds, at: time, failed: failed)
      }
    case .renew(let token):
      guard var job = rows[token.job], job.renew(token, until: time + Self.terms.seconds) else { return .refused(nil) }
      rows[token.job] = job
      return .written(job)
    case .record(let id, let token, let ending):
      return move(id, by: name) { job in
        switch (ending, token) {
        case (.failure, nil): job.failUnclaimed(by: name, error: "", at: time)
        case (.result, let token?): job.succeed(token, with: "", at: time)
        case (.retry, let token?): job.giveBack(token, interrupted: false)
        case (.interruption, let token?): job.giveBack(token, interrupted: true)
        case (.postponement, let token?) where job.postponements == Job.postponementLimit:
          job.fail(token, error: "", progress: 0, at: time)
        case (.postponement, let token?):
          job.postpone(token, until: time + job.postponementSeconds(first: 0.5, using: &pauses))
        case (.failure, let token?): job.fail(token, error: "", progress: 0, at: time)
        case (_, nil): false
        }
      }
    case .reread:
      for id in order { _ = move(id, by: name) { $0.expire(at: time, orIf: { _ in false }) } }
      return .rows(order.compactMap { rows[$0] }.filter { !$0.state.isFinished })
    case .look(let id): return .rows(rows[id].map { [$0] } ?? [])
    }
  }

  private mutating func move(_ id: JobID, by name: String, _ change: (inout Job) -> Bool) -> Answer {
    guard let before = rows[id] else { return .refused(nil) }
    var job = before
    guard change(&job) else { return .refused(before) }
    check(!before.state.isFinished, "a finished job was changed")
    if job.attempts > before.attempts, let notBefore = before.notBefore {
      check(notBefore.milliseconds <= now, "a postponed job begins too early")
    }
    if job.postponements > before.postponements { count("postponed") }
    rows[id] = job
    if let ended = EndedAttempt(before, job, hasWritten: true) {
      count("\(ended.ending)")
      // The attempt that gives a job up fails with it.
      let isFair = ended.ending != .failed || job.state == .failed || failed.contains(ended.token)
      check(isFair, "an attempt counts as failed although its node was lost or drained")
    }
    if job.state.isFinished {
      unfinished -= 1
      finishedAt = now
    }
    announce(job, by: name)
    return .written(job)
  }

  /// Sends a job's outline to the other nodes.
  private mutating func announce(_ job: Job, by name: String) {
    for node in nodes.indices where nodes[node].isUp && self.name(of: node) != name && nodes[node].cutUntil <= now {
      for _ in 0..<(isCalm || chance(90) ? 1 : chance(50) ? 0 : 2) { schedule(.heard(job), on: node, in: delay()) }
    }
  }
}
