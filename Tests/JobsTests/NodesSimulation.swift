import PresentRows
import Processing
import Randomness
import Storage
import Terms

@testable import Jobs

// Nodes that share a catalog, in virtual time. Real are `JobLifecycle`, `LeaseKeeper`, `HeardJob` and the transitions
// of Job+Lease; simulated are what performs their actions (`JobRunner`, `JobRecords`), the catalog, its feed, the
// children and the clock. Calls of the catalog take a while, and may fail before or after their commit; messages of the
// feed are late, lost, repeated and out of order. Nodes crash, are stopped for longer than a lease, are cut off from
// the catalog, and are drained. A job may kill the node that runs it.

/// One history of several nodes and jobs. The same seed gives the same history.
struct NodesSimulation {
  static let terms = LeaseHolder.Terms()
  private static let maximumAttempts = 3
  private static let faultsEnd: Int64 = 100_000

  /// A blocking call on a worker thread, which is one transaction.
  private enum Call {
    case submit(Job)
    case cancel(JobID)
    case claim(JobID, nonce: String)
    case renew(AttemptToken)
    case record(JobID, AttemptToken?, JobLifecycle.Ending)
    case reread
    case look(JobID)
  }

  private enum Answer {
    /// The caller doesn't know whether the transaction was committed.
    case failed
    case written(Job)
    case refused(Job?)
    case rows([Job])
  }

  private enum Event {
    case client(Call)
    case call(Call, sentAt: Int64)
    case answer(Answer, to: Call, sentAt: Int64)
    case heard(Job)
    case take(JobLifecycle.Event)
    case exit(AttemptToken, JobLifecycle.Verdict?, WorkerExit)
    case keepLeases
    case deadline(AttemptToken)
    case crash, stop, cut, drain, start
  }

  private struct Child {
    let token: AttemptToken
    var isKilled = false
    /// The end of its lease as far as the catalog has promised it.
    var leaseEnd: Int64
  }

  private struct Node {
    let places: Int
    /// Counts its starts; each makes another process.
    var run = 0
    var isUp = true
    var stoppedUntil: Int64 = 0
    var cutUntil: Int64 = 0
    var lifecycle: JobLifecycle
    var leases = LeaseKeeper(NodesSimulation.terms)
    var attempts: [JobID: AttemptToken] = [:]
    var children: [JobID: Child] = [:]
    var known: Set<JobID> = []
    var isStopping = false

    init(places: Int) {
      self.places = places
      lifecycle = JobLifecycle(
        .init(
          places: places, maximumAttempts: NodesSimulation.maximumAttempts, retryPauseSeconds: 0.25, stallSeconds: 600,
          secondsPerProcessorSecond: 10))
    }
  }

  private var random: TestRandom
  private var now: Int64 = 0
  private var events = EventHeap<(node: Int, run: Int, event: Event)>()
  /// The last one only answers clients.
  private var nodes = [Node(places: 2), Node(places: 1), Node(places: 2), Node(places: 0)]
  // The catalog.
  private var rows: [JobID: Job] = [:]
  private var order: [JobID] = []
  private var unfinished = 0
  /// The job whose child brings down its node.
  private var poison: JobID?
  /// How many attempts of a hundred the store of media fails.
  private let storeFaults: Int
  private let hasPoison: Bool
  /// Attempts that may count toward a job's tries: they failed by themselves, or their node couldn't write their end.
  private var failed: Set<AttemptToken> = []
  private var submissionsLeft: Int
  private var finishedAt: Int64 = 0

  private(set) var violations: [String] = []
  /// How often each thing happened, to see that the histories are rich.
  private(set) var counts: [String: Int] = [:]

  /// `hasPoison`: whether one of the jobs brings down its nodes.
  init(seed: Int, jobs: Int, hasPoison: Bool) {
    random = TestRandom(for: seed)
    storeFaults = [0, 5, 60][(seed % 3 + 3) % 3]
    submissionsLeft = jobs
    self.hasPoison = hasPoison
  }

  // MARK: Running

  /// Runs the history to its end and checks the invariants.
  mutating func run() {
    for node in nodes.indices { schedule(.start, on: node, in: milliseconds(2000)) }
    for number in 0..<submissionsLeft {
      let job = Job(kind: .waveform, recording: RecordingID(), createdAt: Timestamp(milliseconds: 0))
      if number == 0, hasPoison { poison = job.id }
      schedule(.client(.submit(job)), on: anyNode(), in: milliseconds(30_000))
      if job.id != poison, chance(15) { schedule(.client(.cancel(job.id)), on: anyNode(), in: milliseconds(60_000)) }
    }
    for fault in [Event.crash, .stop, .cut, .drain] {
      for _ in 0..<Int.random(in: 0..<4, using: &random) {
        schedule(fault, on: anyNode(), in: milliseconds(Self.faultsEnd))
      }
    }
    while let (time, item) = events.pop() {
      now = max(now, time)
      handle(item.event, item.node, item.run, item)
      if hasEnded || !violations.isEmpty { break }
    }
    checkEnd()
  }

  private mutating func milliseconds(_ limit: Int64) -> Int64 { Int64.random(in: 0..<limit, using: &random) }

  private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  private mutating func anyNode() -> Int { Int.random(in: nodes.indices, using: &random) }

  private mutating func check(_ condition: Bool, _ message: @autoclosure () -> String) {
    if !condition { violations.append(message()) }
  }

  private mutating func count(_ what: String) { counts[what, default: 0] += 1 }

  private mutating func schedule(_ event: Event, on node: Int, in delay: Int64) {
    events.push((node, nodes[node].run, event), at: now + delay)
  }

  private var isCalm: Bool { now > Self.faultsEnd }

  /// Usually short; sometimes longer than a lease.
  private mutating func delay() -> Int64 {
    isCalm || chance(70) ? milliseconds(50) : milliseconds(chance(5) ? 40_000 : 2000)
  }

  /// Whether all jobs have ended and every node has had the time to hear of it, or one of the two takes forever.
  private var hasEnded: Bool {
    guard submissionsLeft == 0, unfinished == 0 else { return now > 3_000_000 }
    return isCalm && now > finishedAt + 200_000
  }

  private mutating func handle(_ event: Event, _ node: Int, _ run: Int, _ item: (Int, Int, Event)) {
    switch event {
    case .call(let call, let sentAt):
      // A node's process may be gone by now; its transaction goes on.
      let isCutOff = nodes[node].cutUntil > now
      guard !isCutOff, isCalm || !chance(2) else { return fail(call, node, run, sentAt) }
      let answer = apply(call, by: "\(node)/\(run)")
      guard isCalm || !chance(2) else { return fail(call, node, run, sentAt) }
      events.push((node, run, .answer(answer, to: call, sentAt: sentAt)), at: now + delay())
    case .client(let call):
      let isReachable = nodes[node].isUp && nodes[node].stoppedUntil <= now
      // Clients try again elsewhere.
      guard isReachable else { return schedule(.client(call), on: anyNode(), in: 1000) }
      self.call(call, on: node)
    case .crash:
      guard nodes[node].isUp else { return }
      crash(node, for: milliseconds(40_000))
    case .start: start(node)
    case .drain:
      guard nodes[node].isUp, !nodes[node].isStopping else { return }
      guard nodes[node].stoppedUntil <= now else { return events.push(item, at: nodes[node].stoppedUntil) }
      count("drains")
      take(.drain, node)
      schedule(.take(.stop), on: node, in: milliseconds(20_000))
    case .stop:
      // What waits for the end of an earlier stop must not be late.
      nodes[node].stoppedUntil = max(nodes[node].stoppedUntil, now + milliseconds(80_000))
      count("stops")
    case .cut:
      nodes[node].cutUntil = now + milliseconds(60_000)
      count("cuts")
    default:
      guard nodes[node].isUp, nodes[node].run == run else { return }
      // A stopped process goes on later, with what it believes.
      guard nodes[node].stoppedUntil <= now else { return events.push(item, at: nodes[node].stoppedUntil) }
      act(event, node)
      checkChildren(of: node)
    }
  }

  /// Reports to a call's node, after a timeout, that it failed.
  private mutating func fail(_ call: Call, _ node: Int, _ run: Int, _ sentAt: Int64) {
    count("failed calls")
    switch call {
    case .claim(let id, let nonce):
      if let token = rows[id]?.token, token.nonce == nonce { failed.insert(token) }
    case .record(_, let token?, .result), .record(_, let token?, .retry), .record(_, let token?, .failure),
      .record(_, let token?, .postponement):
      failed.insert(token)
    default: break
    }
    events.push((node, run, .answer(.failed, to: call, sentAt: sentAt)), at: now + milliseconds(10_000))
  }

  // MARK: The nodes, as JobRunner and JobRecords are

  private mutating func start(_ node: Int) {
    let (run, cutUntil) = (nodes[node].run + 1, nodes[node].cutUntil)
    nodes[node] = Node(places: nodes[node].places)
    (nodes[node].run, nodes[node].cutUntil) = (run, cutUntil)
    call(.reread, on: node)
    schedule(.keepLeases, on: node, in: milliseconds(5000))
  }

  private mutating func crash(_ node: Int, for time: Int64) {
    nodes[node].isUp = false
    nodes[node].children = [:]
    schedule(.start, on: node, in: time)
    count("crashes")
  }

  private mutating func call(_ call: Call, on node: Int) { schedule(.call(call, sentAt: now), on: node, in: delay()) }

  private mutating func act(_ event: Event, _ node: Int) {
    switch event {
    case .take(let event): take(event, node)
    case .heard(let job): follow(job, node)
    case .exit(let token, let verdict, let exit):
      guard let child = nodes[node].children[token.job], child.token == token else { return }
      nodes[node].children[token.job] = nil
      let isSuccess = verdict == .result && exit == .status(0)
      if !isSuccess, !child.isKilled { failed.insert(token) }
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

  private var seconds: Double { Double(now) / 1000 }

  private mutating func take(_ event: JobLifecycle.Event, _ node: Int) {
    if case .stop = event { nodes[node].isStopping = true }
    for action in nodes[node].lifecycle.on(event, at: seconds) { perform(action, node) }
  }

  private mutating func perform(_ action: JobLifecycle.Action, _ node: Int) {
    switch action {
    case .claim(let id):
      call(.claim(id, nonce: String(UInt64.random(in: 1 << 60...UInt64.max, using: &random), radix: 16)), on: node)
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
    default: schedule(.exit(token, .result, .status(0)), on: node, in: time)
    }
  }

  /// What the catalog has promised to each attempt, to the knowledge of its node.
  private var leaseEnds: [AttemptToken: Int64] = [:]

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
    case (.claim(let id, _), .written(let job)):
      guard let token = job.token else { return violations.append("claimed without a token") }
      end(id, node)
      nodes[node].attempts[id] = token
      granted(token, node, sentAt, isNew: true)
      take(.claimed(id, attempts: job.attempts, failures: job.failures, losses: job.losses), node)
    case (.claim(let id, _), .refused(let job)):
      if job?.state == .queued { count("too early") }
      take(.refused(id, .init(job, at: Timestamp(milliseconds: now))), node)
    case (.claim(let id, _), _): take(.notBegun(id, nil), node)
    case (.renew(let token), .written): granted(token, node, sentAt)
    case (.renew(let token), .refused): lose(token, node)
    case (.renew(let token), _): if nodes[node].leases.isEnding(token, at: seconds) { lose(token, node) }
    case (.record(let id, let token?, .result), .failed):
      self.call(.record(id, token, .retry(.status(0), JobLifecycle.gaveUp)), on: node)
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

  private func name(of node: Int) -> String { "\(node)/\(nodes[node].run)" }

  private mutating func checkChildren(of node: Int) {
    // What a stopped process has missed comes at the same moment, in some order.
    guard nodes[node].isUp, nodes[node].stoppedUntil < now else { return }
    check(nodes[node].children.count <= nodes[node].places, "more children than places")
    for child in nodes[node].children.values where !child.isKilled {
      check(child.leaseEnd > now, "the child of \(child.token.shortName) outlives its lease")
    }
  }

  // MARK: The catalog

  private mutating func apply(_ call: Call, by name: String) -> Answer {
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
    case .claim(let id, let nonce):
      return move(id, by: name) { $0.claim(by: name, nonce: nonce, until: time + Self.terms.seconds, at: time) }
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

  // MARK: The end

  private mutating func checkEnd() {
    guard violations.isEmpty else { return }
    for (index, id) in order.enumerated() {
      guard let job = rows[id] else { continue }
      let places = nodes.indices.filter { nodes[$0].known.contains(id) }
      check(job.state.isFinished, "job \(index) is \(job.state) forever, and known to nodes \(places)")
      check(places.isEmpty, "job \(index) is \(job.state), and nodes \(places) still have it")
      // An attempt that gives a job up counts too, and is repeated if it can't write that.
      let tries = failed.count { $0.job == id }
      let most = max(Self.maximumAttempts, tries) + (job.state == .succeeded ? 0 : 1)
      check(job.failures <= most, "\(job.failures) failures, \(job.state)")
      check(job.losses <= JobLifecycle.maximumLosses, "\(job.losses) losses")
      check(job.postponements <= Job.postponementLimit, "\(job.postponements) postponements")
      guard id == poison, job.state != .cancelled else { continue }
      check(job.state == .failed, "a job that brings down its nodes has \(job.state)")
      // Or it couldn't even begin too often.
      check(
        job.losses == JobLifecycle.maximumLosses || job.postponements == Job.postponementLimit
          || tries >= Self.maximumAttempts,
        "it was given up after \(job.losses) losses and \(tries) failures")
    }
    for node in nodes.indices {
      check(nodes[node].isUp && !nodes[node].isStopping, "node \(node) hasn't come back")
      check(nodes[node].children.isEmpty && nodes[node].attempts.isEmpty, "node \(node) still works")
      check(nodes[node].leases.tokens.isEmpty, "node \(node) still renews leases")
      // Every place is free if that many jobs can begin.
      for _ in 0..<nodes[node].places {
        let event = JobLifecycle.Event.submitted(JobID(), WaveformJob.cost(samples: 1), Client(key: ""))
        check(nodes[node].lifecycle.on(event, at: seconds).count == 1, "a place is still taken")
      }
    }
  }
}
