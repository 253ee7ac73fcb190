import Dispatch
import Foundation
import PresentRows
import Processing
import Synchronization
import Testing
import Waveform
import Workers

@testable import AudioService
@testable import Jobs
@testable import Storage

/// A waveform requested just as its job ends.
@Suite struct WaveformTableTests {
  /// A recording of which the first attempt at a job has read 20,000 of 60,000 frames; the file is at `path`, by
  /// default where the attempt writes it.
  private func growing(
    _ bench: TestBench, at path: ((AttemptToken, RecordingID) throws -> String)? = nil
  ) throws -> Recording {
    let id = JobID()
    let recording = try bench.recording(state: .building, job: id)
    try bench.store.makeWorkFolder(of: id)
    let token = Self.token(id, 1)
    let path = try path?(token, recording.id) ?? bench.growingPath(of: token)
    var writer = try PyramidWriter(creating: path, sampleRate: 1000, channels: 2)
    try writer.append([Int16](repeating: 1000, count: 40_000).span)
    try writer.publish()
    var job = LiveJob(isRunning: true, tenant: .none, recording: recording.id, writer: token)
    job.progress = WorkerProgress(
      fraction: 0.3, readyFrames: writer.readyFrames, totalFrames: 60_000, estimatedFrames: nil)
    bench.runner.live.insert(id, job)
    return recording
  }

  private static func token(_ job: JobID, _ attempt: Int) -> AttemptToken {
    AttemptToken(job: job, attempt: attempt, nonce: "0123456789abcdef")
  }

  @Test func aFileThatWasMovedToItsPlaceBeforeItsRowSaysSoIsFoundThere() async throws {
    let bench = try TestBench()
    let recording = try growing(bench) { token, id in
      try bench.store.makeFolder(of: id)
      return bench.store.objects.localFile(token.waveformKey(of: id)).path
    }
    let response = try await bench.respond(.get, "/v1/recordings/\(recording.id)/waveform?scale=256")
    #expect(response.status == .ok)
    #expect(response.fields["Stillwave-Complete"] == "false")
    #expect(Int(response.fields["Stillwave-Available-Frames"] ?? "") ?? 0 >= 19_000)
    #expect(response.fields["Cache-Control"] == "no-store" && response.fields["ETag"] == nil)
  }

  @Test func aMissingFileLooksLikeAnUnreadRecording() async throws {
    let bench = try TestBench()
    let recording = try growing(bench) { _, _ in bench.folder.path + "/elsewhere" }
    for form in ["waveform", "waveform.png"] {
      let response = try await bench.respond(.get, "/v1/recordings/\(recording.id)/\(form)")
      #expect(response.status == .ok)
      #expect(response.fields["Stillwave-Available-Frames"] == "0")
    }
  }

  // MARK: Recordings that change

  private func table(
    _ bench: TestBench, openFile: @escaping @Sendable (String) throws(WaveformError) -> PyramidFile
  ) -> WaveformTable {
    let repairs = WaveformRepairs(
      catalog: bench.catalog, blobs: bench.context.blobs, runner: bench.runner, log: ServiceLog(bench.logged.logger))
    return WaveformTable(
      catalog: bench.catalog, objects: bench.context.objects, disk: bench.store, live: bench.runner.live,
      work: StoreQueue(on: WorkQueue(label: "table")), localWork: WorkQueue(label: "disk"), repairs: repairs,
      readers: bench.context.readers, openFile: openFile)
  }

  @Test("a window that this machine has on its disk is shown although too many requests wait for the store")
  func windowAtHand() async throws {
    let (bench, blobs) = try TestBench.failingStore()
    let (recording, other) = (try bench.recording(), try bench.recording())
    for recording in [recording, other] { try bench.makeWaveform(of: recording) }
    let (store, gate) = (StoreQueue(threads: 1, waitingLimit: 0), DispatchSemaphore(value: 0))
    defer { gate.signal() }
    store.start { gate.wait() }
    let repairs = WaveformRepairs(
      catalog: bench.catalog, blobs: bench.context.blobs, runner: bench.runner, log: ServiceLog(bench.logged.logger))
    let table = WaveformTable(
      catalog: bench.catalog, objects: blobs, disk: bench.store, live: bench.runner.live, work: store,
      localWork: WorkQueue(label: "disk"), repairs: repairs, readers: bench.context.readers)
    blobs.atHand.withLock { $0 = true }
    let waveform = try await table.open(recording.id)
    let window = try WaveformWindow(WaveformQuery(resolution: .scale(256)), of: waveform.extent)
    blobs.atHand.withLock { $0 = false }
    await #expect(throws: StorageError.self) { try await table.fetch(window, of: waveform, for: .unknown) }
    await #expect(throws: StorageError.self) { try await table.open(other.id) }
    blobs.atHand.withLock { $0 = true }
    #expect(try await table.fetch(window, of: waveform, for: .unknown) == nil)
    #expect(try waveform.slice(window, for: .unknown).length == window.pixelCount)
    await #expect(throws: ServiceError.self, "no store knows more") { try await table.open(RecordingID()) }
  }

  @Test func aRecordingThatIsDeletedWhileItsWaveformIsOpenedDoesNotReturn() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    let (catalog, id) = (bench.catalog, recording.id)
    let table = table(bench) { path throws(WaveformError) in
      let file = try PyramidFile(path: path)
      do { _ = try catalog.deleteRecording(id) } catch { Issue.record(error) }
      return file
    }
    // This request came before the deletion.
    #expect(try await table.open(id).extent.isComplete)
    await #expect(throws: ServiceError.self) { try await table.open(id) }
  }

  @Test func aSliceOfARecordingThatIsDeletedIsNotServedAgain() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    for form in ["waveform", "waveform.dat", "waveform.png"] {
      let target = "/v1/recordings/\(recording.id)/\(form)?scale=256"
      #expect(try await bench.respond(.get, target).status == .ok)
    }
    let isOpen = { [weak waveform = try await bench.context.waveforms.open(recording.id)] in waveform != nil }
    #expect(isOpen())
    // By no request, like those of other nodes and of an age.
    _ = try bench.catalog.deleteRecording(recording.id)
    #expect(!isOpen(), "its files are closed and its pages leave the memory")
    for form in ["waveform", "waveform.dat", "waveform.png"] {
      let target = "/v1/recordings/\(recording.id)/\(form)?scale=256"
      #expect(try await bench.respond(.get, target).status == .notFound)
    }
  }

  @Test func anOpenWaveformIsOpenedOnceUntilItsRowChanges() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    let other = try bench.recording()
    let opened = Mutex(0)
    let table = table(bench) { path throws(WaveformError) in
      opened.withLock { $0 += 1 }
      return try PyramidFile(path: path)
    }
    _ = try await table.open(recording.id)
    try bench.catalog.update(other.id) { $0.name = "other" }
    _ = try await table.open(recording.id)
    #expect(opened.withLock { $0 } == 1)
    try bench.catalog.update(recording.id) { $0.name = "renamed" }
    _ = try await table.open(recording.id)
    #expect(opened.withLock { $0 } == 2)
  }

  @Test func aGrowingWaveformIsOpenedOnceByAttempt() async throws {
    let bench = try TestBench()
    let opened = Mutex<[String]>([])
    let table = table(bench) { path throws(WaveformError) in
      opened.withLock { $0.append(path) }
      return try PyramidFile(path: path)
    }
    let recording = try growing(bench)
    let job = try #require(recording.waveformJob)
    let (first, second) = (bench.growingPath(of: Self.token(job, 1)), bench.growingPath(of: Self.token(job, 2)))
    for _ in 0..<3 { #expect(try await table.open(recording.id).pyramid != nil) }
    #expect(opened.withLock { $0 } == [first])
    try FileManager.default.copyItem(atPath: first, toPath: second)
    bench.runner.live.update(job) { $0.writer = Self.token(job, 2) }
    for _ in 0..<3 { #expect(try await table.open(recording.id).pyramid != nil) }
    #expect(opened.withLock { $0 } == [first, second])
  }

  @Test func theFileOfAJobThatEndsWithoutAResultIsClosed() async throws {
    let bench = try TestBench()
    let recording = try growing(bench)
    let path = bench.growingPath(of: Self.token(try #require(recording.waveformJob), 1))
    #expect(try await bench.context.waveforms.open(recording.id).pyramid != nil)
    func isOpen() throws -> Bool {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").contains {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)) == path
      }
    }
    #expect(try isOpen())
    bench.runner.live.remove(try #require(recording.waveformJob))
    try await bench.eventually { try !isOpen() }
  }
}
