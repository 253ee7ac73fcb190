import Foundation
import PresentRows
import Synchronization
import Terms
import Testing

@testable import PostgresStorage
@testable import Storage

/// What the nodes of a cluster with a bucket do with their catalog, one after the other: every statement of the catalog
/// runs at least once, with something to find or to change. `EarlierSchemaTests` notes it.
struct CatalogLife {
  /// Does nothing: only statements are noted.
  private struct Shelf: DescriptionStore {
    let hasOtherWriters = true
    func describe(_ recording: Recording) {}
    func removeMark(of id: RecordingID) {}
    func checkClaim() {}
  }

  /// PostgreSQL's bus, with a list of the messages that were sent.
  private final class Bus: ChangeBus {
    let bus: PostgresBus
    let sent = Mutex<[String]>([])

    init(_ bus: PostgresBus) { self.bus = bus }

    var byteLimit: Int { bus.byteLimit }
    var secondsSinceHeard: Double? { bus.secondsSinceHeard }

    func send(_ message: String, in session: any SQLSession) throws(StorageError) {
      try bus.send(message, in: session)
      sent.withLock { $0.append(message) }
    }

    func send(_ message: String) throws(StorageError) {
      try bus.send(message)
      sent.withLock { $0.append(message) }
    }

    func listen(_ handler: @escaping @Sendable (BusEvent) -> Void) { bus.listen(handler) }
    func stopListening() { bus.stopListening() }
  }

  private let bus: Bus
  /// A node that goes by the database's clock.
  private let node: Catalog
  /// Another one, whose leases are over as soon as they begin.
  private let hasty: Catalog
  /// Another one, two days later.
  private let later: Catalog
  private let choir = Tenant(stored: "choir")

  init(_ engine: TracedEngine, _ settings: PostgresSettings, _ database: PostgresEngine) {
    let bus = Bus(PostgresBus(database, settings))
    func catalog(_ name: String, seconds: Double, days: Double = 0) -> Catalog {
      let terms = LeaseHolder.Terms(seconds: seconds, graceSeconds: 0)
      let clock: @Sendable () -> Timestamp = { Timestamp.now + days * 86_400 }
      let holder = LeaseHolder(name: name, terms: terms, now: days == 0 ? nil : clock)
      let catalog = Catalog(engine: engine, holder: holder, bus: bus)
      catalog.nameDeletedObjects()
      catalog.keepDescriptions(in: Shelf()) { Issue.record("\($0) wasn't described: \($1)") }
      catalog.limitJobs(JobLimits(all: 400, unfinished: { $0.isEmpty ? nil : 100 }, running: { $0.isEmpty ? nil : 10 }))
      return catalog
    }
    self.bus = bus
    node = catalog("node", seconds: 30)
    hasty = catalog("hasty", seconds: -60)
    later = catalog("later", seconds: 30, days: 2)
  }

  /// The messages that the nodes have sent, and the one that they send if there is too much to list.
  var messages: [String] { bus.sent.withLock { $0 } + [CatalogMessage.much.line(from: "node")] }

  private var tenant: TenantCatalog { node.of(choir) }

  private static let sound = SoundShape(
    container: "wav", codec: "pcm_s16", sampleRate: 1000, channels: 2, frames: 9000, duration: 9)
  private static let digest = String(repeating: "5e", count: 32)

  /// A recording with its sound, which is announced, and a client's job to build its waveform.
  private func uploaded(_ name: String, kind: JobKind = .waveform) throws -> (recording: Recording, job: Job) {
    let id = RecordingID()
    let job = Job(kind: kind, recording: id, client: "alto")
    let recording = Recording(
      id: id, name: name, bytes: 36_044, sha256: Self.digest, format: Self.sound, waveformJob: job.id,
      audioKey: ObjectKey(id, "audio.m4a"), media: "{}",
      warnings: [Warning(code: "file_truncated", detail: "The file is cut off.")])
    try node.announce([ObjectKey(id, "audio.m4a"), ObjectKey(id, "audio.m4a").map])
    return (recording, job)
  }

  /// A recording that a job is to make from another.
  private func derived(from source: RecordingID, by kind: JobKind) -> (recording: Recording, job: Job) {
    let id = RecordingID()
    let job = Job(
      kind: kind, recording: source, output: id, parameters: #"{"start":1,"end":4}"#, client: "alto")
    let derivation = Derivation(recording: source, job: job.id, operation: kind.rawValue)
    let recording = Recording(
      id: id, name: "made.wav", format: Self.sound, waveformJob: job.id, derivedFrom: derivation)
    return (recording, job)
  }

  @discardableResult
  private func claimed(_ id: JobID, by node: Catalog? = nil) throws -> AttemptToken {
    try #require(try (node ?? self.node).claim(id) { $0.kind == .waveform ? $0.recording : nil }.written).token
  }

  /// Runs all of it. Calls `half` when every table has rows.
  func live(half: () throws -> Void) throws {
    try start()
    let first = try upload()
    try look(at: first)
    let second = try resumableUpload()
    let made = try work(on: first)
    try convert(first)
    let (track, profile) = try describe(first)
    let waiting = try uploaded("later.wav")
    try tenant.insert(
      waiting.recording, jobs: [waiting.job], webhooks: [Webhook(job: waiting.job.id, url: "http://c", notBefore: .now)]
    )
    let running = try claimed(waiting.job.id)
    try look(at: first)
    try half()
    #expect(try node.renew(running))
    _ = try node.finish(running, with: "{}") { $0.waveformState = .ready }
    try callReceivers()
    try change(first, track, profile)
    try delete(first, second, made)
    try collect()
  }

  private func start() throws {
    #expect(try node.boundMedia().hasContent == false)
    #expect(try node.bind(toMedia: "media") == "media")
    // A folder instead of the bucket.
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    #expect(throws: StorageError.otherMedia(path: folder)) {
      try node.bind(to: MediaStore(shared: folder, node: "node"))
    }
    try node.check()
    try node.compareClocks()
  }

  /// An upload in one request, with a key and a token, and its waveform.
  private func upload() throws -> RecordingID {
    let (recording, job) = try uploaded("Intermezzo.m4a")
    let scope = "POST /v1/recordings"
    #expect(try tenant.holdKey(scope: scope, key: "k") == .held(nil))
    try node.renewKeys()
    let token = UploadToken(id: "token", expiresAt: .now + 60)
    try tenant.check(token)
    try tenant.insert(
      recording, jobs: [job], webhooks: [Webhook(job: job.id, url: "http://a", notBefore: .now, traceparent: "00-1")],
      answer: KeptAnswer(
        scope: scope, key: "k", fingerprint: "f", status: 201, location: "/v1/recordings/\(recording.id)", body: "{}"),
      spending: token, within: StoredLimits(recordings: 100, bytes: 1 << 40))
    #expect(try node.isSpent(token))
    #expect(try tenant.holdKey(scope: scope, key: "k") != .inUse)
    try tenant.releaseKey(scope: scope, key: "k")
    #expect(try tenant.answer(scope: scope, key: "k")?.status == 201)

    let attempt = try claimed(job.id)
    #expect(try node.renew(attempt))
    try node.tellOthers(AttemptProgress(attempt, report: "{}", address: "n1:8090"))
    let keys = ["waveform-\(attempt.name).pyramid", "working-\(attempt.name).flac"].map { ObjectKey(recording.id, $0) }
    try node.announce(keys + keys.map(\.map))
    let track = LabelTrack(of: recording.id, name: "found", kind: .lyrics, language: "it", source: .embedded)
    let ended = try node.finish(
      attempt, with: "{}",
      {
        ($0.waveformState, $0.waveformKey, $0.workingKey, $0.workingBytes) = (.ready, keys[0], keys[1], 7)
        $0.noiseRegions = [NoiseRegion(start: 1, end: 2, level: -60, score: 0.5)]
      }, adding: [(track, [LabelChunk(start: 0, end: 9, texts: ["la"], labels: [1])])])
    #expect(ended.written?.state == .succeeded)

    // A short one, whose waveform is built before it is answered, and one of the same name that replaces its file.
    let (short, quick) = try uploaded("Intermezzo.m4a")
    let early = AttemptToken(job: quick.id, attempt: 1, nonce: AttemptToken.newNonce())
    _ = try tenant.insert(short, finished: quick, by: early, with: "{}")
    let again = Job(kind: .waveform, recording: short.id)
    let other = ObjectKey(short.id, "waveform-2.pyramid")
    try node.announce([other, other.map])
    _ = try node.update(short.id, if: { _ in true }, inserting: again) { $0.waveformState = .queued }
    _ = try node.finish(try claimed(again.id), with: "{}") { $0.waveformKey = other }
    return recording.id
  }

  /// Uploads in pieces: one that becomes a recording, and one that is abandoned.
  private func resumableUpload() throws -> UploadID {
    func begin(_ length: Int64, _ client: String) throws -> Upload {
      var upload = Upload(
        length: length, metadata: "filename YQ==", expiresAt: .now + 3600, client: client, token: "t")
      upload.tenant = choir
      try node.insert(
        upload, limits: UploadLimits(total: 10, perClient: 5),
        spending: UploadToken(id: upload.id.text, expiresAt: .now + 60))
      return upload
    }
    func receive(_ upload: Upload, _ bytes: Int64) throws {
      let writer = try node.takeOver(upload.id, at: 0).writer
      let parts = [UploadObject(of: upload.id, start: 0, bytes: bytes)]
      try node.announce(parts + [UploadObject(of: upload.id, start: bytes, bytes: 1)])
      try node.advance(upload.id, to: bytes, expiresAt: .now + 3600, by: writer, adding: parts)
      #expect(try node.segments(of: upload.id).count == 1 && node.objects(of: upload.id) == parts)
      #expect(try node.unneededObjects(of: upload.id).count == 1)
    }
    let upload = try begin(100, "alto")
    try receive(upload, 100)
    let (recording, job) = try uploaded("whole.wav", kind: .loudness)
    try node.insert(recording, jobs: [job], finishing: upload.id, expiresAt: .now + 60)
    _ = try node.finish(try claimed(job.id), with: #"{"loudness":-20}"#)

    let rest = try begin(1000, "alto")
    try receive(rest, 500)
    for _ in 0..<3 { _ = try begin(10, "alto") }
    #expect(try node.emptyUploads(givingWayTo: "bass").count == 3)
    #expect(try node.unfinishedUploads().count == 4 && node.uploads(expiredBefore: .now + 7200).count == 5)
    return rest.id
  }

  /// Jobs that make recordings, and end in each way.
  private func work(on source: RecordingID) throws -> [(recording: Recording, job: Job)] {
    let made = [JobKind.denoise, .trim, .denoise, .trim, .denoise].map { derived(from: source, by: $0) }
    for (recording, job) in made { try tenant.insert(recording, jobs: [job]) }
    // Given back, postponed, lost, and done at last.
    let first = made[0].job.id
    _ = try node.giveBack(try claimed(first), interrupted: false)
    _ = try node.postpone(try claimed(first), seconds: -1)
    try claimed(first, by: hasty)
    #expect(try node.endLostLeases() == 1)
    let attempt = try claimed(first)
    let sound = ObjectKey(made[0].recording.id, "audio-\(attempt.name).wav")
    try node.announce([sound, sound.map])
    _ = try node.finish(attempt, with: #"{"noise":[]}"#) {
      ($0.audioKey, $0.bytes, $0.sha256, $0.waveformState) = (sound, 99, Self.digest, .ready)
    }
    #expect(try node.attempts(of: first).count == 4)
    _ = try node.fail(try claimed(made[1].job.id), error: "{}", progress: 0.5, hasWritten: true)
    _ = try node.failUnclaimed(made[2].job.id, error: "{}")
    _ = try node.cancel(made[3].job.id, progress: 0.25)
    try claimed(made[4].job.id)
    return made
  }

  private func convert(_ source: RecordingID) throws {
    for (format, limit) in [("mp3", 1000), ("opus", 1000), ("opus", 1000), ("flac", 150)] as [(String, Int64)] {
      let job = Job(kind: .convert, recording: source, parameters: #"{"format":"\#(format)"}"#, client: "alto")
      #expect(try tenant.sharedJob(orElse: job).isNew)
      #expect(
        try tenant.sharedJob(orElse: Job(kind: .convert, recording: source, parameters: job.parameters)).isNew == false)
      let attempt = try claimed(job.id)
      let key = ObjectKey(source, "converted-\(attempt.name).\(format)")
      try node.announce([key])
      let conversion = Conversion(
        recording: source, format: format, key: key, bytes: 100, sha256: Self.digest, usedAt: .now + -7200)
      #expect(try node.keep(conversion, limit: limit, finishing: attempt, with: "{}").job.written != nil)
      #expect(try node.content(of: key)?.bytes == 100)
      try node.touch(conversion)
    }
    #expect(try node.conversion(of: source, to: "flac") != nil && node.conversion(of: source, to: "mp3") == nil)
  }

  /// Labels and noise profiles.
  private func describe(_ id: RecordingID) throws -> (LabelTrackID, KeptProfileID) {
    let limits = StoredLimits(bytes: 1 << 40)
    let track = LabelTrack(of: id, name: "words", kind: .transcript, language: "en", source: .upload)
    let chunks = [
      LabelChunk(start: 0, end: 5, texts: ["Where?"], labels: [1, 2]),
      LabelChunk(start: 5, end: 9, texts: ["There."], labels: [3]),
    ]
    try tenant.insert(track, chunks, limit: 9, within: limits)
    _ = try tenant.update(track.id, if: { _ in true }, chunks + chunks, within: limits) {
      ($0.count, $0.words, $0.start, $0.end) = (4, 4, 0, 9)
    }
    var profiles: [KeptProfileID] = []
    for number in 1...3 {
      let profile = KeptProfile(
        name: "hum \(number)", recording: id, noise: "{}", sampleRate: 1000, channels: 2, spectrum: [1, 2, 3])
      try tenant.insert(profile, limit: 9, within: limits)
      profiles.append(profile.id)
    }
    _ = try tenant.renameNoiseProfile(profiles[0], to: "fan") { _ in true }
    #expect(try tenant.deleteNoiseProfile(profiles[1]) { _ in true })
    return (track.id, profiles[0])
  }

  /// Lists and figures.
  private func look(at first: RecordingID) throws {
    let recordings = try tenant.recordings(limit: 10)
    for recording in recordings where recording.id == first || recording == recordings.first {
      _ = try tenant.recordings(limit: 1, before: recording.id)
      _ = try node.recordings(limit: 1, before: recording.id, nameContaining: "mezzo")
      for track in try tenant.labelTracks(of: recording.id) {
        _ = try tenant.labels(of: track.id, from: 1, to: 8)
        _ = try tenant.labels(of: track.id, containing: "there")
        try node.eachChunk(of: track.id, from: 0, to: 9) { _ in true }
        _ = try tenant.labelTrack(track.id)
      }
      _ = try tenant.jobs(recording: recording.id, limit: 5)
      _ = try tenant.latestJob(kind: .loudness, state: .succeeded, of: recording.id)
      _ = try node.attempts(in: recording.id)
      _ = try node.conversions(of: recording.id)
      _ = try tenant.labelOwner(of: recording)
    }
    for state in JobState.allCases {
      for job in try node.jobs(state: state, limit: 2) { _ = try tenant.jobs(state: state, limit: 1, before: job.id) }
    }
    _ = try tenant.recordings(limit: 1, nameContaining: "me")
    _ = try node.unfinishedJobs()
    _ = try tenant.usage()
    _ = try node.storedByTenant()
    _ = try node.jobSeconds()
    for profile in try tenant.noiseProfiles(limit: 5) {
      _ = try tenant.noiseProfiles(limit: 1, before: profile.id)
      _ = try node.noiseProfile(profile.id, evenDeleted: true)
    }
    _ = try node.recordingCount()
    let page = try node.recordings(limit: 1, after: nil)
    _ = try node.recordings(limit: 1, after: page.next)
    _ = try node.strandedRecordings(limit: 5)
    _ = try node.unreadableRecordings()
    _ = try node.unreadableCounts()
  }

  private func callReceivers() throws {
    #expect(try node.webhooks().count == 2)
    let due = try node.dueWebhooks(limit: 9)
    #expect(due.count == 2)
    for (number, webhook) in due.enumerated() {
      var claimed = try #require(try node.claimWebhook(of: webhook.job, forSeconds: 60))
      claimed.attempts += 1
      try node.release(claimed, pauseSeconds: number == 0 ? -1 : 60)
      try node.update(claimed)
    }
    _ = try node.claimWebhook(of: due[0].job, forSeconds: 60)
    try node.removeWebhook(of: due[0].job)
  }

  private func change(_ id: RecordingID, _ track: LabelTrackID, _ profile: KeptProfileID) throws {
    try tenant.update(id) { $0.name = "Renamed.m4a" }
    try node.doubtDescription(of: id)
    #expect(try node.isDescriptionDoubtful(of: id) && !node.isDescriptionPromised(of: id))
    _ = try tenant.update(track, if: { _ in true }) { $0.name = "lines" }
    #expect(try tenant.deleteLabelTrack(track) { _ in true })
    #expect(try tenant.deleteNoiseProfile(profile) { _ in true })
    let conversion = try #require(try node.conversion(of: id, to: "flac"))
    try tenant.forget(conversion)
    let other = ObjectKey(id, "converted-1.mp3")
    try node.announce([other])
    try node.keep(Conversion(recording: id, format: "mp3", key: other, bytes: 1, sha256: Self.digest), limit: 10)
    // Its job is lost, so a new one begins.
    let stranded = try uploaded("stranded.wav").recording
    try tenant.insert(stranded)
    try node.resume(stranded: stranded.id)
    try node.doubtDescription(of: stranded.id)
  }

  private func delete(
    _ first: RecordingID, _ upload: UploadID, _ made: [(recording: Recording, job: Job)]
  ) throws {
    #expect(try node.namedObjects(of: first).isEmpty == false && node.announcedObjects(of: first).isEmpty == false)
    let keys =
      try node.namedObjects(of: first).map(\.description) + ["recordings/\(first)/stray", "uploads/\(upload)/x"]
    // The job that makes something of it is canceled with it.
    #expect(try tenant.deleteRecording(first)?.isEmpty == false)
    #expect(try node.isGone(first) && node.isDeleted(first) && node.missing(among: [first]) == [first])
    _ = try node.unnamed(among: keys + ["recordings/\(RecordingID())/lost"])
    #expect(try node.claim(on: upload) == .owned)
    let answer = KeptAnswer(scope: "DELETE", key: "", fingerprint: "f", status: 204, location: "/v1", body: "")
    #expect(try tenant.deleteUpload(upload, keeping: answer, ifExpiredBefore: .now + 7200))
    for upload in try node.unfinishedUploads() {
      _ = try node.deleteUpload(upload.id, unfinishedBy: upload.writer, ifEmpty: true)
    }
    _ = try tenant.removeAnswer(scope: "DELETE", key: "")
    let finished = made[0].recording.id
    #expect(try node.deleteRecordings(createdBefore: .now + 60, limit: 1, of: choir).count == 1)
    #expect(try node.deleteRecordings(createdBefore: .now + 60, limit: 9, except: [.none]).count > 1)
    #expect(try node.recording(finished) == nil)
  }

  /// Removes what deletions and killed nodes leave behind.
  private func collect() throws {
    let multipart = UnfinishedMultipart(key: "recordings/x", id: "m")
    try node.announce(multipart)
    let due = try later.dueGarbage()
    #expect(due.contains { if case .files = $0 { true } else { false } })
    // Its files couldn't be removed.
    try later.postpone(due.filter { if case .files = $0 { true } else { false } }.prefix(1).map { $0 })
    let taken = try later.takeGarbage()
    try later.postpone(Array(taken.suffix(2)))
    try later.forget(taken)
    try later.forget(try later.takeUploadObjects())
    let parts = try later.takeMultiparts()
    #expect(parts == [multipart])
    try later.forget(parts)
    // As in a folder, whose rows have the same names: that of a recording that is gone.
    try later.describeOverdue(limit: 1)
    _ = try later.promiseDoubtfulDescriptions()
    #expect(try later.forgetAttempts() > 0)
    let gone = try node.removals()
    #expect(gone.count > 2)
    try node.forgetDeletion(of: try #require(gone.compactMap { RecordingID($0) }.first))
    try later.forgetSettledDeletions()
    try node.forgetSpentTokens(before: .now + 3600)
    _ = try tenant.holdKey(scope: "POST", key: "left")
    _ = try node.removeAnswers(before: .now + 3600)
    try node.forgetJobSeconds()
  }
}
