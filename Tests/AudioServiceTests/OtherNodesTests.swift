import PresentRows
import Processing
import Storage
import Testing
import Workers

@testable import AudioService
@testable import Jobs

/// What a node shows of attempts of other nodes, of which it hears late, twice, or not at all. Nodes of earlier
/// versions name no address, or don't prove it.
@Suite struct OtherNodesTests {
  private static let secret = NodeSecret(Array("an example of thirty-two bytes..".utf8))
  private let bench: TestBench
  private let job: Job

  init() throws { try self.init(secret: Self.secret) }

  private init(secret: NodeSecret?) throws {
    bench = try TestBench { ($0.cluster.role, $0.cluster.nodes.secret) = (.api, secret) }
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
    hear(frames: frames, of: attempt, at: address, address.flatMap { Self.secret?.proof(of: $0, for: token(attempt)) })
  }

  private func hear(frames: Int64, of attempt: Int, at address: String?, _ proof: String?) {
    let progress = WorkerProgress(fraction: 0.1, readyFrames: frames, totalFrames: nil, estimatedFrames: nil)
    let report = String(decoding: WorkerReport.progress(progress).line(), as: UTF8.self)
    bench.runner.heard(.progress(AttemptProgress(token(attempt), report: report, address: address, proof: proof)))
  }

  @Test("an address counts only if a node that has the secret names it for that attempt")
  func proof() throws {
    let secret = try #require(Self.secret)
    let other = try #require(NodeSecret(Array("another of thirty-two bytes.....".utf8)))
    let (right, evil) = ("10.0.0.1:1", "169.254.169.254:80")
    hear(.running, attempt: 1)
    let forged = [
      nil, "", secret.proof(of: right, for: token(1)), other.proof(of: evil, for: token(1)),
      secret.proof(of: evil, for: token(2)), secret.proof(of: evil, for: token(1)).uppercased(),
    ]
    for (frames, proof) in forged.enumerated() {
      hear(frames: Int64(frames), of: 1, at: evil, proof)
      #expect(live?.address == nil && live?.progress?.readyFrames == Int64(frames))
    }
    hear(frames: 20, of: 1, at: right)
    #expect(live?.address == right)
    hear(frames: 21, of: 1, at: evil, nil)
    hear(frames: 22, of: 1, at: nil)
    #expect(live?.address == right && live?.progress?.readyFrames == 22, "nobody can take it away")
  }

  @Test func aNodeWithoutASecretBelievesNoAddress() throws {
    let node = try Self(secret: nil)
    node.hear(.running, attempt: 1)
    node.hear(frames: 1, of: 1, at: "10.0.0.1:1")
    #expect(node.live?.address == nil && node.live?.progress?.readyFrames == 1)
  }

  @Test func anAddressIsThatOfTheAttemptWhoseNodeNamesItAndOfNoOther() {
    hear(.running, attempt: 1)
    #expect(live?.writer == token(1) && live?.address == nil)
    hear(frames: 10, of: 1, at: "10.0.0.1:1")
    #expect(live?.address == "10.0.0.1:1" && live?.progress?.readyFrames == 10)

    // A node without --cluster-listen.
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
