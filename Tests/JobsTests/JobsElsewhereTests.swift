import PresentRows
import Storage
import Testing

@testable import Jobs

/// What a node makes of jobs that others run, and of its own when it leaves.
@Suite struct JobsElsewhereTests {
  @Test func aJobThatRunsElsewhereTakesNoPlaceAndMayComeBack() {
    let driver = LifecycleDriver()
    let (id, other) = (JobID(), JobID())
    #expect(driver.submit(id) == ["claim"])
    #expect(driver.on(.refused(id, .runsElsewhere)) == [])
    #expect(driver.submit(other) == ["claim"], "the place is free")
    #expect(driver.on(.returned(id)) == [], "it waits for the place")
    #expect(driver.on(.refused(other, .over)) == ["forget", "claim"])
    #expect(driver.on(.claimed(id, attempts: 2, failures: 0, losses: 1)) == ["prepare"])
  }

  @Test func aWaitingJobThatAnotherNodeTakesIsNotClaimed() {
    let driver = LifecycleDriver()
    let (first, second, third) = (driver.running(), JobID(), JobID())
    driver.submit(second)
    driver.submit(third)
    #expect(driver.on(.taken(second)) == [])
    driver.on(.reported(first, .result))
    driver.on(.exited(first, .status(0)))
    #expect(driver.on(.recorded(first, .over(with: []))) == ["forget", "claim"], "the third one's turn")
    #expect(driver.on(.endedElsewhere(second)) == ["forget"])
    #expect(driver.on(.returned(second)) == [], "it has ended")
    #expect(driver.on(.claimed(third, attempts: 1, failures: 0)) == ["prepare"])
  }

  @Test func jobsThatRunElsewhereCountTowardTheirClientsLimit() {
    let driver = LifecycleDriver(places: 4) { $0.key == "limited" ? 2 : nil }
    let (first, second, third) = (JobID(), JobID(), JobID())
    #expect(driver.submit(first, client: "limited") == ["claim"])
    #expect(driver.on(.refused(first, .runsElsewhere)) == [])
    #expect(driver.submit(second, client: "limited") == ["claim"])
    #expect(driver.submit(third, client: "limited") == [], "two of the client's jobs run, one of them elsewhere")
    #expect(driver.submit(JobID(), client: "other") == ["claim"])
    #expect(driver.on(.endedElsewhere(first)) == ["forget", "claim"])
  }

  @Test func aJobWhoseClientRunsEnoughAccordingToTheCatalogIsTriedAgainLater() {
    let driver = LifecycleDriver()
    let (id, other) = (JobID(), JobID())
    driver.submit(id)
    driver.submit(other)
    #expect(driver.on(.refused(id, .clientIsFull)) == ["pause 0.5", "claim"], "the other's turn")
    #expect(driver.on(.refused(other, .over)) == ["forget"])
    #expect(driver.on(.pauseEnded(id)) == ["claim"])
  }

  @Test func theTurnsOfClientsCountTheJobsThatRunElsewhere() {
    let driver = LifecycleDriver()
    let running = driver.running()
    let (first, second, other) = (JobID(), JobID(), JobID())
    driver.submit(first, client: "a")
    driver.submit(other, client: "b")
    driver.submit(second, client: "a")
    driver.on(.taken(first))
    driver.on(.exited(running, .status(0)))
    let next = driver.lifecycle.on(.recorded(running, .over(with: [])), at: 0)
    #expect(next.contains { if case .claim(other, _) = $0 { true } else { false } })
  }

  @Test func whatIsHeardLateOfAJobThatRunsHereChangesNothing() {
    let driver = LifecycleDriver()
    let id = driver.running()
    for event in [JobLifecycle.Event.taken(id), .returned(id), .endedElsewhere(id)] {
      #expect(driver.on(event) == [])
    }
    driver.on(.reported(id, .result))
    #expect(driver.on(.exited(id, .status(0))) == ["result"])
  }

  @Test func theFilesOfAJobThatIsCancelledElsewhereAreLeftToItsNode() {
    let driver = LifecycleDriver()
    let job = Job(kind: .waveform, recording: RecordingID(), state: .cancelled)
    driver.submit(job.id)
    driver.on(.refused(job.id, .runsElsewhere))
    #expect(driver.on(.cancelled(job)) == ["forget"])
    #expect(driver.submit(JobID()) == ["claim"])
  }

  @Test func aRowThatWasReadBeforeTheJobWasCancelledDoesNotQueueItAgain() {
    let driver = LifecycleDriver()
    let job = Job(kind: .waveform, recording: RecordingID(), state: .cancelled)
    driver.submit(job.id)
    driver.start(job.id)
    #expect(driver.on(.cancelled(job)) == ["kill", "forget"])
    #expect(driver.submit(job.id) == ["forget"], "its child hasn't ended")
    #expect(driver.on(.exited(job.id, .signal(9))) == ["clear"])
    #expect(driver.submit(job.id) == ["forget"], "its files are being removed")
    #expect(driver.on(.cleared(job.id)) == [])
    #expect(driver.submit(JobID()) == ["claim"], "its place is free")
  }

  @Test func aNodeWithoutPlacesLeavesAllJobsToOthers() {
    let driver = LifecycleDriver(places: 0)
    let id = JobID()
    #expect(driver.submit(id) == [])
    #expect(driver.on(.taken(id)) == [])
    #expect(driver.on(.endedElsewhere(id)) == ["forget"])
    #expect(driver.on(.stop) == ["stopped"])
  }

  @Test func whileDrainingRunningJobsFinishAndNoneBegins() {
    let driver = LifecycleDriver()
    let (running, waiting) = (driver.running(), JobID())
    driver.submit(waiting)
    #expect(driver.on(.drain) == [])
    driver.on(.reported(running, .result))
    #expect(driver.on(.exited(running, .status(0))) == ["result"])
    #expect(driver.on(.recorded(running, .over(with: []))) == ["forget", "drained"])
    #expect(driver.on(.stop) == ["stopped"])
  }

  @Test func aJobThatThisProcessHasGivenUpIsQueuedOnlyOnceItsLeaseHasEnded() {
    var job = Job(kind: .waveform, recording: RecordingID())
    let now = Timestamp(milliseconds: 0)
    let isClaimed = job.claim(by: "a", nonce: "1", until: now + 30, at: now)
    if case .nothing = HeardJob(job, isKnown: false, on: "a") {} else { Issue.record("it would be claimed again") }
    if case .unknown = HeardJob(job, isKnown: false, on: "b") {} else { Issue.record("another doesn't hear of it") }
    #expect(isClaimed && !job.isQueued(on: "a") && job.isQueued(on: "b"))
    let isExpired = job.expire(at: now + 31, orIf: { _ in false })
    #expect(isExpired && job.isQueued(on: "a"))
    #expect(job.failures == 0 && job.interruptions == 1)
  }
}
