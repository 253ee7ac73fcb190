import PresentRows
import Processing
import Storage
import Testing

@testable import AudioService
@testable import Jobs

/// What a node shows of attempts of other nodes, of which it hears late, twice, or not at all. Nodes of the version
/// before name no address.
@Suite struct OtherNodesTests {
  private let bench: TestBench
  private let job: Job

  init() throws {
    bench = try TestBench { $0.cluster.role = .api }
    let id = JobID()
    job = Job(id: id, kind: .waveform, recording: try bench.recording(state: .queued, job: id).id)
    try bench.catalog.insert(job)
    bench.runner.submit(job)
  }

  private var live: LiveJob? {
    bench.runner.queue.sync {}
    return bench.runner.live[job.id]
  }

  private func token(_ attempt: Int) -> AttemptToken {
    AttemptToken(job: job.id, attempt: attempt, nonce: "0123456789abcde\(attempt)")
  }

  private func hear(_ state: JobState, attempt: Int) {
    var row = job
    (row.state, row.attempts, row.nonce, row.node) = (state, attempt, token(attempt).nonce, "another/1")
    bench.runner.heard(.changes(CatalogChanges(jobs: [JobChange(job.id, of: .none, job: row)])))
  }

  private func hear(frames: Int64, of attempt: Int, at address: String?) {
    let progress = WorkerProgress(fraction: 0.1, readyFrames: frames, totalFrames: nil, estimatedFrames: nil)
    let report = String(decoding: WorkerReport.progress(progress).line(), as: UTF8.self)
    bench.runner.heard(.progress(AttemptProgress(token(attempt), report: report, address: address)))
  }

  @Test func anAddressIsThatOfTheAttemptWhoseNodeNamesItAndOfNoOther() {
    hear(.running, attempt: 1)
    #expect(live?.writer == token(1) && live?.address == nil)
    hear(frames: 10, of: 1, at: "10.0.0.1:1")
    #expect(live?.address == "10.0.0.1:1" && live?.progress?.readyFrames == 10)

    // A node of the version before.
    hear(.running, attempt: 2)
    #expect(live?.writer == token(2) && live?.address == nil && live?.progress == nil)
    hear(frames: 20, of: 1, at: "10.0.0.1:1")
    #expect(live?.address == nil && live?.progress == nil, "late")
    hear(frames: 5, of: 2, at: nil)
    #expect(live?.address == nil && live?.progress?.readyFrames == 5)
    hear(.running, attempt: 1)
    #expect(live?.writer == token(2) && live?.progress?.readyFrames == 5, "late")

    hear(.queued, attempt: 2)
    #expect(live?.isRunning == false)
    hear(.running, attempt: 1)
    #expect(live?.isRunning == false, "late")
    hear(.running, attempt: 3)
    hear(frames: 20, of: 2, at: "10.0.0.1:1")
    #expect(live?.writer == token(3) && live?.address == nil)
    hear(frames: 7, of: 3, at: "10.0.0.2:2")
    #expect(live?.address == "10.0.0.2:2" && live?.progress?.readyFrames == 7)
    hear(.succeeded, attempt: 3)
    #expect(live == nil)
  }
}
