import Glibc
import PresentRows
import Synchronization
import Testing

@testable import AudioService
@testable import Jobs
@testable import Storage

/// Jobs of a node whose own disk is full or fails, while those of other nodes may be fine.
@Suite struct NodeDiskTests {
  private static let failures: [(StorageError, String)] = [
    (.diskFull, "disk_full"), (.io(operation: "mkdir", path: "jobs", errno: EROFS), "io_error"),
    (.io(operation: "pwrite", path: "cache", errno: EIO), "io_error"), (.claimLost(path: "lock"), "io_error"),
  ]

  private struct Node {
    let bench: TestBench
    let disk: TestDisk
    let blobs: FailingStore

    init(script: String = "finish", isShared: Bool = true) throws {
      let disk = TestDisk()
      var madeBlobs: FailingStore?
      bench = try TestBench(
        script: script, holder: LeaseHolder(terms: isShared ? LeaseHolder.Terms() : nil)
      ) {
        $0.storePauseSeconds = 0.001
      } objects: {
        let blobs = FailingStore($0)
        madeBlobs = blobs
        return blobs
      } scratch: {
        disk.scratch($0)
      }
      (self.disk, blobs) = (disk, try #require(madeBlobs))
    }

    func submit() throws -> Job {
      let id = JobID()
      let job = Job(id: id, kind: .waveform, recording: try bench.recording(state: .queued, job: id).id)
      try bench.catalog.insert(job)
      bench.runner.submit(job)
      return job
    }
  }

  private func code(_ job: Job) -> String? { RowJSON.value(JobError.self, from: job.error)?.code }

  @Test("a node begins no job while its disk is full or can't be written", arguments: [nil, StorageError.diskFull])
  func noClaim(fault: StorageError?) async throws {
    let (node, begun) = (try Node(), ContinuousClock.now)
    if let fault { node.disk.check.withLock { $0 = fault } } else { node.disk.free.withLock { $0 = 0 } }
    let job = try node.submit()
    // As long as it takes to ask again.
    let looks = node.disk.looks.load(ordering: .relaxed)
    try await node.bench.eventually {
      let hasEnded = try node.bench.catalog.job(job.id)?.state.isFinished
      return hasEnded == true || node.disk.looks.load(ordering: .relaxed) > looks + 2
    }
    #expect(try node.bench.catalog.job(job.id)?.attempts == 0, "another node may begin it")
    // On a busy machine, this may take more than a minute.
    let lines = 1...1 + Int((ContinuousClock.now - begun) / .seconds(60))
    #expect(lines.contains(node.bench.logged.failures.count), "one line a minute: \(node.bench.logged.failures)")
    node.disk.free.withLock { $0 = nil }
    node.disk.check.withLock { $0 = nil }
    let ended = try await node.bench.finished(job.id)
    #expect(ended.state == .succeeded && ended.attempts == 1)
  }

  @Test("a job that can't be prepared on a node's disk is postponed, which is no failure", arguments: Self.failures)
  func preparation(error: StorageError, code: String) async throws {
    let node = try Node()
    node.disk.making.withLock { $0 = (error, 4) }
    let ended = try await node.bench.finished(try node.submit().id)
    #expect(ended.state == .succeeded && ended.attempts == 5 && ended.postponements == 4 && ended.losses == 0)
    #expect(node.bench.starts.count == 1)
    node.disk.making.withLock { $0 = (error, .max) }
    let given = try await node.bench.finished(try node.submit().id)
    #expect(given.state == .failed && given.attempts == 11 && self.code(given) == code)
  }

  @Test("on one machine, a full or read-only disk is an error at once", arguments: Self.failures.prefix(2))
  func oneMachine(error: StorageError, code: String) async throws {
    let node = try Node(isShared: false)
    node.disk.free.withLock { $0 = 0 }
    node.disk.making.withLock { $0 = (error, .max) }
    let ended = try await node.bench.finished(try node.submit().id)
    #expect(ended.state == .failed && ended.attempts == 1 && self.code(ended) == code)
  }

  @Test(
    "a worker whose node's disk fails is no failure of its job, except on one machine",
    arguments: ["disk_full", "io_error"])
  func worker(code: String) async throws {
    let script = "if [ $attempt -lt 4 ]; then failure \(code) false; fi; finish"
    let node = try Node(script: script)
    let ended = try await node.bench.finished(try node.submit().id)
    #expect(ended.state == .succeeded && ended.attempts == 4 && ended.postponements == 3 && ended.losses == 0)
    let only = try Node(script: script, isShared: false)
    let failed = try await only.bench.finished(try only.submit().id)
    #expect(failed.state == .failed && failed.attempts == 1 && self.code(failed) == code)
  }

  @Test("what a worker couldn't read is fetched again")
  func unreadableCopy() async throws {
    let node = try Node(script: "if [ $attempt = 1 ]; then failure io_error true; fi; finish")
    let job = try node.submit()
    #expect(try await node.bench.finished(job.id).state == .succeeded)
    let audio = try #require(try node.bench.catalog.recording(job.recording)?.audioKey)
    #expect(node.blobs.discarded.withLock { $0 } == [audio])
  }

  @Test("a result for which a node's disk has no room is made again, and on one machine it is an error")
  func result() async throws {
    let node = try Node()
    node.blobs.putting.withLock { $0 = .diskFull }
    node.blobs.putFailures.withLock { $0 = 3 }
    let ended = try await node.bench.finished(try node.submit().id)
    #expect(ended.state == .succeeded && ended.attempts == 4 && ended.postponements == 3 && ended.losses == 0)
    let only = try Node(isShared: false)
    only.blobs.putting.withLock { $0 = .diskFull }
    let failed = try await only.bench.finished(try only.submit().id)
    #expect(failed.state == .failed && failed.attempts == 1 && code(failed) == "disk_full")
  }
}
