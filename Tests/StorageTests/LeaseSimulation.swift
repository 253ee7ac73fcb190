import PresentRows
import Randomness
import Storage

// Nodes that share a catalog and a store of files, in virtual time. The catalog applies the transitions of Job+Lease;
// everything between a node and the catalog or the store takes a while, sometimes long, and what comes back may be
// lost. Nodes crash, and are stopped for longer than a lease.

/// One history of several nodes and jobs. The same seed gives the same history.
struct LeaseSimulation {
  static let terms = LeaseHolder.Terms()
  private static let maximumFailures = 3
  private static let maximumLosses = 10
  private static let nodeCount = 3

  /// A request to the catalog, which is one transaction.
  private enum Request {
    case claim(Int, nonce: String)
    case renew(AttemptToken)
    case finish(AttemptToken)
    case fail(AttemptToken)
    case giveBack(AttemptToken, interrupted: Bool)
  }

  private enum Answer {
    case claimed(Job)
    case done
    /// The attempt doesn't hold its job; `hasWon` is whether its result is the job's.
    case refused(hasWon: Bool)
  }

  private enum Event {
    case poll(node: Int, run: Int)
    case arrive(Request, node: Int, run: Int, sentAt: Int64)
    case answer(Answer, to: Request, node: Int, run: Int, sentAt: Int64)
    case renewal(AttemptToken, node: Int, run: Int)
    case deadline(AttemptToken, node: Int, run: Int)
    case worked(AttemptToken, node: Int, run: Int)
    /// A file reaches the store, even if its node is gone.
    case stored(AttemptToken)
    case put(AttemptToken, node: Int, run: Int)
    case crash(node: Int)
    case start(node: Int)
    case stop(node: Int)
  }

  private struct Holder {
    let token: AttemptToken
    let node: String
    var leaseEnd: Timestamp
  }

  private struct Worker {
    var deadline: Int64
    var hasChild = true
    /// The end of the lease as far as the catalog has promised it.
    var leaseEnd: Int64
  }

  private struct Node {
    /// Counts its starts; each makes another process.
    var run = 0
    var isUp = true
    /// Until then, it's stopped.
    var stoppedUntil: Int64 = 0
    var workers: [AttemptToken: Worker] = [:]
  }

  private var random: TestRandom
  private var now: Int64 = 0
  private var events = EventHeap<Event>()
  private var nodes = [Node](repeating: Node(), count: nodeCount)
  // The catalog and the store.
  private var jobs: [Job]
  private var due: [AttemptToken: Int64] = [:]
  private var files: Set<AttemptToken> = []
  /// What the catalog should say, by the order of its transactions alone.
  private var holders: [Holder?]
  private var finishes: [Int]
  private var starts: [Int]
  private var losses: [Int]

  private(set) var violations: [String] = []
  /// How often each thing happened, to see that the histories are rich.
  private(set) var counts: [String: Int] = [:]

  init(seed: Int, jobs count: Int) {
    random = TestRandom(for: seed)
    jobs = (0..<count).map { _ in Job(kind: .waveform, recording: RecordingID(), createdAt: Timestamp(milliseconds: 0))
    }
    holders = Array(repeating: nil, count: count)
    finishes = Array(repeating: 0, count: count)
    (starts, losses) = (finishes, finishes)
  }

  // MARK: Running

  /// Runs the history to its end and checks the invariants.
  mutating func run() {
    for node in nodes.indices { schedule(.poll(node: node, run: 0), in: milliseconds(5000)) }
    for _ in 0..<Int.random(in: 0..<4, using: &random) {
      schedule(.crash(node: Int.random(in: nodes.indices, using: &random)), in: milliseconds(200_000))
    }
    for _ in 0..<Int.random(in: 0..<4, using: &random) {
      schedule(.stop(node: Int.random(in: nodes.indices, using: &random)), in: milliseconds(200_000))
    }
    while let (time, event) = events.pop() {
      now = max(now, time)
      handle(event)
      if now > 5_000_000 { return violations.append("the history doesn't end") }
    }
    checkEnd()
  }

  private mutating func milliseconds(_ limit: Int64) -> Int64 { Int64.random(in: 0..<limit, using: &random) }

  private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  private mutating func check(_ condition: Bool, _ message: String) {
    if !condition { violations.append(message) }
  }

  private mutating func count(_ what: String) { counts[what, default: 0] += 1 }

  private mutating func schedule(_ event: Event, in delay: Int64) { events.push(event, at: now + delay) }

  /// Usually short; sometimes longer than a lease.
  private mutating func delay() -> Int64 { chance(3) ? milliseconds(60_000) : milliseconds(chance(20) ? 3000 : 50) }

  private mutating func handle(_ event: Event) {
    switch event {
    case .arrive(let request, let node, let run, let sentAt):
      let answer = apply(request, by: node, run)
      // An answer may be lost: the node doesn't know whether its transaction was committed.
      if !chance(3) { schedule(.answer(answer, to: request, node: node, run: run, sentAt: sentAt), in: delay()) }
    case .stored(let token):
      files.insert(token)
    case .crash(let node): crash(node)
    case .start(let node): start(node)
    case .stop(let node):
      nodes[node].stoppedUntil = now + milliseconds(120_000)
      count("stops")
    case .poll(let node, let run), .renewal(_, let node, let run), .deadline(_, let node, let run),
      .worked(_, let node, let run), .put(_, let node, let run), .answer(_, _, let node, let run, _):
      guard nodes[node].isUp, nodes[node].run == run else { return }
      // A stopped process goes on later, with what it believes.
      if nodes[node].stoppedUntil > now { return events.push(event, at: nodes[node].stoppedUntil) }
      act(event, node, run)
      for (token, worker) in nodes[node].workers where worker.hasChild && worker.leaseEnd < now {
        check(false, "the child of \(token.shortName) outlives its lease")
      }
    }
  }

  // MARK: The nodes

  private mutating func act(_ event: Event, _ node: Int, _ run: Int) {
    // As soon as a node goes on, its clock shows which leases have come near their end.
    for (token, worker) in nodes[node].workers where worker.hasChild && worker.deadline <= now { drop(token, node) }
    switch event {
    case .poll: poll(node)
    case .renewal(let token, _, _):
      guard nodes[node].workers[token] != nil else { return }
      send(.renew(token), from: node)
      schedule(.renewal(token, node: node, run: run), in: Int64(Self.terms.renewalSeconds * 1000))
    case .worked(let token, _, _):
      guard nodes[node].workers[token]?.hasChild == true else { return }
      nodes[node].workers[token]?.hasChild = false
      if chance(15) {
        send(.giveBack(token, interrupted: false), from: node)
      } else {
        // The file may be in the store before or after its node hears of it.
        let time = delay()
        schedule(.stored(token), in: time)
        schedule(.put(token, node: node, run: run), in: time + milliseconds(20))
      }
    case .put(let token, _, _):
      guard nodes[node].workers[token] != nil else { return }
      send(.finish(token), from: node)
      // Sent twice, and the second maybe late.
      if chance(10) { schedule(.arrive(.finish(token), node: node, run: run, sentAt: now), in: milliseconds(90_000)) }
    case .answer(let answer, let request, _, _, let sentAt): heard(answer, request, node, sentAt)
    default: break
    }
  }

  private mutating func poll(_ node: Int) {
    expire()
    collect()
    if !nodes[node].workers.isEmpty || jobs.contains(where: { !$0.state.isFinished }) {
      schedule(.poll(node: node, run: nodes[node].run), in: Int64(Self.terms.renewalSeconds * 1000))
    }
    // An end that it has sent, and of which it doesn't know whether it was committed, it sends again.
    for (token, worker) in nodes[node].workers where !worker.hasChild && chance(50) {
      send(files.contains(token) ? .finish(token) : .giveBack(token, interrupted: false), from: node)
    }
    guard nodes[node].workers.count < 2 else { return }
    let mine = Set(nodes[node].workers.keys.map(\.job))
    let free = jobs.indices.filter { index in
      let job = jobs[index]
      return !mine.contains(job.id)
        && (job.state == .queued || job.state == .running && job.node == name(of: node, nodes[node].run))
    }
    guard let job = free.randomElement(using: &random) else { return }
    let nonce = String(UInt64.random(in: 1 << 60...UInt64.max, using: &random), radix: 16)
    send(.claim(job, nonce: nonce), from: node)
  }

  private mutating func send(_ request: Request, from node: Int) {
    schedule(.arrive(request, node: node, run: nodes[node].run, sentAt: now), in: delay())
  }

  private mutating func heard(_ answer: Answer, _ request: Request, _ node: Int, _ sentAt: Int64) {
    let (lease, margin) = (Int64(Self.terms.seconds * 1000), Int64(Self.terms.marginSeconds * 1000))
    let run = nodes[node].run
    switch (request, answer) {
    case (.claim, .claimed(let job)):
      guard let token = job.token else { return violations.append("claimed without a token") }
      // The answer took longer than the lease allows: the attempt is left to expire.
      guard sentAt + lease - margin > now, nodes[node].workers.keys.allSatisfy({ $0.job != job.id }) else { return }
      nodes[node].workers[token] = Worker(
        deadline: sentAt + lease - margin, leaseEnd: job.leaseUntil?.milliseconds ?? 0)
      if job.failures >= Self.maximumFailures || job.interruptions >= Self.maximumLosses {
        nodes[node].workers[token]?.hasChild = false
        return send(.fail(token), from: node)
      }
      if let index = jobs.firstIndex(where: { $0.id == job.id }) { starts[index] += 1 }
      schedule(.worked(token, node: node, run: run), in: milliseconds(chance(30) ? 90_000 : 20_000))
      schedule(.renewal(token, node: node, run: run), in: Int64(Self.terms.renewalSeconds * 1000))
      schedule(.deadline(token, node: node, run: run), in: sentAt + lease - margin - now)
    case (.renew(let token), .done):
      guard nodes[node].workers[token] != nil else { return }
      let deadline = sentAt + lease - margin
      if deadline > nodes[node].workers[token]?.deadline ?? 0 {
        nodes[node].workers[token]?.deadline = deadline
        // The catalog set the end when the request arrived, which was later than it was sent.
        nodes[node].workers[token]?.leaseEnd = sentAt + lease
        schedule(.deadline(token, node: node, run: run), in: deadline - now)
      }
    case (.renew(let token), .refused) where nodes[node].workers[token]?.hasChild != false: drop(token, node)
    // Without a child, it has sent its end, and may never have heard how that went.
    case (.finish(let token), .refused(hasWon: false)), (.fail(let token), .refused(hasWon: false)),
      (.giveBack(let token, _), .refused(hasWon: false)), (.renew(let token), .refused(hasWon: false)):
      // Its files are its own: no other attempt's have these names.
      nodes[node].workers[token] = nil
      files.remove(token)
      checkNotNamed(token, "an attempt removed")
      count("refused")
    case (.finish(let token), _), (.fail(let token), _), (.giveBack(let token, _), _), (.renew(let token), _):
      nodes[node].workers[token] = nil
    case (.claim, _): break
    }
  }

  /// Kills a child whose lease is lost or about to end.
  private mutating func drop(_ token: AttemptToken, _ node: Int) {
    guard nodes[node].workers[token]?.hasChild == true else { return }
    nodes[node].workers[token] = nil
    send(.giveBack(token, interrupted: true), from: node)
    count("dropped")
  }

  private mutating func crash(_ node: Int) {
    guard nodes[node].isUp else { return }
    nodes[node].isUp = false
    nodes[node].workers = [:]
    schedule(.start(node: node), in: milliseconds(60_000))
    count("crashes")
  }

  private mutating func start(_ node: Int) {
    nodes[node].isUp = true
    nodes[node].run += 1
    nodes[node].stoppedUntil = 0
    schedule(.poll(node: node, run: nodes[node].run), in: 0)
  }

  // MARK: The catalog

  private func name(of node: Int, _ run: Int) -> String { "\(node)/\(run)" }

  private mutating func apply(_ request: Request, by node: Int, _ run: Int) -> Answer {
    let (time, name) = (Timestamp(milliseconds: now), name(of: node, run))
    let end = time + Self.terms.seconds
    switch request {
    case .claim(let index, let nonce):
      // An attempt of the same node whose end or beginning was lost.
      if jobs[index].state == .running, jobs[index].node == name { losses[index] += 1 }
      let isClaimed = move(index, hasWritten: true) { $0.claim(by: name, nonce: nonce, until: end, at: time) }
      guard isClaimed, let token = jobs[index].token else { return .refused(hasWon: false) }
      check(holders[index].map { $0.node == name } ?? true, "a job was taken from the node that works on it")
      holders[index] = Holder(token: token, node: name, leaseEnd: end)
      return .claimed(jobs[index])
    case .renew(let token):
      let answer = transition(token, hasWritten: false) { $0.renew(token, until: end) }
      for index in jobs.indices where holders[index]?.token == token { holders[index]?.leaseEnd = end }
      return answer
    case .finish(let token): return transition(token, hasWritten: true) { $0.succeed(token, with: "", at: time) }
    case .fail(let token):
      return transition(token, hasWritten: true) { $0.fail(token, error: "", progress: 0, at: time) }
    case .giveBack(let token, let interrupted):
      let held = holders.firstIndex { $0?.token == token }
      if interrupted, let held { losses[held] += 1 }
      return transition(token, hasWritten: true) { $0.giveBack(token, interrupted: interrupted) }
    }
  }

  private mutating func transition(
    _ token: AttemptToken, hasWritten: Bool, _ change: (inout Job) -> Bool
  ) -> Answer {
    guard let index = jobs.firstIndex(where: { $0.id == token.job }) else { return .refused(hasWon: false) }
    let isHeld = holders[index]?.token == token
    let isDone = move(index, hasWritten: hasWritten, change)
    check(isDone == isHeld, "a write was \(isDone ? "accepted from a stale" : "refused to the holding") attempt")
    return isDone ? .done : .refused(hasWon: jobs[index].hasWon(token))
  }

  private mutating func move(_ index: Int, hasWritten: Bool, _ change: (inout Job) -> Bool) -> Bool {
    let before = jobs[index]
    var job = before
    guard change(&job) else {
      check(job == before, "a refused transition changed the job")
      return false
    }
    jobs[index] = job
    if let ended = EndedAttempt(before, job, hasWritten: hasWritten) {
      if job.state != .running { holders[index] = nil }
      if ended.mayHaveFiles { due[ended.token] = now + Int64(Self.terms.graceSeconds * 1000) }
      count("\(ended.ending)")
    }
    check(!before.state.isFinished, "a finished job was changed")
    if job.state.isFinished { finishes[index] += 1 }
    if job.state == .succeeded, let nonce = job.nonce {
      let token = AttemptToken(job: job.id, attempt: job.attempts, nonce: nonce)
      check(files.contains(token), "a job has finished with a file that isn't there")
    }
    return true
  }

  /// Every node does this at every poll.
  private mutating func expire() {
    let time = Timestamp(milliseconds: now)
    for index in jobs.indices {
      let holder = holders[index]
      guard move(index, hasWritten: true, { $0.expire(at: time, orIf: { _ in false }) }) else { continue }
      losses[index] += 1
      check(holder.map { $0.leaseEnd < time } ?? false, "a lease was ended before its time")
    }
  }

  private mutating func collect() {
    for (token, time) in due where time <= now {
      files.remove(token)
      due[token] = nil
      checkNotNamed(token, "the collection removed")
    }
  }

  private mutating func checkNotNamed(_ token: AttemptToken, _ words: String) {
    let isNamed = jobs.contains { $0.hasWon(token) }
    check(!isNamed, "\(words) the file of a finished job")
  }

  // MARK: The end

  private mutating func checkEnd() {
    now += Int64(Self.terms.graceSeconds * 1000) + 1
    collect()
    for (index, job) in jobs.enumerated() {
      check(job.state.isFinished, "a job was lost")
      check(finishes[index] == 1, "a job finished \(finishes[index]) times")
      check(job.interruptions == losses[index], "\(job.interruptions) losses were counted, not \(losses[index])")
      check(starts[index] - job.interruptions <= Self.maximumFailures, "\(starts[index]) children")
    }
    let named = jobs.filter { $0.state == .succeeded }.compactMap { job in
      job.nonce.map { AttemptToken(job: job.id, attempt: job.attempts, nonce: $0) }
    }
    check(files == Set(named), "\(files.count) files in the end, and \(named.count) results")
  }
}
