import Foundation
import HTTP
import PresentRows
import Storage
import Testing

@testable import AudioService
@testable import Jobs

@Suite struct RetentionTests {
  private func folders(_ bench: TestBench) throws -> Set<String> {
    Set(try FileManager.default.contentsOfDirectory(atPath: bench.folder.path + "/data/recordings"))
  }

  @Test func onlyOlderRecordingsAreDeletedWithTheirFiles() async throws {
    let bench = try TestBench()
    let old = try (0..<250).map { _ in try bench.recording() }
    let young = try bench.recording()
    try bench.catalog.update(young.id) { $0.createdAt = Timestamp(milliseconds: $0.createdAt.milliseconds + 3_600_000) }
    let later = Timestamp(milliseconds: Timestamp.now.milliseconds + 10)
    #expect(Retention(bench.context, bench.catalog).sweep(createdBefore: later) == old.count)
    #expect(try bench.catalog.recordings(limit: 999).map(\.id) == [young.id])
    #expect(try folders(bench) == [young.id.text])
    #expect(try await bench.respond(.get, "/v1/recordings/\(old[0].id)").status == .notFound)
    #expect(try await bench.respond(.get, "/v1/recordings/\(old[0].id)/audio").status == .notFound)
  }

  @Test func theTimeInAnIDMayBeALittleAheadOfTheRecordingsAge() throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    try bench.catalog.update(recording.id) { $0.createdAt = $0.createdAt + -7200 }
    #expect(Retention(bench.context, bench.catalog).sweep(createdBefore: .now + -3600) == 1)
    #expect(try bench.catalog.recording(recording.id) == nil)
  }

  @Test func recordingsInUseByAJobStayUntilItEnds() async throws {
    let bench = try TestBench(script: "gate; finish")
    let job = try bench.waveformJob()
    let (source, made, idle) = (try bench.recording(), RecordingID(), try bench.recording())
    let denoise = Job(kind: .denoise, recording: source.id, output: made)
    try bench.catalog.insert(Recording(id: made, name: "made.wav", format: source.format), jobs: [denoise])
    bench.runner.submit(job)
    await bench.begun(job.id)
    let later = Timestamp(milliseconds: Timestamp.now.milliseconds + 10)
    #expect(Retention(bench.context, bench.catalog).sweep(createdBefore: later) == 1)
    #expect(try bench.catalog.recording(idle.id) == nil)
    #expect(try Set(bench.catalog.recordings(limit: 9).map(\.id)) == [job.recording, source.id, made])
    try await bench.openGate(job.id)
    #expect(try await bench.finished(job.id).state == .succeeded)
    #expect(Retention(bench.context, bench.catalog).sweep(createdBefore: later) == 1)
    #expect(try bench.catalog.recording(job.recording) == nil)
    #expect(try bench.catalog.job(job.id)?.state == .succeeded)
  }

  @Test func leftoversOfACrashBetweenRowAndFilesAreRemovedAtTheNextStart() throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    let later = Timestamp(milliseconds: Timestamp.now.milliseconds + 10)
    #expect(try bench.catalog.deleteRecordings(createdBefore: later, limit: 9).map(\.id) == [recording.id])
    #expect(try folders(bench) == [recording.id.text])
    let report = Reconciliation(catalog: bench.catalog, store: bench.store).run(verified: true)
    #expect(try report.recordings == 1 && folders(bench).isEmpty)
  }
}
