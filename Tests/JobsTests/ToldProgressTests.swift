import AudioIO
import Foundation
import PresentRows
import Processing
import Synchronization
import Terms
import Testing
import Workers

@testable import Jobs
@testable import Storage

/// What a node tells the others of the progress of its jobs.
@Suite struct ToldProgressTests {
  /// Reports each number that it reads from the pipe `told-<job>` as progress, and ends its work when that is closed.
  private static let program = #"""
    #!/bin/sh
    read -r request
    pyramid=${request#*'"pyramid":"'}; pyramid=${pyramid%%\"*}
    job=${pyramid%/*}; job=${job##*/}
    while read -r fraction; do
      echo "{\"progress\":{\"fraction\":$fraction,\"ready_frames\":0,\"total_frames\":1000}}"
    done < "${0%/*}/told-$job"
    echo x > "$pyramid"
    echo '{"analysis":{"frames":1000,"warnings":[]}}'

    """#

  /// A bus that keeps what is sent.
  private final class Bus: ChangeBus {
    let byteLimit = 8000
    let secondsSinceHeard: Double? = 0
    private let sent = Mutex<[AttemptProgress]>([])

    func send(_ message: String, in session: any SQLSession) {}
    func send(_ message: String) {
      guard case .progress(let progress)? = CatalogMessage.parse(message)?.message else { return }
      sent.withLock { $0.append(progress) }
    }
    func listen(_ handler: @escaping @Sendable (BusEvent) -> Void) {}
    func stopListening() {}

    /// The progress of a job that was sent, in order.
    func fractions(of job: JobID) -> [Double] {
      sent.withLock { $0 }.filter { $0.token.job == job }.compactMap {
        guard case .progress(let progress)? = WorkerReport(line: Array($0.report.utf8)[...]) else { return nil }
        return progress.fraction
      }
    }
  }

  private struct NoLog: JobLog {
    func job(_ job: Job) {}
    func notice(_ message: String, _ metadata: [String: String]) {}
    func failure(_ message: String, _ metadata: [String: String]) { Issue.record("\(message) \(metadata)") }
  }

  private let folder = NSTemporaryDirectory() + "stillwave-told-" + RecordingID().text
  private let bus = Bus()
  private let hand = ManualClock()
  private let began: Clock.Instant
  private let catalog: Catalog
  private let store: MediaStore
  private let runner: JobRunner

  init() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try Data(Self.program.utf8).write(to: URL(fileURLWithPath: folder + "/program"))
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder + "/program")
    store = try MediaStore(directory: folder + "/data")
    catalog = Catalog(
      engine: try SQLiteEngine(path: store.catalogPath), holder: LeaseHolder(name: "one", terms: LeaseHolder.Terms()),
      bus: bus, clock: hand.clock)
    began = hand.clock.instant(after: -100)
    let workers = WorkerSettings(
      program: folder + "/program", ffmpeg: "ffmpeg", audioLimits: AudioLimits(), memoryBytes: 1 << 30)
    let settings = JobSettings(
      workers: workers,
      lifecycle: .init(
        places: 2, maximumAttempts: 1, retryPauseSeconds: 0.01, stallSeconds: 1e6, secondsPerProcessorSecond: 1000),
      maximumQueued: 9, maximumQueuedPerClient: 9, reservedDiskBytes: 0, maximumConversionBytes: 0)
    let work = WorkQueue(label: "told")
    runner = JobRunner(
      settings, catalog: catalog, blobs: Blobs(store, of: catalog), scratch: Scratch(store), work: work,
      storeWork: StoreQueue(on: work),
      log: NoLog()
    ) {
      JobError(title: "failed", status: 500, detail: $0.detail, code: $0.code)
    }
  }

  /// A job that runs, and the end of the pipe that its child reads.
  private struct Running {
    let id: JobID
    let pipe: FileHandle
  }

  private func start() throws -> Running {
    let file = try store.receive()
    try file.append(Array("RIFF".utf8).span)
    let id = RecordingID()
    let stored = try store.objects.adopt(file, as: id, name: "audio.wav")
    let format = SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 1000, channels: 2, frames: 1000)
    let job = Job(kind: .waveform, recording: id)
    try catalog.insert(
      Recording(
        id: id, name: "a.wav", bytes: stored.bytes, sha256: stored.sha256, format: format, waveformState: .queued,
        waveformJob: job.id, audioKey: stored.key), jobs: [job])
    let path = folder + "/told-\(job.id)"
    try #require(unsafe mkfifo(path, 0o600) == 0)
    // Opened for both directions, which waits for nobody.
    let pipe = FileHandle(fileDescriptor: unsafe open(path, O_RDWR | O_CLOEXEC), closeOnDealloc: true)
    runner.submit(job)
    return Running(id: job.id, pipe: pipe)
  }

  /// Has a child report progress at a time, one after the other.
  private func report(_ fractions: [Double], of job: Running, at seconds: Double) async throws {
    hand.advance(by: seconds - hand.clock.seconds(since: began))
    for fraction in fractions {
      try job.pipe.write(contentsOf: Data("\(fraction)\n".utf8))
      while try #require(runner.live[job.id]).fraction != fraction {
        await runner.waitForChange(of: job.id, seconds: .infinity)
      }
      // It is shown here before other nodes are told.
      runner.queue.sync {}
    }
    await hand.idle()
  }

  private func expect(_ told: [Double], of job: Running, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(bus.fractions(of: job.id) == told, sourceLocation: sourceLocation)
  }

  @Test("the progress of each job is told at most once a second, and again as soon as the second is over")
  func onceASecond() async throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let (one, other) = (try start(), try start())
    try await report([0.1, 0.2, 0.3], of: one, at: 100)
    expect([0.1], of: one)
    try await report([0.4], of: one, at: 100.999)
    try await report([0.5, 0.6], of: other, at: 100.999)
    expect([0.5], of: other)
    try await report([0.5, 0.6], of: one, at: 101)
    expect([0.1, 0.5], of: one)
    try await report([0.7], of: other, at: 101.998)
    try await report([0.7], of: one, at: 101.999)
    // A second since the last time that it was told, not since the first.
    try await report([0.8], of: one, at: 102)
    expect([0.1, 0.5, 0.8], of: one)
    expect([0.5], of: other)
    await runner.stop()
  }
}
