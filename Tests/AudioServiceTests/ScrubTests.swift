import Foundation
import Synchronization
import Terms
import Testing

@testable import AudioService
@testable import Jobs
@testable import Storage

/// Files that the disk changes after they were stored.
@Suite struct ScrubTests {
  /// The thread on which a file was given up.
  private final class Giver: Sendable { let thread = Mutex<pthread_t?>(nil) }

  private static let day = 86_400.0
  private let bench: TestBench
  private let giver = Giver()

  init() throws { bench = try TestBench(script: "gate; finish") }

  private func scrub(_ bench: TestBench? = nil, every seconds: Double? = 30 * day) -> Scrub {
    let bench = bench ?? self.bench
    let table = bench.context.waveforms
    return Scrub(
      bench.catalog, bench.context.objects, every: seconds, log: ServiceLog(bench.logged.logger),
      giveUp: { [giver] id, loss throws(StorageError) in
        giver.thread.withLock { $0 = pthread_self() }
        try table.giveUp(id, loss)
      })
  }

  /// Flips a bit in the middle of a recording's file, or flips it back.
  private func flip(_ recording: Recording) throws {
    let path = bench.store.path(of: try #require(recording.audioKey))
    var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    bytes[bytes.count / 2] ^= 0x10
    try bytes.write(to: URL(fileURLWithPath: path))
  }

  private func isWarned(_ recording: Recording) throws -> Bool {
    try bench.catalog.recording(recording.id)?.warnings.contains { $0.code == "audio_altered" } ?? false
  }

  private func text(_ target: String) async throws -> String {
    String(decoding: try await bench.respond(.get, target).body.collect(), as: UTF8.self)
  }

  @Test(
    "an altered file is found within the interval, and is said by its recording, /metrics and /readyz until it is right"
  )
  func alteredFile() async throws {
    let (altered, intact) = (try bench.recording(), try bench.recording(name: "other.wav"))
    let (scrub, now) = (scrub(), Timestamp.now)
    try flip(altered)
    #expect(try scrub.sweep(at: now + 29 * Self.day) == 0)
    #expect(try scrub.sweep(at: now + 31 * Self.day) == 2)
    #expect(try isWarned(altered) && !isWarned(intact) && scrub.alteredCount == 1)
    #expect(bench.logged.failures.count == 1)
    #expect(try await text("/metrics").contains("\nstillwave_altered_files 1\n"))
    #expect(try await text("/readyz").contains("\"audio_altered\""))
    #expect(try await text("/v1/recordings/\(altered.id)").contains("\"audio_altered\""))
    // Compared just now.
    try flip(altered)
    #expect(try scrub.sweep(at: now + 60 * Self.day) == 0 && isWarned(altered))
    #expect(try scrub.sweep(at: now + 62 * Self.day) == 2 && !isWarned(altered) && scrub.alteredCount == 0)
    #expect(try await text("/metrics").contains("\nstillwave_altered_files 0\n"))
  }

  @Test("files are read at 5 MB a second, and never if the interval is 0")
  func pace() async throws {
    let hand = ManualClock()
    let bench = try TestBench { $0.clock = hand.clock }
    let recording = try bench.recording(containing: String(repeating: "x", count: 10_000_000))
    #expect(try scrub(bench, every: nil).sweep(at: .now + 1000 * Self.day) == 0)
    let (scrub, start) = (scrub(bench), hand.clock.now)
    let seconds = Mutex(0.0)
    hand.clock.async(on: DispatchQueue(label: "scrub")) {
      #expect((try? scrub.sweep(at: .now + 31 * Self.day)) == 1)
      seconds.withLock { $0 = hand.clock.seconds(since: start) }
    }
    await hand.run(for: 60)
    #expect(try bench.catalog.recording(recording.id)?.warnings.isEmpty == true)
    #expect(abs(seconds.withLock(\.self) - 2) < 1e-9)
  }

  @Test("a missing file isn't called altered, and keeps no others waiting")
  func missingFile() throws {
    let (missing, altered) = (try bench.recording(), try bench.recording())
    try FileManager.default.removeItem(atPath: bench.store.path(of: try #require(missing.audioKey)))
    try flip(altered)
    #expect(try scrub().sweep(at: .now + 31 * Self.day) == 2)
    #expect(try !isWarned(missing) && isWarned(altered))
  }

  @Test("a conversion that has changed is discarded, and another one stays")
  func conversions() throws {
    let recording = try bench.recording()
    for (format, sha256) in [("mp3", "0"), ("flac", try #require(recording.sha256))] {
      let key = ObjectKey(recording.id, "converted-1.\(format)")
      try FileManager.default.copyItem(
        atPath: bench.store.path(of: try #require(recording.audioKey)), toPath: bench.store.path(of: key))
      let row = ConversionRow(
        conversion: Conversion(
          recording: recording.id, format: format, key: key, bytes: 4, sha256: sha256, usedAt: .now), tenant: .none)
      try bench.catalog.write { try row.insertOrReplace($0) }
    }
    #expect(try scrub().sweep(at: .now + 31 * Self.day) == 1)
    #expect(try bench.catalog.conversions(of: recording.id).map(\.format) == ["flac"])
    #expect(try !isWarned(recording))
  }

  @Test("an altered working copy is made again", arguments: [false, true])
  func workingCopy(isIntact: Bool) throws {
    let recording = try bench.recording()
    let key = ObjectKey(recording.id, "working-1.wav")
    try Data("copy".utf8).write(to: URL(fileURLWithPath: bench.store.path(of: key)))
    let sha256 = try #require(try bench.store.objects.sha256(of: "\(key)", inPieces: true) { _ in true })
    try bench.catalog.update(recording.id) {
      $0.waveformState = .ready
      $0.noteWorkingCopy(StoredFile(key: key, bytes: 4, sha256: isIntact ? sha256 : String(repeating: "0", count: 64)))
    }
    #expect(try scrub().sweep(at: .now + 31 * Self.day) == 1)
    let row = try #require(try bench.catalog.recording(recording.id))
    #expect(try !isWarned(recording) && row.workingKey == (isIntact ? key : nil))
    #expect((row.waveformState == .ready) == isIntact)
    // A write on a thread of the lowest priority would hold up others.
    #expect(giver.thread.withLock { $0 } != pthread_self())
  }

  @Test("if the store doesn't answer, the next look goes on there")
  func unreachable() throws {
    let recording = try bench.recording()
    let blobs = FailingStore(bench.store.objects)
    let scrub = Scrub(
      bench.catalog, blobs, every: 30 * Self.day,
      log: ServiceLog(bench.logged.logger)
    ) { _, _ in }
    blobs.fetching.withLock { $0 = (.storeUnreachable(detail: ""), nil) }
    try flip(recording)
    #expect(throws: StorageError.self) { try scrub.sweep(at: .now + 31 * Self.day) }
    blobs.fetching.withLock { $0 = nil }
    #expect(try scrub.sweep(at: .now + 31 * Self.day) == 1 && isWarned(recording))
  }

  @Test("a damaged waveform is found and built again")
  func damagedWaveform() throws {
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    let key = try #require(try bench.catalog.recording(recording.id)?.waveformKey)
    let path = bench.store.path(of: key)
    var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    bytes[bytes.count / 2] ^= 1
    try bytes.write(to: URL(fileURLWithPath: path))
    #expect(try scrub().sweep(at: .now + 31 * Self.day) == 1)
    let row = try #require(try bench.catalog.recording(recording.id))
    #expect(row.waveformKey == nil && row.waveformState != .ready)
  }

  @Test("a job's source is compared beside the job, if that was last done over a day ago", arguments: [0.5, 2])
  func source(days: Double) async throws {
    let recording = try bench.recording()
    try bench.catalog.update(recording.id) { $0.createdAt = .now + -days * Self.day }
    try flip(recording)
    // The source is noted when the attempt begins.
    let answer = try await bench.respond(.post, "/v1/recordings/\(recording.id)/denoise", body: "{}")
    #expect(answer.status == .accepted)
    let job = try #require(answer.fields["Location"].flatMap { JobID(String($0.suffix(36))) })
    await bench.begun(job)
    try bench.context.scrub.compareWaiting()
    #expect(try isWarned(recording) == (days > 1))
    let again = scrub()
    again.jobBegan(on: recording.id)
    try flip(recording)
    try again.compareWaiting()
    #expect(try isWarned(recording) == (days > 1), "it was compared just now")
    await bench.runner.stop()
  }
}
