import PresentRows
import Testing

@testable import Storage

/// What counts toward the bytes that a tenant may store.
@Suite(.onEveryEngine) struct StoredBytesTests {
  private let folder: TemporaryFolder
  private let tenant = Tenant("ours") ?? .none

  init() throws { folder = try TemporaryFolder() }

  private func chunk(_ text: String) -> LabelChunk {
    LabelChunk(start: 0, end: 1, texts: [text], labels: Array("{\"text\":\"\(text)\"}".utf8))
  }

  /// The length of the stored chunk with this text: as it was given, and folded for searching.
  private func bytes(_ text: String) -> Int64 { Int64(chunk(text).labels.count + text.utf8.count) }

  private func track(of recording: Recording) -> LabelTrack {
    LabelTrack(of: recording.id, name: "x", kind: .labels, language: nil, source: .upload)
  }

  private func profile(_ length: Int) -> KeptProfile {
    KeptProfile(
      name: "x", recording: nil, noise: nil, sampleRate: nil, channels: 1,
      spectrum: [UInt8](repeating: 32, count: length))
  }

  private func open() throws -> (TenantCatalog, Recording) {
    let catalog = try Catalog(at: folder("catalog.sqlite")).of(tenant)
    var recording = sample()
    recording.bytes = 1000
    try catalog.insert(recording)
    return (catalog, recording)
  }

  @Test("labels count in every way in which they are stored, changed and deleted")
  func labels() throws {
    let (catalog, recording) = try open()
    let track = track(of: recording)
    try catalog.insert(track, [chunk("one"), chunk("two")], limit: 9)
    #expect(try catalog.usage().storedBytes == 1000 + bytes("one") + bytes("two"))
    _ = try catalog.update(track.id, if: { _ in true }, .all([chunk("another")])) { _ in }
    #expect(try catalog.usage().storedBytes == 1000 + bytes("another"))
    _ = try catalog.update(track.id, if: { _ in true }) { $0.name = "y" }
    #expect(try catalog.usage().storedBytes == 1000 + bytes("another"))
    #expect(try catalog.deleteLabelTrack(track.id) { _ in true })
    #expect(try catalog.usage().storedBytes == 1000)
    try catalog.insert(self.track(of: recording), [chunk("three")], limit: 9)
    _ = try catalog.deleteRecording(recording.id)
    #expect(try catalog.usage() == TenantUsage())
  }

  @Test("a track beyond the limit isn't stored, and a shorter one replaces it even then")
  func limitOfLabels() throws {
    let (catalog, recording) = try open()
    let track = track(of: recording)
    let limits = StoredLimits(recordings: 0, bytes: 1000 + bytes("short"))
    #expect(throws: StorageError.limitReached("stored_bytes", limit: limits.bytes ?? 0)) {
      try catalog.insert(track, [chunk("longer")], limit: 9, within: limits)
    }
    #expect(try catalog.labelTracks(of: recording.id).isEmpty)
    try catalog.insert(track, [chunk("short")], limit: 9, within: limits)
    #expect(throws: StorageError.limitReached("stored_bytes", limit: limits.bytes ?? 0)) {
      try catalog.update(track.id, if: { _ in true }, .all([chunk("longer")]), within: limits) { _ in }
    }
    #expect(try catalog.labels(of: track.id)?.chunks.map(\.labels) == [chunk("short").labels])
    let updated = try catalog.update(track.id, if: { _ in true }, .all([chunk("s")]), within: StoredLimits(bytes: 1)) {
      _ in
    }
    #expect(updated != nil)
  }

  @Test("noise profiles count until they are deleted, even if a job still uses them")
  func profiles() throws {
    let (catalog, recording) = try open()
    let limits = StoredLimits(bytes: 1300)
    let first = profile(200)
    try catalog.insert(first, limit: 9, within: limits)
    #expect(try catalog.usage().storedBytes == 1200)
    #expect(throws: StorageError.limitReached("stored_bytes", limit: 1300)) {
      try catalog.insert(profile(101), limit: 9, within: limits)
    }
    _ = try catalog.renameNoiseProfile(first.id, to: "y") { _ in true }
    #expect(try catalog.usage().storedBytes == 1200)
    try catalog.whole.insert(
      Job(kind: .denoise, recording: recording.id, output: nil, parameters: "{\"profile\":\"\(first.id)\"}"))
    #expect(try catalog.deleteNoiseProfile(first.id) { _ in true })
    #expect(try catalog.whole.noiseProfile(first.id, evenDeleted: true) != nil)
    #expect(try catalog.usage().storedBytes == 1000)
    try catalog.insert(profile(300), limit: 9, within: limits)
    #expect(try catalog.usage().storedBytes == 1300)
  }
}

/// The bytes that were stored before they were counted, which only SQLite has had.
