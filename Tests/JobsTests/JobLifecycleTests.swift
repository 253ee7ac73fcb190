import PresentRows
import Processing
import Randomness
import Storage
import Terms
import Testing
import Workers

@testable import Jobs

@Suite struct JobLifecycleTests {
  // MARK: Any order of events

  @Test(
    "the invariants hold whatever the order of events", arguments: 0..<8)
  func anyOrder(batch: Int) {
    var (events, results) = (0, 0)
    for run in 0..<250 {
      var world = LifecycleWorld(TestRandom(for: batch * 1000 + run))
      for _ in 0..<(run % 3) { world.live(jobs: 3, cancelling: true, ending: true) }
      world.live(jobs: 3, cancelling: run % 2 == 0, ending: false)
      world.checkEnd()
      #expect(world.violations.isEmpty, "run \(batch * 1000 + run)")
      if !world.violations.isEmpty { return }
      events += world.events
      results += world.results
    }
    #expect(events > 10_000 && results > 100)
  }

  // MARK: One attempt

  @Test func aJobGoesFromItsRowToItsResult() {
    let driver = LifecycleDriver()
    let id = JobID()
    #expect(driver.submit(id) == ["claim"])
    #expect(driver.on(.claimed(id, attempts: 1, failures: 0)) == ["prepare"])
    #expect(driver.on(.prepared(id, LifecycleDriver.fence)) == ["start 0", "watch 75.0"])
    #expect(driver.on(.progressed(id, diskIsFull: false)) == [])
    #expect(driver.on(.reported(id, .result)) == [])
    #expect(driver.on(.exited(id, .status(0))) == ["result"])
    #expect(driver.on(.recorded(id, .over(with: []))) == ["forget"])
  }

  @Test(
    "a child that dies after its report has not succeeded",
    arguments: [WorkerExit.status(1), .signal(9), .signal(11), .notStarted(errno: 2)])
  func diesAfterItsReport(exit: WorkerExit) {
    let driver = LifecycleDriver()
    let id = driver.running()
    driver.on(.reported(id, .result))
    #expect(driver.on(.exited(id, exit)) == ["retry worker_failed"])
  }

  @Test func aChildThatExitsWithoutAResultHasFailed() {
    let (driver, other) = (LifecycleDriver(), LifecycleDriver())
    let (id, second) = (driver.running(), other.running())
    #expect(driver.on(.exited(id, .status(0))) == ["retry worker_failed"])
    // The last report counts.
    other.on(.reported(second, .result))
    other.on(.reported(second, nil))
    #expect(other.on(.exited(second, .status(0))) == ["retry worker_failed"])
  }

  @Test func aFailureThatTheChildReportsIsTheReason() {
    let driver = LifecycleDriver()
    let (id, failure) = (driver.running(), WorkerFailure(code: "unsupported_media", detail: "", retry: false))
    driver.on(.reported(id, .failure(failure)))
    #expect(driver.on(.exited(id, .status(1))) == ["failure unsupported_media"])
  }

  @Test func eachPauseIsTwiceAsLongAsTheLast() {
    let driver = LifecycleDriver(maximumAttempts: 20)
    let id = JobID()
    driver.submit(id)
    var pauses: [[String]] = []
    for attempt in 1...13 {
      driver.start(id, attempt: attempt)
      driver.on(.exited(id, .signal(9)))
      pauses.append(driver.on(.recorded(id, .again)))
      #expect(driver.on(.pauseEnded(id)) == ["claim"])
    }
    let seconds = [0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 256, 256, 256]
    #expect(pauses == seconds.map { ["pause \($0)"] })
  }

  @Test func aJobFailsAfterItsLastAttempt() {
    let driver = LifecycleDriver(maximumAttempts: 3)
    let id = JobID()
    driver.submit(id)
    for attempt in 1...2 {
      driver.start(id, attempt: attempt)
      #expect(driver.on(.exited(id, .signal(9))) == ["retry worker_failed"])
      driver.on(.recorded(id, .again))
      driver.on(.pauseEnded(id))
    }
    driver.start(id, attempt: 3)
    #expect(driver.on(.exited(id, .signal(9))) == ["failure worker_failed"])
  }

  @Test func interruptedAttemptsDoNotCount() {
    let driver = LifecycleDriver(maximumAttempts: 3)
    let (id, other) = (JobID(), JobID())
    driver.submit(id)
    #expect(driver.on(.claimed(id, attempts: 9, failures: 2)) == ["prepare"])
    driver.on(.prepared(id, LifecycleDriver.fence))
    #expect(driver.on(.exited(id, .signal(9))) == ["failure worker_failed"])
    driver.on(.recorded(id, .over(with: [])))
    // A crash after the claim counts as an interruption. According to its row, this job has failed three times, so it
    // is not tried again.
    driver.submit(other)
    #expect(driver.on(.claimed(other, attempts: 4, failures: 3)) == ["failure worker_failed"])
  }

  @Test func aJobThatWasLostTenTimesFails() {
    let driver = LifecycleDriver()
    let (id, other) = (JobID(), JobID())
    driver.submit(id)
    #expect(driver.on(.claimed(id, attempts: 10, failures: 0, losses: 9)) == ["prepare"])
    driver.on(.prepared(id, LifecycleDriver.fence))
    driver.on(.exited(id, .signal(9)))
    driver.on(.recorded(id, .over(with: [])))
    driver.submit(other)
    #expect(driver.on(.claimed(other, attempts: 11, failures: 0, losses: 10)) == ["failure worker_failed"])
  }

  // MARK: Leases

  @Test func aChildWhoseLeaseIsLostIsKilledAndItsJobGivenBack() {
    let driver = LifecycleDriver()
    let id = driver.running()
    #expect(driver.on(.leaseLost(id)) == ["kill"])
    #expect(driver.on(.leaseLost(id)) == [], "it is killed once")
    // Even if it has just succeeded.
    driver.on(.reported(id, .result))
    #expect(driver.on(.exited(id, .status(0))) == ["interruption"])
    #expect(driver.on(.recorded(id, .over(with: []))) == ["forget"])
  }

  @Test func noChildIsStartedAfterTheLeaseIsLost() {
    for isReady in [true, false] {
      let driver = LifecycleDriver()
      let id = JobID()
      driver.submit(id)
      driver.on(.claimed(id, attempts: 1, failures: 0))
      #expect(driver.on(.leaseLost(id)) == [])
      let event = isReady ? JobLifecycle.Event.prepared(id, LifecycleDriver.fence) : .notBegun(id, nil)
      #expect(driver.on(event) == ["interruption"])
      #expect(driver.on(.recorded(id, .over(with: []))) == ["forget"])
      // The next attempt has a lease of its own.
      driver.submit(id)
      driver.on(.claimed(id, attempts: 2, failures: 0, losses: 1))
      #expect(driver.on(.prepared(id, LifecycleDriver.fence)).first == "start 0")
    }
  }

  @Test func aJobThatIsAnotherAttemptsIsForgotten() {
    let driver = LifecycleDriver()
    let (id, next) = (driver.running(), JobID())
    driver.on(.reported(id, .result))
    #expect(driver.on(.exited(id, .status(0))) == ["result"])
    // The lease ends while the result is recorded.
    #expect(driver.on(.leaseLost(id)) == [])
    driver.submit(next)
    #expect(driver.on(.recorded(id, .lost)) == ["forget", "claim"])
    #expect(driver.on(.leaseLost(id)) == [])
  }

  // MARK: Limits

  @Test func aChildWithoutProgressIsKilled() {
    let driver = LifecycleDriver()
    let id = driver.running()
    driver.now = 400
    driver.on(.progressed(id, diskIsFull: false))
    driver.now = 1000
    #expect(driver.on(.tick) == ["watch 75.0"])
    driver.now = 1000.1
    #expect(driver.on(.tick) == ["kill"])
    #expect(driver.on(.tick) == [], "it is killed once and no longer watched")
    #expect(driver.on(.exited(id, .signal(9))) == ["retry stalled"])
  }

  @Test func aChildThatRunsForTooLongIsKilledDespiteItsProgress() {
    let driver = LifecycleDriver()
    let id = driver.running()
    for now in stride(from: 500.0, through: 6000, by: 500) {
      driver.now = now
      driver.on(.progressed(id, diskIsFull: false))
      #expect(driver.on(.tick) == ["watch 75.0"])
    }
    driver.now = 6000.1
    #expect(driver.on(.tick) == ["kill"])
    #expect(driver.on(.exited(id, .signal(9))) == ["retry time_limit"])
  }

  @Test func aChildThatFillsTheDiskIsKilledAndNotRetried() {
    let driver = LifecycleDriver()
    let id = driver.running()
    #expect(driver.on(.progressed(id, diskIsFull: true)) == ["kill"])
    #expect(driver.on(.exited(id, .signal(9))) == ["failure disk_full"])
  }

  @Test("beside other nodes, an attempt that its node's disk fails is postponed", arguments: ["disk_full", "io_error"])
  func diskOfOneNode(code: String) {
    let driver = LifecycleDriver(hasOtherNodes: true)
    let id = driver.running()
    driver.on(.reported(id, .failure(WorkerFailure(code: code, detail: "", retry: code == "io_error"))))
    #expect(driver.on(.exited(id, .status(1))) == ["postponement \(code)"])
    #expect(driver.on(.recorded(id, .postponed(seconds: 15))) == ["pause 15.0"])
    let full = LifecycleDriver(hasOtherNodes: true)
    let other = full.running()
    #expect(full.on(.progressed(other, diskIsFull: true)) == ["kill"])
    #expect(full.on(.exited(other, .signal(9))) == ["postponement disk_full"])
  }

  @Test func aChildKilledAfterItsResultHasSucceeded() {
    let driver = LifecycleDriver()
    let id = driver.running()
    driver.on(.reported(id, .result))
    driver.now = 601
    #expect(driver.on(.tick) == ["kill"])
    #expect(driver.on(.exited(id, .status(0))) == ["result"])
  }

  @Test func aChildMayUseAllIdlePlaces() {
    let driver = LifecycleDriver(places: 3)
    let ids = (0..<4).map { _ in JobID() }
    driver.submit(ids[0])
    driver.on(.claimed(ids[0], attempts: 1, failures: 0))
    #expect(driver.on(.prepared(ids[0], LifecycleDriver.fence)).first == "start 2")
    for id in ids[1...] { driver.submit(id) }
    driver.on(.claimed(ids[1], attempts: 1, failures: 0))
    #expect(driver.on(.prepared(ids[1], LifecycleDriver.fence)).first == "start 0")
  }

  // MARK: Failures to begin or record

  @Test func aJobThatCannotBeginFailsOrIsRetried() {
    let failure = WorkerFailure(code: "disk_full", detail: "", retry: true)
    for isPreparing in [false, true] {
      for reason in [failure, nil] {
        let driver = LifecycleDriver()
        let id = JobID()
        driver.submit(id)
        if isPreparing { driver.on(.claimed(id, attempts: 3, failures: 0)) }
        let retry = isPreparing ? "pause 2.0" : "hold 1.0"
        #expect(driver.on(.notBegun(id, reason)) == [reason == nil ? retry : "failure disk_full"])
      }
    }
  }

  @Test func aJobThatTheStoreFailsIsPostponedAndLeavesItsPlaceToOthers() {
    let driver = LifecycleDriver()
    let (id, other) = (JobID(), JobID())
    driver.submit(id)
    driver.submit(other)
    driver.on(.claimed(id, attempts: 1, failures: 0))
    #expect(driver.on(.storeFailed(id, .storeIsUnavailable)) == ["postponement media_unavailable"])
    #expect(driver.on(.recorded(id, .postponed(seconds: 15))) == ["pause 15.0", "claim"], "the other's turn")
    driver.start(other)
    #expect(driver.on(.pauseEnded(id)) == [], "it waits for the place")
    driver.on(.reported(other, .result))
    driver.on(.exited(other, .status(0)))
    #expect(driver.on(.recorded(other, .over(with: []))) == ["forget", "claim"])
    #expect(driver.on(.refused(id, .tooEarly(seconds: 7))) == ["pause 7.0"], "postponed again elsewhere")
    #expect(driver.on(.pauseEnded(id)) == ["claim"])
    #expect(driver.on(.refused(id, .tooEarly(seconds: -0.5))) == ["pause 1.0"], "the clocks differ")
    driver.on(.pauseEnded(id))
    #expect(driver.on(.claimed(id, attempts: 12, failures: 0, losses: 1)) == ["prepare"])
  }

  @Test func aPostponementDuringAStopOrWithoutALeaseIsAnInterruption() {
    for event in [JobLifecycle.Event.stop, nil] {
      let driver = LifecycleDriver()
      let id = JobID()
      driver.submit(id)
      driver.on(.claimed(id, attempts: 1, failures: 0))
      driver.on(event ?? .leaseLost(id))
      #expect(driver.on(.storeFailed(id, .storeIsUnavailable)) == ["interruption"])
    }
  }

  @Test func aFailureThatTheCatalogRefusesIsWrittenLaterAndKeepsItsPlace() {
    let driver = LifecycleDriver()
    let (id, next) = (driver.running(), JobID())
    let failure = WorkerFailure(code: "unsupported_media", detail: "", retry: false)
    driver.on(.reported(id, .failure(failure)))
    driver.on(.exited(id, .status(1)))
    #expect(driver.submit(next) == [])
    #expect(driver.on(.recorded(id, .unwritten(failure))) == ["hold 1.0"])
    #expect(driver.on(.holdEnded(id)) == ["failure unsupported_media"])
    #expect(driver.on(.recorded(id, .over(with: []))) == ["forget", "claim"])
  }

  @Test func aCatalogThatTakesNoClaimIsNotAskedForEveryJobInTheQueue() {
    let driver = LifecycleDriver()
    let (id, next) = (JobID(), JobID())
    #expect(driver.submit(id) == ["claim"] && driver.submit(next) == [])
    #expect(driver.on(.notBegun(id, nil)) == ["hold 1.0"])
    #expect(driver.on(.holdEnded(id)) == ["claim"])
    #expect(driver.on(.notBegun(id, nil)) == ["hold 1.0"])
    #expect(driver.on(.holdEnded(id)) == ["claim"])
    #expect(driver.on(.claimed(id, attempts: 1, failures: 0)) == ["prepare"])
  }

  @Test func aClaimSaysWhichAttemptHasFailedAndAllOthersAreNone() {
    let driver = LifecycleDriver()
    let id = JobID()
    func expect(_ event: JobLifecycle.Event, _ failed: Int?, _ line: Int = #line) {
      var claims: [Int?] = []
      for action in driver.lifecycle.on(event, at: 0) {
        if case .claim(_, let failed) = action { claims.append(failed) }
      }
      #expect(claims == [failed], "line \(line)")
    }
    expect(.submitted(id, WaveformJob.cost(samples: 1), Client(key: "")), nil)
    // It isn't known if this was committed, but nothing has run.
    driver.on(.notBegun(id, nil))
    expect(.holdEnded(id), nil)
    driver.start(id, attempt: 2, interruptions: 1)
    driver.on(.exited(id, .signal(9)))
    driver.on(.recorded(id, .again))
    expect(.pauseEnded(id), 2)
    driver.on(.notBegun(id, nil))
    expect(.holdEnded(id), 2)
    driver.on(.claimed(id, attempts: 3, failures: 1, losses: 1))
    driver.on(.storeFailed(id, .storeIsUnavailable))
    driver.on(.recorded(id, .postponed(seconds: 15)))
    expect(.pauseEnded(id), nil)
    driver.on(.claimed(id, attempts: 4, failures: 1, losses: 1))
    driver.on(.notBegun(id, nil))
    expect(.pauseEnded(id), 4)
  }

  @Test func aClientThatJoinsAJobIsInLineForEachOfItsAttempts() {
    let driver = LifecycleDriver()
    let (shared, other) = (JobID(), JobID())
    driver.submit(shared, client: "a")
    driver.start(shared)
    // While it runs.
    driver.on(.joined(shared, Client(key: "b")))
    driver.on(.exited(shared, .signal(9)))
    driver.on(.recorded(shared, .again))
    // While it pauses.
    driver.on(.joined(shared, Client(key: "c")))
    let first = JobID()
    #expect(driver.submit(first, client: "a") == ["claim"])
    for _ in 0..<3 { driver.submit(JobID(), client: "a") }
    driver.submit(other, client: "b")
    driver.on(.pauseEnded(shared))
    driver.start(first)
    driver.on(.exited(first, .status(0)))
    // "b" is next and has another job before it; "c" has only this one.
    var begun: [JobID] = []
    for event in [JobLifecycle.Event.recorded(first, .over(with: []))] {
      for action in driver.lifecycle.on(event, at: 0) { if case .claim(let id, _) = action { begun.append(id) } }
    }
    #expect(begun == [other] || begun == [shared])
    driver.start(begun[0])
    driver.on(.exited(begun[0], .signal(9)))
    for action in driver.lifecycle.on(.recorded(begun[0], .over(with: [])), at: 0) {
      if case .claim(let id, _) = action { begun.append(id) }
    }
    #expect(Set(begun) == [shared, other], "neither waits for the jobs of “a”")
  }

  @Test func aFailedJobCancelsJobsOnItsResult() {
    let driver = LifecycleDriver()
    let (id, other) = (driver.running(), Job(kind: .waveform, recording: RecordingID(), state: .cancelled))
    #expect(driver.submit(other.id) == [])
    driver.on(.exited(id, .signal(9)))
    #expect(driver.on(.recorded(id, .over(with: [other]))) == ["forget", "clear", "forget"])
  }
}
