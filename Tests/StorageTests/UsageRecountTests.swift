import PresentRows
import Randomness
import Terms
import Testing

@testable import Storage

/// Whatever is stored, changed and deleted, tenants' figures are those of a recount, and no limit is exceeded.
@Suite(.onEveryEngine) struct UsageRecountTests {
  private let folder: TemporaryFolder
  private let catalog: Catalog
  private let tenants = [Tenant(stored: "limited"), Tenant(stored: "other")]
  /// Of the first tenant.
  private let limits = StoredLimits(bytes: 4000)
  private static let formats = ["mp3", "flac", "opus"]

  init() throws {
    folder = try TemporaryFolder()
    catalog = try Catalog(at: folder("catalog.sqlite"))
  }

  /// One random change. Those that exceed the limit change nothing.
  private func change(_ random: inout TestRandom) throws {
    let tenant = tenants[Int.random(in: 0...1, using: &random)]
    let (part, limits) = (catalog.of(tenant), tenant == tenants[0] ? limits : nil)
    let size = Int64.random(in: 1...400, using: &random)
    let recording = try part.recordings(limit: 99).randomElement(using: &random)
    let what = Int.random(in: 0..<14, using: &random)
    guard let recording, what > 0 else {
      let new = new(size)
      let job = Job(kind: .waveform, recording: new.id, expectedBytes: size, client: "c")
      return try part.insert(new, jobs: [job], within: limits)
    }
    let job = try catalog.unfinishedJobs().filter { $0.tenant == tenant }.randomElement(using: &random)
    let track = try part.labelTracks(of: recording.id).first
    let profile = try part.noiseProfiles(limit: 9).first
    switch what {
    case 1, 2, 3: if let job { try end(job, how: what, size, limits) }
    case 4: _ = try part.deleteRecording(recording.id)
    case 5:
      let made = empty()
      let job = Job(kind: .denoise, recording: recording.id, output: made.id, expectedBytes: size, client: "c")
      try part.insert(made, jobs: [job], within: limits)
    case 6, 7, 8:
      let job = Job(
        kind: .convert, recording: recording.id, expectedBytes: size,
        parameters: Self.formats.randomElement(using: &random) ?? "", client: "c")
      _ = try part.sharedJob(orElse: job, within: limits)
    case 9:
      guard let kept = try catalog.conversions(of: recording.id).first else { return }
      try part.forget(kept)
    case 10: try part.insert(self.track(of: recording), [chunk(size)], limit: 3, within: limits)
    case 11:
      if let track { _ = try part.update(track.id, if: { _ in true }, .all([chunk(size)]), within: limits) { _ in } }
    case 12:
      // As if the waveform had been lost, or the working copy.
      try part.update(recording.id) { if size % 2 == 0 { $0.waveformKey = nil } else { $0.workingKey = nil } }
      if let track, size % 3 == 0 { _ = try part.deleteLabelTrack(track.id) { _ in true } }
    default:
      if let profile, size % 2 == 0 { _ = try part.deleteNoiseProfile(profile.id) { _ in true } }
      let spectrum = [UInt8](repeating: 1, count: Int(size))
      try part.insert(
        KeptProfile(
          name: "p", recording: nil, noise: nil, sampleRate: nil, channels: 1, spectrum: spectrum),
        limit: 5, within: limits)
    }
  }

  /// Ends a job as its worker would: with a result of about `size` bytes, or without.
  private func end(_ job: Job, how: Int, _ size: Int64, _ limits: StoredLimits?) throws {
    guard let token = try catalog.job(job.id)?.token ?? catalog.claim(job.id).written?.token else { return }
    guard how > 1 else {
      if size % 2 == 0 { _ = try catalog.fail(token, error: "{}", progress: 0) }
      _ = try catalog.cancel(job.id)
      return
    }
    @Sendable func key(_ kind: String) -> ObjectKey { ObjectKey(job.resultRecording, "\(kind)-\(token.name)") }
    guard job.kind == .convert else {
      _ = try catalog.finish(
        token, with: "{}",
        {
          if $0.bytes == nil { ($0.bytes, $0.audioKey) = (size, key("audio")) }
          ($0.waveformKey, $0.waveformBytes, $0.mapBytes) = (key("waveform"), size / 2, size / 8)
          if size % 3 == 0 { ($0.workingKey, $0.workingBytes) = (key("working"), size * 2) }
        }, adding: size % 5 == 0 ? [(track(of: empty(job.resultRecording)), [chunk(size)])] : [], within: limits)
      return
    }
    let conversion = Conversion(
      recording: job.recording, format: job.parameters, key: key("converted"), bytes: size,
      sha256: String(repeating: "0", count: 64))
    _ = try catalog.keep(conversion, limit: 600, finishing: token, with: "{}", within: limits)
  }

  private func empty(_ id: RecordingID = RecordingID()) -> Recording {
    Recording(
      id: id, name: "x", format: SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 8000, channels: 1))
  }

  private func new(_ size: Int64) -> Recording {
    var new = empty()
    (new.bytes, new.audioKey) = (size, ObjectKey(new.id, "audio.wav"))
    return new
  }

  private func track(of recording: Recording) -> LabelTrack {
    LabelTrack(of: recording.id, name: "t", kind: .labels, language: nil, source: .upload)
  }

  private func chunk(_ size: Int64) -> LabelChunk {
    LabelChunk(start: 0, end: 1, texts: ["abc"], labels: Array(repeating: 1, count: Int(size)))
  }

  /// What a tenant has, from its rows alone.
  private func recount(_ tenant: Tenant) throws -> TenantUsage {
    let part = catalog.of(tenant)
    var usage = TenantUsage()
    for recording in try part.recordings(limit: 9999) {
      usage.recordings += 1
      usage.storedBytes += (recording.bytes ?? 0) + (recording.waveformBytes ?? 0) + (recording.mapBytes ?? 0)
      usage.storedBytes += recording.workingBytes ?? 0
      usage.storedBytes += try catalog.conversions(of: recording.id).reduce(0) { $0 + $1.bytes }
      for track in try part.labelTracks(of: recording.id) {
        for chunk in try part.labels(of: track.id)?.chunks ?? [] { usage.storedBytes += Int64(chunk.labels.count + 3) }
      }
    }
    usage.storedBytes += try part.noiseProfiles(limit: 99).reduce(0) { $0 + Int64($1.spectrum.count) }
    for job in try catalog.unfinishedJobs() where job.tenant == tenant {
      usage.expectedBytes += job.expectedBytes
      if job.state == .running { usage.runningJobs += 1 } else { usage.queuedJobs += 1 }
    }
    return usage
  }

  @Test("after 300 random changes, usage is that of a recount and within the limit")
  func random() throws {
    var random = TestRandom(for: 43)
    for number in 0..<300 {
      do { try change(&random) } catch StorageError.limitReached("stored_bytes", limit: 4000),
        StorageError.tooManyLabelTracks, StorageError.tooManyNoiseProfiles
      {}
      #expect(try catalog.of(tenants[0]).usage().storedBytes <= 4000)
      // What is counted wrong stays wrong.
      guard number % 4 == 3 else { continue }
      for tenant in tenants {
        let usage = try catalog.of(tenant).usage()
        var recount = try recount(tenant)
        recount.jobSecondsToday = usage.jobSecondsToday
        #expect(usage == recount, "after change \(number)")
        #expect(try catalog.storedByTenant()[tenant]?.storedBytes ?? 0 == recount.storedBytes)
      }
    }
    // Whatever the changes were, ten more recordings reach the limit.
    #expect(throws: StorageError.limitReached("stored_bytes", limit: 4000)) {
      for _ in 0...10 { try catalog.of(tenants[0]).insert(new(400), jobs: [], within: limits) }
    }
    for tenant in tenants {
      for recording in try catalog.of(tenant).recordings(limit: 9999) {
        _ = try catalog.of(tenant).deleteRecording(recording.id)
      }
      for profile in try catalog.of(tenant).noiseProfiles(limit: 99) {
        _ = try catalog.of(tenant).deleteNoiseProfile(profile.id) { _ in true }
      }
      #expect(try catalog.of(tenant).usage().storedBytes == 0)
    }
  }

  @Test("a tenant's conversions give way to its own only")
  func conversionsOfTenants() throws {
    func keep(_ tenant: Tenant, used: Int64) throws -> RecordingID {
      let recording = empty()
      try catalog.of(tenant).insert(recording)
      let job = Job(kind: .convert, recording: recording.id)
      try catalog.insert(job)
      let token = try #require(try catalog.claim(job.id).written?.token)
      let conversion = Conversion(
        recording: recording.id, format: "mp3", key: ObjectKey(recording.id, "converted-\(used)"), bytes: 60,
        sha256: String(repeating: "0", count: 64), usedAt: Timestamp(milliseconds: used))
      _ = try catalog.keep(conversion, limit: 100, finishing: token, with: "{}")
      return recording.id
    }
    let first = try keep(tenants[0], used: 1)
    let others = try (2...4).map { try keep(tenants[1], used: $0) }
    #expect(try catalog.conversions(of: first).count == 1)
    #expect(try others.map { try catalog.conversions(of: $0).count } == [0, 0, 1])
  }

  @Test("what unfinished jobs are expected to make counts when another is planned, and no longer when they end")
  func planning() throws {
    let part = catalog.of(tenants[0])
    let source = empty()
    try part.insert(source)
    let limits = StoredLimits(bytes: 100)
    func job(_ bytes: Int64, _ format: String) -> Job {
      Job(kind: .convert, recording: source.id, expectedBytes: bytes, parameters: format)
    }
    let first = try part.sharedJob(orElse: job(60, "mp3"), within: limits).job
    #expect(throws: StorageError.limitReached("stored_bytes", limit: 100)) {
      try part.sharedJob(orElse: job(41, "flac"), within: limits)
    }
    #expect(throws: StorageError.limitReached("stored_bytes", limit: 100)) {
      try part.insert(empty(), jobs: [job(41, "opus")], within: limits)
    }
    #expect(try part.sharedJob(orElse: job(60, "mp3"), within: limits).isNew == false)
    _ = try part.sharedJob(orElse: job(0, "measured"), within: limits)
    _ = try catalog.cancel(first.id)
    #expect(try part.sharedJob(orElse: job(100, "flac"), within: limits).isNew)
  }
}
