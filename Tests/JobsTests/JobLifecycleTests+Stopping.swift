import PresentRows
import Processing
import Randomness
import Storage
import Terms
import Testing

@testable import Jobs

extension JobLifecycleTests {
  // MARK: Cancellation

  @Test("a cancelled job is cleared when its child and writer have ended", arguments: 0..<8)
  func cancellation(step: Int) {
    let driver = LifecycleDriver()
    let job = Job(kind: .waveform, recording: RecordingID(), state: .cancelled)
    let id = job.id
    let cleared = ["clear"]
    if step == 0 {
      // The cancellation arrives before the submission.
      #expect(driver.on(.cancelled(job)) == cleared && driver.on(.cleared(id)) == [])
      #expect(driver.submit(id) == ["forget"])
      return
    }
    driver.submit(id)
    switch step {
    case 1:
      #expect(driver.on(.cancelled(job)) == ["forget"])
      #expect(driver.on(.refused(id, .cancelled(job))) == cleared)
    case 2:
      // The claim reads the cancelled row before the event arrives.
      #expect(driver.on(.refused(id, .cancelled(job))) == ["forget", "clear"])
      #expect(driver.on(.cancelled(job)) == [])
    case 3:
      driver.on(.claimed(id, attempts: 1, failures: 0))
      #expect(driver.on(.cancelled(job)) == ["forget"])
      #expect(driver.on(.prepared(id, LifecycleDriver.fence)) == cleared)
    case 4:
      driver.start(id)
      #expect(driver.on(.cancelled(job)) == ["kill", "forget"])
      #expect(driver.on(.reported(id, .result)) == [])
      #expect(driver.on(.exited(id, .status(0))) == cleared)
    case 5:
      driver.start(id)
      driver.on(.exited(id, .signal(9)))
      #expect(driver.on(.cancelled(job)) == ["forget"])
      #expect(driver.on(.recorded(id, .again)) == cleared)
    case 6:
      driver.start(id)
      driver.on(.exited(id, .signal(9)))
      driver.on(.recorded(id, .again))
      #expect(driver.on(.cancelled(job)) == ["forget", "clear"])
      #expect(driver.on(.pauseEnded(id)) == [])
    default:
      driver.start(id)
      driver.on(.exited(id, .signal(9)))
      #expect(driver.on(.recorded(id, .unwanted(job))) == ["forget", "clear"])
      #expect(driver.on(.cancelled(job)) == [])
    }
    #expect(driver.on(.cleared(id)) == [])
    #expect(driver.submit(JobID()) == ["claim"], "its place is free")
  }

  // MARK: Stopping

  @Test func aStopEndsTheChildrenAndInterruptsTheirJobs() {
    let driver = LifecycleDriver(places: 3)
    let (running, preparing) = (driver.running(), JobID())
    driver.submit(preparing)
    driver.on(.claimed(preparing, attempts: 1, failures: 0))
    #expect(driver.on(.stop) == ["kill"])
    driver.on(.reported(running, .result))
    #expect(driver.on(.exited(running, .signal(9))) == ["interruption"])
    #expect(driver.on(.prepared(preparing, LifecycleDriver.fence)) == ["interruption"])
    #expect(driver.on(.recorded(preparing, .over(with: []))) == [])
    #expect(driver.on(.recorded(running, .over(with: []))) == ["stopped"])
    #expect(driver.submit(JobID()) == [])
    #expect(driver.on(.stop) == ["stopped"])
  }

  @Test func aStopDoesNotWaitForPauses() {
    let driver = LifecycleDriver()
    let pausing = driver.running()
    driver.on(.exited(pausing, .signal(9)))
    driver.on(.recorded(pausing, .again))
    #expect(driver.on(.stop) == ["stopped"])
    #expect(driver.on(.pauseEnded(pausing)) == [])

    let other = LifecycleDriver()
    let held = other.running()
    other.on(.exited(held, .signal(9)))
    other.on(.recorded(held, .unwritten(JobLifecycle.gaveUp)))
    #expect(other.on(.stop) == ["stopped"])
    #expect(other.on(.holdEnded(held)) == [])
  }
}
