import Foundation
import PresentRows
import Terms
import Testing

@testable import Storage

/// What one tenant has doesn't exist for another.
@Suite(.onEveryEngine) struct TenantCatalogTests {
  private let folder: TemporaryFolder
  private let catalog: Catalog
  private let own: TenantCatalog
  private let other: TenantCatalog

  init() throws {
    folder = try TemporaryFolder()
    catalog = try Catalog(at: folder.path + "/catalog.sqlite")
    own = catalog.of(try #require(Tenant("ours")))
    other = catalog.of(try #require(Tenant("theirs")))
  }

  private func recording(_ name: String = "talk.wav") -> Recording {
    Recording(
      name: name, format: SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 1000, channels: 1, frames: 9))
  }

  @Test func aRecordingExistsOnlyForItsTenant() throws {
    let made = recording()
    let job = Job(kind: .waveform, recording: made.id)
    try own.insert(made, jobs: [job])
    #expect(try own.recording(made.id)?.tenant == own.tenant)
    #expect(try own.job(job.id)?.tenant == own.tenant)
    for stranger in [other, catalog.of(.none)] {
      #expect(try stranger.recording(made.id) == nil)
      #expect(try stranger.recordings(limit: 9).isEmpty)
      #expect(try stranger.recordings(limit: 9, nameContaining: "talk").isEmpty)
      #expect(try stranger.recordings(limit: 9, nameContaining: "t").isEmpty)
      #expect(try stranger.job(job.id) == nil)
      #expect(try stranger.jobs(limit: 9).isEmpty)
      #expect(try stranger.jobs(recording: made.id, limit: 9).isEmpty)
      #expect(try stranger.update(made.id) { $0.name = "stolen" } == nil)
      #expect(try stranger.update(made.id, if: { _ in true }, inserting: nil) { $0.name = "stolen" } == nil)
      #expect(try stranger.deleteRecording(made.id) == nil)
      #expect(try stranger.cancel(job.id) == nil)
      #expect(try stranger.conversion(of: made.id, to: "mp3") == nil)
      let conversion = Job(kind: .convert, recording: made.id)
      #expect(throws: StorageError.noSuchRecording(made.id)) { try stranger.sharedJob(orElse: conversion) }
      let result = Job(kind: .denoise, recording: made.id, output: RecordingID())
      #expect(throws: StorageError.noSuchRecording(made.id)) { try stranger.insert(recording(), jobs: [result]) }
    }
    #expect(try own.recording(made.id)?.name == "talk.wav")
    #expect(try own.recordings(limit: 9, nameContaining: "talk").map(\.id) == [made.id])
    #expect(try own.jobs(limit: 9).map(\.id) == [job.id])
  }

  @Test("the statement that changes a row looks for the tenant's, and no read comes before it")
  func writesWithoutReads() throws {
    let (made, expiry) = (recording(), Timestamp(milliseconds: 4_000_000_000_000))
    let job = Job(kind: .waveform, recording: made.id)
    try own.insert(made, jobs: [job])
    let upload = Upload(length: 8, expiresAt: expiry)
    try own.insert(upload, limits: UploadLimits(total: 9, perClient: 9))
    let track = LabelTrack(of: made.id, name: "Words", kind: .labels, language: nil, source: .upload)
    let conversion = Conversion(
      recording: made.id, format: "mp3", key: ObjectKey(made.id, "converted-1.mp3"), bytes: 1, sha256: "0",
      usedAt: Timestamp(milliseconds: 0))
    _ = try catalog.keep(conversion, of: own.tenant, limit: 9)
    let reads = catalog.readCount
    try own.insert(track, [], limit: 9)
    for tenant in [other, own] {
      let isOwn = tenant.tenant == own.tenant
      #expect(try (tenant.update(made.id) { $0.name = "x" } != nil) == isOwn)
      #expect(try (tenant.update(track.id, if: { _ in true }) { $0.name = "x" } != nil) == isOwn)
      #expect(((try? tenant.advance(upload.id, to: 4, expiresAt: expiry)) != nil) == isOwn)
      #expect(((try? tenant.takeOver(upload.id, at: 4)) != nil) == isOwn)
      try tenant.touch(conversion)
      #expect(try (catalog.read { try $0.first("SELECT used_at FROM conversions", as: Int64.self) } == 0) == !isOwn)
      try tenant.forget(conversion)
      #expect(try (catalog.read { try $0.first("SELECT count(*) FROM conversions", as: Int.self) } == 0) == isOwn)
      #expect(try tenant.deleteLabelTrack(track.id) { _ in true } == isOwn)
      #expect(try (tenant.cancel(job.id) != nil) == isOwn)
      #expect(try tenant.deleteUpload(upload.id) == isOwn)
      #expect(try (tenant.deleteRecording(made.id) != nil) == isOwn)
    }
    // Those of this test.
    #expect(catalog.readCount == reads + 4)
  }

  @Test func cursorsOfAnotherTenantOnlyBoundAList() throws {
    let (first, theirs, last) = (recording("a"), recording("b"), recording("c"))
    try own.insert(first)
    try other.insert(theirs)
    try own.insert(last)
    #expect(try own.recordings(limit: 9, after: RecordingPlace(theirs.id)).map(\.id) == [first.id])
    #expect(try own.recordings(limit: 9).map(\.id) == [last.id, first.id])
  }

  @Test func whatIsMadeFromARecordingBelongsToItsTenant() throws {
    let made = recording()
    try own.insert(made)
    let job = Job(kind: .waveform, recording: made.id)
    try catalog.insert(job)
    #expect(try own.job(job.id) != nil && other.job(job.id) == nil)
    let track = LabelTrack(of: made.id, name: "Words", kind: .labels, language: nil, source: .upload)
    try catalog.insert(track, [], limit: 9)
    #expect(try own.labelTrack(track.id)?.tenant == own.tenant)
    #expect(try own.labelTracks(of: made.id).map(\.id) == [track.id])
    #expect(try other.labelTrack(track.id) == nil && other.labelTracks(of: made.id).isEmpty)
    #expect(try other.labels(of: track.id) == nil)
    #expect(try other.update(track.id, if: { _ in true }) { $0.name = "stolen" } == nil)
    #expect(try !other.deleteLabelTrack(track.id) { _ in true })
    #expect(throws: StorageError.noSuchRecording(made.id)) { try other.insert(track, [], limit: 9) }
    #expect(try own.labelTrack(track.id)?.name == "Words")
  }

  @Test func tracksFoundInARecordingsFileBelongToItsTenant() throws {
    let made = recording()
    try own.insert(made)
    let job = Job(kind: .waveform, recording: made.id)
    try catalog.insert(job)
    let track = LabelTrack(of: made.id, name: "Chapters", kind: .chapters, language: nil, source: .embedded)
    let token = try #require(try catalog.claim(job.id).written?.token)
    _ = try catalog.finish(token, with: "{}", { $0.waveformState = .ready }, adding: [(track: track, chunks: [])])
    #expect(try own.labelTracks(of: made.id).map(\.id) == [track.id])
    #expect(try catalog.of(.none).labelTrack(track.id) == nil && other.labelTrack(track.id) == nil)
  }

  @Test func anUploadExistsOnlyForItsTenantAndSoDoesItsRecording() throws {
    let expiry = Timestamp(milliseconds: 4_000_000_000_000)
    let upload = Upload(length: 8, expiresAt: expiry)
    try own.insert(upload, limits: UploadLimits(total: 9, perClient: 9))
    #expect(try other.upload(upload.id) == nil)
    #expect(throws: StorageError.noSuchUpload(upload.id)) { try other.advance(upload.id, to: 8, expiresAt: expiry) }
    #expect(throws: StorageError.noSuchUpload(upload.id)) {
      try other.insert(recording(), jobs: [], finishing: upload.id, expiresAt: expiry)
    }
    #expect(try !other.deleteUpload(upload.id))
    let made = recording()
    try own.insert(made, jobs: [], finishing: upload.id, expiresAt: expiry)
    #expect(try own.recording(made.id) != nil && other.recording(made.id) == nil)
  }

  @Test func twoTenantsMayUseTheSameIdempotencyKey() throws {
    func answer(_ body: String) -> StoredResponse {
      StoredResponse(scope: "POST /v1/recordings", key: "k", fingerprint: "f", status: 201, location: "", body: body)
    }
    try own.insert(recording(), answer: answer("ours"))
    try other.insert(recording(), answer: answer("theirs"))
    #expect(try own.answer(scope: "POST /v1/recordings", key: "k")?.body == "ours")
    #expect(try other.answer(scope: "POST /v1/recordings", key: "k")?.body == "theirs")
    #expect(try catalog.of(.none).answer(scope: "POST /v1/recordings", key: "k") == nil)
    try own.removeAnswer(scope: "POST /v1/recordings", key: "k")
    #expect(try other.answer(scope: "POST /v1/recordings", key: "k") != nil)
  }

  @Test("seconds of jobs count on the days that have come, also after the clock was set back")
  func jobSeconds() throws {
    let today = Timestamp.now.milliseconds / 86_400_000
    try catalog.write { db in
      for (day, milliseconds) in [(today - 1, 1000), (today, 2000), (today + 1, 4000), (today + 2, 8000)] {
        try db.run("INSERT INTO job_seconds (tenant, day, milliseconds) VALUES ('ours', ?, ?)", [day, milliseconds])
      }
    }
    let ours = own.tenant
    #expect(try catalog.jobSeconds() == [ours: 2])
    #expect(try catalog.jobSeconds(through: today - 5) == [ours: 2])
    // The accounts have seen tomorrow, and then the clock was set back to today.
    #expect(try catalog.jobSeconds(through: today + 1) == [ours: 6])
    #expect(try own.usage(through: today + 1).jobSecondsToday == 6)
    try catalog.forgetJobSeconds()
    #expect(try catalog.jobSeconds(through: today + 2) == [ours: 14])
  }

  @Test func aDescriptionCarriesTheTenantUnlessThereIsNone() throws {
    var made = recording()
    #expect(!String(decoding: made.describedJSON, as: UTF8.self).contains("owner"))
    made.tenant = own.tenant
    let json = made.describedJSON
    #expect(String(decoding: json, as: UTF8.self).contains("\"owner\":\"ours\""))
    #expect(RecordingDescription(json: json)?.recording == made)
    // Another owner doesn't match the checksum.
    let forged = String(decoding: json, as: UTF8.self).replacing("\"ours\"", with: "\"mine\"")
    #expect(RecordingDescription(json: Array(forged.utf8)) == nil)
  }

  @Test(
    "a tenant's name is short and has no control characters",
    arguments: [
      ("", true), ("team ä", true), (String(repeating: "x", count: 128), true), ("a\nb", false),
      ("a\u{7F}", false), (String(repeating: "x", count: 129), false),
    ])
  func names(name: String, isValid: Bool) {
    #expect((Tenant(name) != nil) == isValid)
  }
}
