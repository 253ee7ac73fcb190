import PresentRows
import Terms
import Testing

@testable import Storage

/// Races between eight nodes that share a catalog: each call that checks before it changes, called by all at once.
@Suite(.onEveryEngine) struct CatalogRaceTests {
  private let nodes: RacingNodes
  private static let rounds = 25

  init() throws { nodes = try RacingNodes() }

  private var catalog: Catalog { nodes.catalog }

  private func insertRecordings() throws -> [Recording] {
    let recordings = (0..<Self.rounds).map { sample("\($0).wav") }
    for recording in recordings { try catalog.insert(recording) }
    return recordings
  }

  private func insertJobs() throws -> [Job] {
    let jobs = try insertRecordings().map { Job(kind: .waveform, recording: $0.id) }
    for job in jobs { try catalog.insert(job) }
    return jobs
  }

  @Test("eight simultaneous requests for the same conversion get one job")
  func sharedJob() async throws {
    let recordings = try insertRecordings()
    let found = try await nodes.race { _, node in
      try recordings.map { try node.sharedJob(orElse: Job(kind: .convert, recording: $0.id)).job.id }
    }
    #expect(Set(found.flatMap { $0 }).count == Self.rounds)
    #expect(try catalog.unfinishedJobs().count == Self.rounds)
    nodes.report("the same conversion")
  }

  @Test("a job, labels or a derived recording inserted while the recording is deleted leave nothing behind")
  func deletion() async throws {
    let recordings = try insertRecordings()
    let outcomes = try await nodes.race { thread, node in
      try recordings.enumerated().map { number, recording in
        do throws(StorageError) {
          switch (number + thread) % 8 {
          case 0: return try node.deleteRecording(recording.id) == nil ? "gone" : "deleted"
          case 1, 2, 3: try node.insert(Job(kind: .denoise, recording: recording.id))
          case 4, 5:
            let track = LabelTrack(of: recording.id, name: "t", kind: .labels, language: nil, source: .upload)
            try node.insert(track, [], limit: 64)
          default:
            let made = sample("made.wav")
            try node.insert(made, jobs: [Job(kind: .denoise, recording: recording.id, output: made.id)])
          }
          return "inserted"
        } catch .noSuchRecording { return "refused" }
      }
    }.flatMap { $0 }
    #expect(outcomes.count { $0 == "deleted" } == Self.rounds)
    #expect(outcomes.contains("inserted"))
    #expect(try catalog.unfinishedJobs().isEmpty)
    #expect(try recordings.allSatisfy { try catalog.labelTracks(of: $0.id).isEmpty })
    // Those that were to be derived were deleted with their jobs.
    #expect(try catalog.recordings(limit: 1000).isEmpty)
    #expect(try catalog.storedByTenant().isEmpty)
    nodes.report("a job or labels and the deletion of their recording")
  }

  /// Inserts a job unless its recording is gone.
  private static func insertJob(on id: RecordingID, _ node: Catalog) throws {
    do { try node.insert(Job(kind: .waveform, recording: id)) } catch StorageError.noSuchRecording {}
  }

  @Test("an old recording is kept if a job begins to read it, whichever node deletes old ones")
  func retention() async throws {
    let recordings = try insertRecordings()
    let deleted = try await nodes.race { thread, node in
      try recordings.map { recording in
        if thread >= 4 {
          return try node.deleteRecordings(createdBefore: recording.createdAt + 1e9, limit: 3).map(\.id)
        }
        try Self.insertJob(on: recording.id, node)
        return []
      }
    }.flatMap { $0 }.flatMap { $0 }
    let kept = try catalog.recordings(limit: 1000).map(\.id)
    #expect(Set(deleted).count == deleted.count, "each is deleted once")
    #expect(Set(deleted).union(kept) == Set(recordings.map(\.id)) && Set(deleted).isDisjoint(with: kept))
    #expect(Set(try catalog.unfinishedJobs().map(\.recording)).isDisjoint(with: deleted))
    nodes.report("new jobs and retention")
  }

  @Test("each job is claimed once, and ends once: as the first thread that finishes, fails or cancels it says")
  func claims() async throws {
    let jobs = try insertJobs()
    let tokens = try await nodes.race { thread, node in
      try (thread % 2 == 0 ? jobs : jobs.reversed()).compactMap { try node.claim($0.id).written?.token }
    }.flatMap { $0 }
    #expect(tokens.count == jobs.count && Set(tokens.map(\.job)).count == jobs.count)
    let ends = try await nodes.race { thread, node in
      try tokens.compactMap { token -> String? in
        // Renewals get in the way of the others.
        if thread % 4 == 2 {
          _ = try node.renew(token)
          return nil
        }
        return switch thread % 4 {
        case 0: try node.finish(token, with: "{}").written.map { _ in "\(token.job)" }
        case 1: try node.cancel(token.job)?.first?.state == .cancelled ? "\(token.job) cancelled" : nil
        default: try node.fail(token, error: "{}", progress: 0).written.map { _ in "\(token.job)" }
        }
      }
    }.flatMap { $0 }
    let states = try jobs.map { try catalog.job($0.id)?.state }
    #expect(states.allSatisfy { $0?.isFinished == true })
    let transitions = ends.filter { !$0.hasSuffix("cancelled") }
    #expect(Set(transitions).count == transitions.count, "a job ends once")
    #expect(transitions.count + states.count { $0 == .cancelled } == jobs.count)
    nodes.report("claims, ends and cancellations")
  }

  /// Queues a job. Returns false if its client, or all together, have as many as they may.
  private static func queue(_ id: RecordingID, for client: String, _ node: Catalog) throws -> Bool {
    do {
      try node.insert(Job(kind: .waveform, recording: id, client: client))
      return true
    } catch StorageError.limitReached("queued_jobs", limit: 3) { return false } catch StorageError.queueFull {
      return false
    }
  }

  @Test("nodes that queue and begin a client's jobs at once keep its limits together")
  func jobLimits() async throws {
    let limits = JobLimits(unfinished: { $0.isEmpty ? nil : 3 }, running: { $0.isEmpty ? nil : 1 })
    for node in nodes.catalogs { node.limitJobs(limits) }
    let recording = sample()
    try catalog.insert(recording)
    // All threads queue a job of one client, then one of the next.
    let queued = try await nodes.race { _, node in
      try (0..<Self.rounds).count { try Self.queue(recording.id, for: "client \($0)", node) }
    }
    #expect(queued.reduce(0, +) == 3 * Self.rounds)
    let jobs = Dictionary(grouping: try catalog.unfinishedJobs(), by: \.client)
    #expect(jobs.count == Self.rounds && jobs.values.allSatisfy { $0.count == 3 })
    // Of a client's three jobs, all are claimed at once, each by two or three threads.
    let begun = try await nodes.race { thread, node in
      try jobs.values.compactMap { jobs in try node.claim(jobs[thread % 3].id).written }
    }.flatMap { $0 }
    #expect(begun.count == Self.rounds && Set(begun.map(\.job.client)).count == Self.rounds)
    // When they have ended, the next may begin.
    for claimed in begun { _ = try #require(try catalog.finish(claimed.token, with: "{}").written) }
    for job in try catalog.unfinishedJobs() {
      guard let claimed = try catalog.claim(job.id).written else { continue }
      #expect(begun.count { $0.job.client == claimed.job.client } == 1)
      _ = try catalog.finish(claimed.token, with: "{}")
    }
    #expect(try catalog.unfinishedJobs().isEmpty)
    nodes.report("one client's jobs")
  }

  @Test("nodes that queue jobs of all clients at once keep the limit together, whatever its size", arguments: [5, 520])
  func queueLimit(limit: Int) async throws {
    // The second is locked only once it has more than 20 jobs.
    for node in nodes.catalogs {
      node.limitJobs(JobLimits(all: limit, unfinished: { _ in nil }, running: { _ in nil }))
    }
    let recording = sample()
    try catalog.insert(recording)
    let queued = try await nodes.race { thread, node in
      try (0..<limit / 8 + 9).count { try Self.queue(recording.id, for: "\(thread) \($0)", node) }
    }
    #expect(queued.reduce(0, +) == limit)
    #expect(try catalog.unfinishedJobs().count == limit)
    // The service's own work counts, but isn't refused.
    try catalog.insert(Job(kind: .waveform, recording: recording.id))
    #expect(throws: StorageError.queueFull(limit: limit)) {
      try catalog.insert(Job(kind: .waveform, recording: recording.id, client: "late"))
    }
    for job in try catalog.unfinishedJobs().prefix(2) { try catalog.cancel(job.id) }
    try catalog.insert(Job(kind: .waveform, recording: recording.id, client: "late"))
    nodes.report("a full queue of \(limit)")
  }

  @Test("jobs of one tenant that end in all ways at once never wait for each other in a circle")
  func endings() async throws {
    let source = sample()
    try catalog.insert(source)
    _ = try await nodes.race { thread, node in
      for _ in 0..<Self.rounds {
        let recording = sample()
        if thread % 4 == 0 {
          let job = Job(kind: .waveform, recording: recording.id)
          let token = AttemptToken(job: job.id, attempt: 1, nonce: AttemptToken.newNonce())
          _ = try node.insert(recording, finished: job, by: token, with: "{}")
          continue
        }
        let made = thread % 4 == 3
        let job = Job(
          kind: made ? .denoise : .waveform, recording: made ? source.id : recording.id,
          output: made ? recording.id : nil)
        try node.insert(recording, jobs: [job])
        guard let token = try node.claim(job.id).written?.token else { continue }
        switch thread % 4 {
        case 1: _ = try node.finish(token, with: "{}") { $0.bytes = 77 }
        case 2: _ = try node.deleteRecording(recording.id)
        default: _ = try node.cancel(job.id)
        }
      }
    }
    #expect(try catalog.unfinishedJobs().isEmpty)
    #expect(nodes.retries == 0)
    nodes.report("jobs that end in all ways")
  }

  @Test("nodes that look for lost leases at once end each once")
  func lostLeases() async throws {
    let jobs = try insertJobs()
    let dead = try nodes.deadNode()
    for job in jobs { _ = try #require(try dead.claim(job.id).written) }
    let counts = try await nodes.race { _, node in try node.endLostLeases() }
    #expect(counts.reduce(0, +) == jobs.count)
    #expect(try catalog.unfinishedJobs().allSatisfy { $0.state == .queued && $0.interruptions == 1 })
    nodes.report("lost leases")
  }

  @Test("recordings of one tenant inserted at once are all counted, and never more than its limit")
  func usage() async throws {
    let tenant = Tenant(stored: "busy")
    let made = try await nodes.race { _, node in
      try (0..<Self.rounds).count { _ in
        do throws(StorageError) {
          try node.of(tenant).insert(sample(), within: StoredLimits(recordings: 150))
          return true
        } catch .limitReached { return false }
      }
    }
    #expect(made.reduce(0, +) == 150)
    #expect(try catalog.storedByTenant()[tenant]?.recordings == 150)
    nodes.report("recordings of one tenant")
  }

  @Test("a request that eight send under one key is carried out once")
  func keys() async throws {
    let tenant = Tenant.none
    let outcomes = try await nodes.race { thread, node in
      try (0..<Self.rounds).map { number -> String in
        let (part, key) = (node.of(tenant), "k\(number)")
        guard case .held(let kept) = try part.holdKey(scope: "s", key: key) else { return "in use" }
        defer { try? part.releaseKey(scope: "s", key: key) }
        if let kept { return kept.location }
        let recording = sample()
        let answer = StoredResponse(
          scope: "s", key: key, fingerprint: "f", status: 201, location: recording.id.text, body: "{}")
        try part.insert(recording, answer: answer)
        return recording.id.text
      }
    }
    let recordings = Set(try catalog.recordings(limit: 1000).map(\.id.text))
    #expect(recordings.count == Self.rounds)
    #expect(outcomes.flatMap { $0 }.allSatisfy { recordings.contains($0) || $0 == "in use" })
    nodes.report("requests with a key")
  }

  @Test("nodes that call due webhooks at once claim each once")
  func webhooks() async throws {
    let recordings = try insertRecordings()
    for recording in recordings {
      let job = Job(kind: .waveform, recording: recording.id, state: .succeeded, finishedAt: .now)
      try catalog.insert(
        sample(), jobs: [job], webhooks: [Webhook(job: job.id, url: "https://a.example/", notBefore: .now)])
    }
    // A node that is gone had begun to call.
    for webhook in try catalog.dueWebhooks(limit: 100) {
      _ = try #require(try catalog.claimWebhook(of: webhook.job, forSeconds: -60))
    }
    let claimed = try await nodes.race { _, node in
      try node.dueWebhooks(limit: 100).compactMap { try node.claimWebhook(of: $0.job, forSeconds: 60)?.job }
    }.flatMap { $0 }
    #expect(claimed.count == Self.rounds && Set(claimed).count == Self.rounds)
    nodes.report("webhooks")
  }

  @Test("a key that a node has left behind is taken over by one of eight")
  func abandonedKeys() async throws {
    let dead = try nodes.deadNode()
    for number in 0..<Self.rounds { _ = try dead.of(.none).holdKey(scope: "s", key: "\(number)") }
    let held = try await nodes.race { _, node in
      try (0..<Self.rounds).filter { try node.of(.none).holdKey(scope: "s", key: "\($0)") == .held(nil) }
    }.flatMap { $0 }
    #expect(held.sorted() == Array(0..<Self.rounds))
    nodes.report("keys left behind")
  }

  @Test("of changes of one recording, track or profile at once, none is lost")
  func changes() async throws {
    let recording = sample("")
    try catalog.insert(recording)
    let track = LabelTrack(of: recording.id, name: "t", kind: .labels, language: nil, source: .upload)
    try catalog.insert(track, [], limit: 1)
    let profile = profile(of: recording)
    try catalog.insert(profile, limit: 1)
    let rounds = 10
    _ = try await nodes.race { thread, node in
      for _ in 0..<rounds {
        _ = try node.update(recording.id) { $0.name += "x" }
        _ = try node.update(track.id, if: { _ in true }) { $0.name = "\(thread)" }
        _ = try node.renameNoiseProfile(profile.id, to: "\(thread)") { _ in true }
      }
    }
    let count = Int64(rounds * RacingNodes.count)
    #expect(try (catalog.recording(recording.id)?.name.count).map(Int64.init) == count)
    #expect(try catalog.labelTracks(of: recording.id).map(\.version) == [track.version + count])
    #expect(try catalog.noiseProfile(profile.id)?.version == profile.version + count)
    nodes.report("changes of the same rows")
  }

  private func profile(of recording: Recording) -> KeptProfile {
    KeptProfile(name: "p", recording: recording.id, noise: nil, sampleRate: nil, channels: 1, spectrum: [1, 2, 3])
  }

  @Test("tracks and profiles that are inserted at once are never more than the limit")
  func counted() async throws {
    let recording = sample()
    try catalog.insert(recording)
    let profile = profile(of: recording)
    let inserted = try await nodes.race { _, node in
      try (0..<5).map { _ in
        var (tracks, profiles) = (1, 1)
        let track = LabelTrack(of: recording.id, name: "t", kind: .labels, language: nil, source: .upload)
        do { try node.insert(track, [], limit: 12) } catch StorageError.tooManyLabelTracks { tracks = 0 }
        let another = KeptProfile(
          name: "p", recording: profile.recording, noise: nil, sampleRate: nil, channels: 1, spectrum: [1])
        do { try node.insert(another, limit: 12) } catch StorageError.tooManyNoiseProfiles { profiles = 0 }
        return (tracks, profiles)
      }
    }.flatMap { $0 }
    #expect(inserted.map(\.0).reduce(0, +) == 12 && inserted.map(\.1).reduce(0, +) == 12)
    #expect(try catalog.labelTracks(of: recording.id).count == 12 && catalog.noiseProfiles(limit: 99).count == 12)
    nodes.report("limits of tracks and profiles")
  }

  @Test("a waveform that eight find missing at once is built again by one job")
  func rebuilding() async throws {
    let recordings = try insertRecordings()
    for recording in recordings { _ = try catalog.update(recording.id) { $0.waveformState = .failed } }
    let begun = try await nodes.race { _, node in
      try recordings.count { recording in
        let job = Job(kind: .waveform, recording: recording.id)
        let isFailed: @Sendable (Recording) -> Bool = { $0.waveformState == .failed }
        return try node.update(recording.id, if: isFailed, inserting: job) { $0.waveformState = .queued } != nil
      }
    }
    #expect(begun.reduce(0, +) == Self.rounds)
    #expect(try Set(catalog.unfinishedJobs().map(\.recording)) == Set(recordings.map(\.id)))
    #expect(try catalog.unfinishedJobs().count == Self.rounds)
    nodes.report("waveforms that are missing")
  }

  @Test("a recording whose job was lost gets one new job from eight that find it at once, or is deleted")
  func stranded() async throws {
    let recordings = try (0..<Self.rounds * 2).map { number in
      var recording = sample()
      // Every other one never got its sound.
      if number % 2 == 0 { recording.audioKey = ObjectKey(recording.id, "audio.wav") }
      try catalog.insert(recording)
      return recording
    }
    let barrier = Barrier(RacingNodes.count)
    _ = try await nodes.race { thread, node in
      defer { barrier.leave() }
      for (number, recording) in recordings.enumerated() {
        barrier.wait()
        // Somebody deletes one of five.
        if number % 5 == 0, thread == 7 {
          _ = try node.deleteRecording(recording.id)
        } else {
          try node.resume(stranded: recording.id)
        }
      }
    }
    let kept = recordings.enumerated().filter { $0.offset % 2 == 0 && $0.offset % 5 != 0 }.map(\.element.id)
    let found = try catalog.recordings(limit: 1000)
    #expect(Set(found.map(\.id)) == Set(kept))
    let jobs = try catalog.unfinishedJobs()
    #expect(jobs.count == kept.count && Set(jobs.map(\.id)) == Set(found.compactMap(\.waveformJob)))
    #expect(found.allSatisfy { $0.waveformState == .queued })
    #expect(try catalog.strandedRecordings(limit: 9).recordings.isEmpty)
    #expect(nodes.retries == 0)
    nodes.report("recordings whose job was lost")
  }

  @Test("of the media that eight choose for a new catalog at once, it has those of one")
  func media() async throws {
    // SQLite's is in the folder of its media.
    guard CatalogEngine.current.name != CatalogEngines.sqlite.name else { return }
    let barrier = Barrier(RacingNodes.count)
    let bound = try await nodes.race { thread, node in
      defer { barrier.leave() }
      return try (0..<Self.rounds).map { _ in
        barrier.wait()
        let id = try node.bind(toMedia: MediaID().text)
        barrier.wait()
        let isTheRows = try node.boundMedia().id == id
        barrier.wait()
        if thread == 0 { try node.write { try $0.run("DELETE FROM media_folder") } }
        return isTheRows ? id : "another than the row's"
      }
    }
    #expect((0..<Self.rounds).allSatisfy { round in Set(bound.map { $0[round] }).count == 1 })
    #expect(Set(bound.flatMap { $0 }).count == Self.rounds && !bound[0].contains("another than the row's"))
    nodes.report("media of a new catalog")
  }

  @Test("conversions that are kept at once have no more bytes together than they may")
  func keptConversions() async throws {
    let shares = try (0..<RacingNodes.count).map { _ in try insertRecordings() }
    let barrier = Barrier(RacingNodes.count)
    let results = try await nodes.race { thread, node in
      defer { barrier.leave() }
      return try shares[thread].map { recording -> (isKept: Bool, rows: Int) in
        let job = Job(kind: .convert, recording: recording.id)
        try node.insert(job)
        let token = try #require(try node.claim(job.id).written?.token)
        let key = ObjectKey(recording.id, "converted-\(token.name).mp3")
        let conversion = Conversion(recording: recording.id, format: "mp3", key: key, bytes: 30, sha256: "")
        barrier.wait()
        let isKept = try node.keep(conversion, limit: 100, finishing: token, with: "{}").job.written != nil
        // After all have kept one, and before any keeps the next.
        barrier.wait()
        return (isKept, try Self.count("conversions", node))
      }
    }.flatMap { $0 }
    #expect(results.allSatisfy { $0.isKept })
    let (rows, garbage) = (try Self.count("conversions", catalog), try Self.count("garbage", catalog))
    #expect(results.allSatisfy { $0.rows <= 3 })
    #expect(rows == 3, "of 30 bytes each, where 100 are allowed")
    #expect(rows + garbage == results.count, "a file is either kept or garbage")
    nodes.report("kept conversions")
  }

  private static func count(_ table: String, _ catalog: Catalog) throws -> Int {
    try catalog.read { try $0.first("SELECT count(*) FROM \(table)", as: Int.self) ?? 0 }
  }
}
