import Dispatch
import PresentRows
import Processing
import Storage
import Terms
import Testing
import Workers

@testable import Jobs

@Suite struct LiveJobsTests {
  private func progress(_ fraction: Double) -> WorkerProgress {
    WorkerProgress(fraction: fraction, readyFrames: 0, totalFrames: nil, estimatedFrames: nil)
  }

  /// Starts a wait that would outlast the test, so that its return shows that the change was noticed. The task is
  /// already waiting on return.
  private func waiting(for id: JobID, in jobs: LiveJobs) -> Task<Void, Never> {
    let task = Task.immediate { await jobs.waitForChange(of: id, seconds: 10_000) }
    #expect(jobs.waiterCount(of: id) == 1)
    return task
  }

  @Test func waitingReturnsWhenProgressHasGrownByAHundredth() async {
    let jobs = LiveJobs()
    let id = JobID()
    jobs.insert(id, LiveJob(isRunning: true, progress: progress(0.5), tenant: .none, recording: RecordingID()))
    let task = waiting(for: id, in: jobs)
    jobs.update(id) { $0.progress = progress(0.505) }
    #expect(jobs.waiterCount(of: id) == 1)
    jobs.update(id) { $0.progress = progress(0.52) }
    await task.value
    #expect(jobs.waiterCount(of: id) == 0)
  }

  @Test func waitingReturnsWhenTheJobBegins() async {
    let jobs = LiveJobs()
    let id = JobID()
    jobs.insert(id, LiveJob(tenant: .none, recording: RecordingID()))
    let task = waiting(for: id, in: jobs)
    jobs.update(id) { $0.isRunning = true }
    await task.value
  }

  @Test func waitingReturnsWhenTheJobEnds() async {
    let jobs = LiveJobs()
    let id = JobID()
    jobs.insert(id, LiveJob(tenant: .none, recording: RecordingID()))
    let first = waiting(for: id, in: jobs)
    jobs.remove(id)
    await first.value
    await jobs.waitForChange(of: id, seconds: 10_000)
  }

  @Test("a change between the look and the wait ends the wait at once")
  func nothingIsMissed() async {
    let jobs = LiveJobs()
    let (id, other) = (JobID(), JobID())
    let before = jobs.look(at: id)
    jobs.insert(id, LiveJob(tenant: .none, recording: RecordingID()))
    let queued = jobs.look(at: id)
    jobs.update(id) { $0.isRunning = true }
    jobs.update(id) { $0.startedAt = .now }
    let first = jobs.look(at: id)
    // Started again with the same progress and state.
    jobs.update(id) { $0.startedAt = .now }
    let second = jobs.look(at: id)
    jobs.remove(id)
    // These jobs aren't live now and weren't at the first look, but they have been in between, so the wait must end.
    for look in [before, queued, first, second] { await jobs.waitForChange(of: id, since: look, seconds: 10_000) }
    jobs.insert(id, LiveJob(isRunning: true, startedAt: .now, tenant: .none, recording: RecordingID()))
    await jobs.waitForChange(of: id, since: first, seconds: 10_000)
    // A caller that looked after the end waits until the job is live again, whatever happens to other jobs.
    jobs.remove(id)
    let last = jobs.look(at: id)
    let task = Task.immediate { await jobs.waitForChange(of: id, since: last, seconds: 10_000) }
    jobs.insert(other, LiveJob(tenant: .none, recording: RecordingID()))
    #expect(jobs.waiterCount(of: id) == 1)
    jobs.insert(id, LiveJob(tenant: .none, recording: RecordingID()))
    await task.value
  }

  @Test func waitingReturnsAfterItsTimeout() async {
    let jobs = LiveJobs()
    let id = JobID()
    jobs.insert(id, LiveJob(tenant: .none, recording: RecordingID()))
    await jobs.waitForChange(of: id, seconds: 0)
    #expect(jobs.waiterCount(of: id) == 0)
  }

  @Test func aCancelledWaitIsRemoved() async {
    let jobs = LiveJobs()
    let id = JobID()
    jobs.insert(id, LiveJob(tenant: .none, recording: RecordingID()))
    let task = waiting(for: id, in: jobs)
    task.cancel()
    await task.value
    #expect(jobs.waiterCount(of: id) == 0)
    let late = Task { await jobs.waitForChange(of: id, seconds: 10_000) }
    late.cancel()
    await late.value
    #expect(jobs.waiterCount(of: id) == 0)
  }

  @Test func stoppingTheServiceEndsAllWaits() async {
    let jobs = LiveJobs()
    let id = JobID()
    jobs.insert(id, LiveJob(tenant: .none, recording: RecordingID()))
    let task = waiting(for: id, in: jobs)
    jobs.endWaits()
    await task.value
    await jobs.waitForChange(of: id, seconds: 10_000)
  }

  @Test func waitsOfDifferentLengthsEndAtTheirOwnTimeouts() async {
    let hand = ManualClock()
    let jobs = LiveJobs(hand.clock)
    let id = JobID()
    jobs.insert(id, LiveJob(tenant: .none, recording: RecordingID()))
    let tasks = (0..<50).map { number in
      Task.immediate { await jobs.waitForChange(of: id, seconds: Double(50 - number)) }
    }
    for passed in 1...50 {
      hand.advance(by: 1)
      #expect(jobs.waiterCount(of: id) == 50 - passed)
    }
    for task in tasks { await task.value }
  }

  @Test func theTimeLeftFollowsThePaceSoFar() throws {
    var job = LiveJob(tenant: .none, recording: RecordingID())
    #expect(job.secondsLeft == nil)
    job.startedAt = .now - .seconds(30)
    #expect(job.secondsLeft == nil)
    job.progress = progress(0.25)
    let left = try #require(job.secondsLeft)
    #expect(left >= 90)
    job.progress = progress(1)
    #expect(job.secondsLeft == 0)
  }

  @Test func aJobIsFoundByTheRecordingItWrites() {
    let jobs = LiveJobs()
    let (id, recording) = (JobID(), RecordingID())
    let token = AttemptToken(job: id, attempt: 1, nonce: "0123456789abcdef")
    jobs.insert(id, LiveJob(tenant: .none, recording: recording, writer: token))
    #expect(jobs.job(writing: recording)?.writer == token)
    #expect(jobs.job(writing: RecordingID()) == nil)
    jobs.remove(id)
    #expect(jobs.job(writing: recording) == nil && jobs.count == 0)
  }

  @Test func aJobThatWritesNoWaveformBelongsToNoRecording() {
    let (jobs, id) = (LiveJobs(), JobID())
    jobs.insert(id, LiveJob(tenant: .none, recording: nil))
    #expect(jobs[id] != nil && jobs.job(writing: RecordingID()) == nil)
    jobs.remove(id)
    #expect(jobs.count == 0)
  }
}
