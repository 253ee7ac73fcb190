import PresentRows
import Synchronization
import Testing

@testable import Storage

/// What is left in the catalog after a deletion.
@Suite struct ErasedTracesTests {
  private let folder: TemporaryFolder
  private let catalog: Catalog

  init() throws {
    folder = try TemporaryFolder()
    catalog = try Catalog(path: folder("catalog.sqlite"))
  }

  @Test("whatever a client deletes or replaces leaves traces")
  func deletions() throws {
    let seen = Seen()
    catalog.whenChanged { seen.note($0.leavesTraces) }
    let recording = sample()
    try catalog.insert(recording)
    let track = LabelTrack(of: recording.id, name: "x", kind: .labels, language: nil, source: .upload)
    let chunk = LabelChunk(start: 0, end: 1, texts: ["a"], labels: [0x31])
    try catalog.insert(track, [chunk], limit: 9)
    _ = try catalog.update(track.id, if: { _ in true }) { $0.name = "y" }
    let profile = KeptProfile(
      name: "x", recording: recording.id, noise: nil, sampleRate: nil, channels: 1, spectrum: [0x31])
    try catalog.insert(profile, limit: 9)
    #expect(seen.take() == [false, false, false, false])
    _ = try catalog.update(track.id, if: { _ in true }, .all([chunk])) { _ in }
    _ = try catalog.deleteLabelTrack(track.id) { _ in true }
    _ = try catalog.deleteNoiseProfile(profile.id) { _ in true }
    #expect(seen.take() == [true, true, true])
    let made = sample("made.wav")
    let job = Job(kind: .denoise, recording: recording.id, output: made.id)
    try catalog.insert(made, jobs: [job])
    #expect(seen.take() == [false])
    try catalog.cancel(job.id)
    _ = try catalog.deleteRecording(recording.id)
    #expect(seen.take() == [true, true])
  }

  @Test("a profile keeps its numbers and a loudness job its row, but nothing of the recording")
  func profilesAndLoudness() throws {
    let recording = sample()
    try catalog.insert(recording)
    let profile = KeptProfile(
      name: "Fan", recording: recording.id, noise: "{\"start\":1,\"end\":2}", sampleRate: 44_100, channels: 1,
      spectrum: [0x31])
    try catalog.insert(profile, limit: 9)
    var job = Job(kind: .loudness, recording: recording.id, output: nil)
    (job.state, job.finishedAt, job.result) = (.succeeded, .now, "{\"recording\":\"\(recording.id)\"}")
    try catalog.insert(job)
    _ = try catalog.deleteRecording(recording.id)
    let kept = try #require(try catalog.noiseProfile(profile.id))
    #expect(kept.recording == nil && kept.noise == nil && kept.version == 1)
    #expect(kept.name == "Fan" && kept.spectrum == [0x31] && kept.sampleRate == 44_100)
    #expect(try catalog.job(job.id)?.result == nil)
    #expect(throws: StorageError.noSuchRecording(recording.id)) { try catalog.insert(profile, limit: 9) }
  }

  @Test(
    "what a denoise job measured is forgotten with the last of its source and its output", arguments: [false, true])
  func measured(sourceIsFirst: Bool) throws {
    let source = sample()
    var output = sample()
    var job = Job(kind: .denoise, recording: source.id, output: output.id)
    output.derivedFrom = Derivation(recording: source.id, job: job.id, operation: "denoise")
    for recording in [source, output] { try catalog.insert(recording) }
    (job.state, job.finishedAt, job.result) = (.succeeded, .now, "{\"recording\":\"\(output.id)\"}")
    try catalog.insert(job)
    let order = sourceIsFirst ? [source.id, output.id] : [output.id, source.id]
    _ = try catalog.deleteRecording(order[0])
    #expect(try catalog.job(job.id)?.result != nil)
    _ = try catalog.deleteRecording(order[1])
    #expect(try catalog.job(job.id)?.result == nil)
  }
}

/// What the catalog told about its commits.
private final class Seen: Sendable {
  private let values = Mutex<[Bool]>([])

  func note(_ value: Bool) { values.withLock { $0.append(value) } }

  func take() -> [Bool] {
    values.withLock { values in
      defer { values = [] }
      return values
    }
  }
}
