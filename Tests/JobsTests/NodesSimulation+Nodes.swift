import Processing
import Storage
import Terms
import Workers

@testable import Jobs

// The nodes, which do what JobRunner and JobRecords do.

extension NodesSimulation {
  mutating func start(_ node: Int) {
    let (run, cutUntil) = (nodes[node].run + 1, nodes[node].cutUntil)
    nodes[node] = Node(places: nodes[node].places)
    (nodes[node].run, nodes[node].cutUntil) = (run, cutUntil)
    call(.reread, on: node)
    schedule(.keepLeases, on: node, in: milliseconds(5000))
  }

  mutating func crash(_ node: Int, for time: Int64) {
    nodes[node].isUp = false
    nodes[node].children = [:]
    schedule(.start, on: node, in: time)
    count("crashes")
  }

  mutating func call(_ call: Call, on node: Int) { schedule(.call(call, sentAt: now), on: node, in: delay()) }

  mutating func act(_ event: Event, _ node: Int) {
    switch event {
    case .take(let event): take(event, node)
    case .heard(let job): follow(job, node)
    case .exit(let token, let verdict, let exit):
      guard let child = nodes[node].children[token.job], child.token == token else { return }
      nodes[node].children[token.job] = nil
      let isSuccess = verdict == .result && exit == .status(0)
      if !isSuccess, verdict != .failure(.diskFull), !child.isKilled { failed.insert(token) }
      if let verdict { take(.reported(token.job, verdict), node) }
      take(.exited(token.job, exit), node)
    case .keepLeases:
      guard !nodes[node].isStopping else { return }
      for token in nodes[node].leases.tokens.sorted(by: { $0.name < $1.name }) { call(.renew(token), on: node) }
      call(.reread, on: node)
      schedule(.keepLeases, on: node, in: Int64(Self.terms.renewalSeconds * 1000))
    case .deadline(let token):
      if nodes[node].leases.isEnding(token, at: seconds) { lose(token, node) }
    case .answer(let answer, let call, let sentAt): heard(answer, to: call, node, sentAt)
    default: break
    }
  }

  var seconds: Double { Double(now) / 1000 }

  mutating func take(_ event: JobLifecycle.Event, _ node: Int) {
    if case .stop = event { nodes[node].isStopping = true }
    for action in nodes[node].lifecycle.on(event, at: seconds) { perform(action, node) }
  }

  private mutating func perform(_ action: JobLifecycle.Action, _ node: Int) {
    switch action {
    case .claim(let id, let failed):
      let nonce = String(UInt64.random(in: 1 << 60...UInt64.max, using: &random), radix: 16)
      call(.claim(id, nonce: nonce, failed: failed), on: node)
    case .prepare(let id):
      let fence = WorkerFence(memoryBytes: 1, processorSeconds: 600, outputBytes: 1)
      let isReady = chance(97)
      if !isReady, let token = nodes[node].attempts[id] { failed.insert(token) }
      var outcome = isReady ? JobLifecycle.Event.prepared(id, fence) : .notBegun(id, nil)
      if isReady, chance(storeFaults) { outcome = .storeFailed(id, .storeIsUnavailable) }
      schedule(.take(outcome), on: node, in: delay())
    case .start(let id, _): start(id, node)
    case .kill(let id):
      guard let token = nodes[node].children[id]?.token else { return violations.append("killed without a child") }
      nodes[node].children[id]?.isKilled = true
      schedule(.exit(token, nil, .signal(9)), on: node, in: milliseconds(300))
    case .record(let id, let ending): call(.record(id, nodes[node].attempts[id], ending), on: node)
    case .hold(let id, let seconds): schedule(.take(.holdEnded(id)), on: node, in: Int64(seconds * 1000))
    case .pause(let id, let seconds):
      end(id, node)
      schedule(.take(.pauseEnded(id)), on: node, in: Int64(seconds * 1000))
    case .clear(let job):
      end(job.id, node)
      schedule(.take(.cleared(job.id)), on: node, in: milliseconds(50))
    case .forget(let id):
      end(id, node)
      nodes[node].known.remove(id)
    case .watch(let seconds): schedule(.take(.tick), on: node, in: Int64(seconds * 1000))
    case .drained: schedule(.take(.stop), on: node, in: 0)
    case .stopped:
      check(nodes[node].children.isEmpty, "stopped while a child runs")
      crash(node, for: milliseconds(10_000))
    }
  }

  private mutating func start(_ id: JobID, _ node: Int) {
    guard let token = nodes[node].attempts[id] else { return violations.append("started without a claim") }
    check(nodes[node].children[id] == nil, "a second child")
    let others = nodes.indices.filter { nodes[$0].children[id]?.token == token }
    check(others.isEmpty, "two nodes work with one token")
    check(nodes[node].leases.tokens.contains(token), "a child without a lease")
    if let job = rows[id], job.token == token {
      check(job.failures < Self.maximumAttempts, "a child after \(job.failures) failures")
    }
    nodes[node].children[id] = Child(token: token, leaseEnd: leaseEnds[token] ?? 0)
    count("children")
    if id == poison {
      count("poisoned")
      return crash(node, for: milliseconds(2000))
    }
    let time = milliseconds(chance(20) ? 60_000 : 10_000)
    switch milliseconds(10) {
    case 0: schedule(.exit(token, nil, .signal(11)), on: node, in: time)
    case 1:
      let failure = WorkerFailure(code: "code", detail: "It failed.", retry: chance(70))
      schedule(.exit(token, .failure(failure), .status(1)), on: node, in: time)
    // The disk of its node.
    case 2: schedule(.exit(token, .failure(.diskFull), .status(1)), on: node, in: time)
    default: schedule(.exit(token, .result, .status(0)), on: node, in: time)
    }
  }

  private mutating func granted(_ token: AttemptToken, _ node: Int, _ sentAt: Int64, isNew: Bool = false) {
    let time = Double(sentAt) / 1000
    let limit =
      isNew
      ? nodes[node].leases.granted(token, askedAt: time) : nodes[node].leases.prolonged(token, askedAt: time)
    guard let limit else { return }
    let end = max(leaseEnds[token] ?? 0, sentAt + Int64(Self.terms.seconds * 1000))
    leaseEnds[token] = end
    nodes[node].children[token.job]?.leaseEnd = end
    // A clock goes on; this one must not stand at a limit that floating point has rounded up.
    schedule(.deadline(token), on: node, in: max(0, Int64((limit * 1000).rounded(.up)) + 1 - now))
  }

  private mutating func lose(_ token: AttemptToken, _ node: Int) {
    guard nodes[node].attempts[token.job] == token else { return }
    count("leases lost")
    take(.leaseLost(token.job), node)
  }

  private mutating func end(_ id: JobID, _ node: Int) {
    guard let token = nodes[node].attempts.removeValue(forKey: id) else { return }
    nodes[node].leases.ended(token)
  }

  private mutating func heard(_ answer: Answer, to call: Call, _ node: Int, _ sentAt: Int64) {
    switch (call, answer) {
    case (.submit(let job), .written): admit(job, node)
    case (.cancel, .written(let job)): take(.cancelled(job), node)
    case (.submit, .failed), (.cancel, .failed): schedule(.client(call), on: anyNode(), in: 1000)
    case (.claim(let id, _, _), .written(let job)):
      guard let token = job.token else { return violations.append("claimed without a token") }
      end(id, node)
      nodes[node].attempts[id] = token
      granted(token, node, sentAt, isNew: true)
      take(.claimed(id, attempts: job.attempts, failures: job.failures, losses: job.losses), node)
    case (.claim(let id, _, _), .refused(let job)):
      if job?.state == .queued { count("too early") }
      take(.refused(id, .init(job, at: Timestamp(milliseconds: now))), node)
    case (.claim(let id, _, _), _): take(.notBegun(id, nil), node)
    case (.renew(let token), .written): granted(token, node, sentAt)
    case (.renew(let token), .refused): lose(token, node)
    case (.renew(let token), _): if nodes[node].leases.isEnding(token, at: seconds) { lose(token, node) }
    case (.record(let id, let token?, .result), .failed):
      self.call(.record(id, token, .postponement(.catalogIsUnavailable)), on: node)
    case (.record(let id, _, let ending), .failed):
      switch ending {
      case .result, .retry: take(.recorded(id, .again), node)
      case .failure(let failure): take(.recorded(id, .unwritten(failure)), node)
      case .interruption: take(.recorded(id, .over(with: [])), node)
      case .postponement: take(.recorded(id, .postponed(seconds: 1)), node)
      }
    case (.record(let id, _, .retry), .written): take(.recorded(id, .again), node)
    case (.record(let id, _, .postponement), .written(let job)) where job.state == .queued:
      let early = (job.notBefore?.milliseconds ?? now) - now
      take(.recorded(id, .postponed(seconds: Double(max(early, 0)) / 1000)), node)
    case (.record(let id, _, _), .written): take(.recorded(id, .over(with: [])), node)
    case (.record(let id, let token, _), .refused(let job)):
      let hasWon = token.map { job?.hasWon($0) ?? false } ?? false
      let isUnwanted = job?.state == .cancelled && !hasWon
      let isOver = hasWon || token == nil
      take(.recorded(id, isUnwanted ? job.map { .unwanted($0) } ?? .lost : isOver ? .over(with: []) : .lost), node)
    case (.reread, .rows(let unfinished)):
      for job in unfinished { admit(job, node) }
      let ids = Set(unfinished.map(\.id))
      for id in nodes[node].known.subtracting(ids).sorted(by: { $0.text < $1.text }) { self.call(.look(id), on: node) }
    case (.look, .rows(let found)):
      guard let job = found.first else { return }
      if job.state.isFinished { follow(job, node) } else { admit(job, node) }
    default: break
    }
  }

  private mutating func admit(_ job: Job, _ node: Int) {
    if !nodes[node].known.contains(job.id) {
      guard job.isQueued(on: name(of: node)) else { return }
      nodes[node].known.insert(job.id)
      take(.submitted(job.id, WaveformJob.cost(samples: 1), Client(key: "")), node)
    }
    follow(job, node)
  }

  private mutating func follow(_ job: Job, _ node: Int) {
    switch HeardJob(job, isKnown: nodes[node].known.contains(job.id), on: name(of: node)) {
    case .nothing: break
    case .unknown: call(.look(job.id), on: node)
    case .event(let event): take(event, node)
    }
  }

  func name(of node: Int) -> String { "\(node)/\(nodes[node].run)" }

  mutating func checkChildren(of node: Int) {
    // What a stopped process has missed comes at the same moment, in some order.
    guard nodes[node].isUp, nodes[node].stoppedUntil < now else { return }
    check(nodes[node].children.count <= nodes[node].places, "more children than places")
    for child in nodes[node].children.values where !child.isKilled {
      check(child.leaseEnd > now, "the child of \(child.token.shortName) outlives its lease")
    }
  }
}
