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
  static let maximumAttempts = 3
  private static let faultsEnd: Int64 = 100_000

  /// A blocking call on a worker thread, which is one transaction.
  enum Call {
    case submit(Job)
    case cancel(JobID)
    case claim(JobID, nonce: String, failed: Int?)
    case renew(AttemptToken)
    case record(JobID, AttemptToken?, JobLifecycle.Ending)
    case reread
    case look(JobID)
  }

  enum Answer {
    /// The caller doesn't know whether the transaction was committed.
    case failed
    case written(Job)
    case refused(Job?)
    case rows([Job])
  }

  enum Event {
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

  struct Child {
    let token: AttemptToken
    var isKilled = false
    /// The end of its lease as far as the catalog has promised it.
    var leaseEnd: Int64
  }

  struct Node {
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
          secondsPerProcessorSecond: 10), hasOtherNodes: true)
    }
  }

  var random: TestRandom
  var now: Int64 = 0
  private var events = EventHeap<(node: Int, run: Int, event: Event)>()
  /// The last one only answers clients.
  var nodes = [Node(places: 2), Node(places: 1), Node(places: 2), Node(places: 0)]
  /// What the catalog has promised to each attempt, to the knowledge of its node.
  var leaseEnds: [AttemptToken: Int64] = [:]
  // The catalog.
  var rows: [JobID: Job] = [:]
  var order: [JobID] = []
  var unfinished = 0
  /// The job whose child brings down its node.
  var poison: JobID?
  /// How many attempts of a hundred the store of media fails.
  let storeFaults: Int
  private let hasPoison: Bool
  /// Attempts that may count toward a job's tries: they failed by themselves.
  var failed: Set<AttemptToken> = []
  var submissionsLeft: Int
  var finishedAt: Int64 = 0

  var violations: [String] = []
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

  mutating func milliseconds(_ limit: Int64) -> Int64 { Int64.random(in: 0..<limit, using: &random) }

  mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  mutating func anyNode() -> Int { Int.random(in: nodes.indices, using: &random) }

  mutating func check(_ condition: Bool, _ message: @autoclosure () -> String) {
    if !condition { violations.append(message()) }
  }

  mutating func count(_ what: String) { counts[what, default: 0] += 1 }

  mutating func schedule(_ event: Event, on node: Int, in delay: Int64) {
    events.push((node, nodes[node].run, event), at: now + delay)
  }

  var isCalm: Bool { now > Self.faultsEnd }

  /// Usually short; sometimes longer than a lease.
  mutating func delay() -> Int64 {
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
  mutating func fail(_ call: Call, _ node: Int, _ run: Int, _ sentAt: Int64) {
    count("failed calls")
    switch call {
    case .record(_, let token?, .failure): failed.insert(token)
    default: break
    }
    events.push((node, run, .answer(.failed, to: call, sentAt: sentAt)), at: now + milliseconds(10_000))
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
