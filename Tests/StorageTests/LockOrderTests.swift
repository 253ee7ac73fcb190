import Foundation
import PresentRows
import Terms
import Testing

@testable import Storage

/// Everything that eight nodes may do at once to recordings, their jobs and what belongs to them: no two transactions
/// wait for each other, so none is repeated (see Catalog+Locks).
@Suite(.onEveryEngine) struct LockOrderTests {
  private let nodes: RacingNodes
  private static let rounds = 40

  init() throws { nodes = try RacingNodes() }

  private var catalog: Catalog { nodes.catalog }

  /// A recording, one that a job makes of it, and one that another job makes of that, with what belongs to the first.
  private struct Chain: Sendable {
    let recordings: [RecordingID]
    let jobs: [JobID]
    let track: LabelTrackID
    let profile: KeptProfileID
  }

  /// Inserts a chain. If it is `reversed`, the IDs don't have the order in which the recordings are made.
  private func insertChain(of tenant: Tenant, reversed: Bool) throws -> Chain {
    let part = catalog.of(tenant)
    let made = (0..<3).map { _ in sample() }
    let recordings = reversed ? made.reversed() : made
    let jobs = (0..<2).map {
      Job(kind: .denoise, recording: recordings[$0].id, output: recordings[$0 + 1].id, client: "\(tenant)")
    }
    try part.insert(recordings[0])
    for number in 0..<2 { try part.insert(recordings[number + 1], jobs: [jobs[number]]) }
    let track = LabelTrack(of: recordings[0].id, name: "t", kind: .labels, language: nil, source: .upload)
    try part.insert(track, [LabelChunk(start: 0, end: 9, texts: ["word"], labels: [1])], limit: 9)
    let profile = KeptProfile(
      name: "p", recording: recordings[0].id, noise: nil, sampleRate: nil, channels: 1, spectrum: [1])
    try part.insert(profile, limit: 999)
    return Chain(recordings: recordings.map(\.id), jobs: jobs.map(\.id), track: track.id, profile: profile.id)
  }

  /// What a node may do with a chain, by number; what is gone meanwhile is left alone.
  private static let actions: [@Sendable (Catalog, Chain) throws -> Void] =
    [
      { _ = try $0.deleteRecording($1.recordings[0]) },
      { _ = try $0.deleteRecording($1.recordings[1]) },
      { _ = try $0.deleteRecording($1.recordings[2]) },
      { _ = try $0.claim($1.jobs[0], building: { $0.output }) },
      { _ = try $0.claim($1.jobs[1], building: { $0.recording }) },
      { try end($1.jobs[0], $0) { _ = try $0.finish($1, with: "{}") { ($0.bytes, $0.mapBytes) = (7, 3) } } },
      { try end($1.jobs[1], $0) { _ = try $0.finish($1, with: "{}") { $0.bytes = 7 } } },
      { try end($1.jobs[0], $0) { _ = try $0.fail($1, error: "{}", progress: 0) } },
      { try end($1.jobs[1], $0) { _ = try $0.postpone($1, seconds: 0) } },
      { try end($1.jobs[0], $0) { _ = try $0.giveBack($1, interrupted: false) } },
      { _ = try $0.cancel($1.jobs[0]) },
      { _ = try $0.cancel($1.jobs[1]) },
      { node, chain in
        let chunk = LabelChunk(start: 0, end: 9, texts: ["other word"], labels: [1, 2])
        _ = try node.update(chain.track, if: { _ in true }, .all([chunk])) { $0.count = 1 }
      },
      { _ = try $0.deleteLabelTrack($1.track) { _ in true } },
      { _ = try $0.deleteNoiseProfile($1.profile) { _ in true } },
      { node, _ in _ = try node.endLostLeases() },
      { node, _ in _ = try node.deleteRecordings(createdBefore: sample().createdAt + 1e9, limit: 4) },
      { node, chain in
        let job = Job(kind: .denoise, recording: chain.recordings[1])
        do { _ = try node.sharedJob(orElse: job) } catch StorageError.noSuchRecording {}
      },
    ]

  private static func end(
    _ id: JobID, _ node: Catalog, _ how: (Catalog, AttemptToken) throws -> Void
  ) throws {
    if let token = try node.job(id)?.token { try how(node, token) }
  }

  @Test("deletions, claims, ends, pauses and sweeps at once never wait for each other in a circle")
  func chains() async throws {
    let limits = JobLimits(unfinished: { _ in nil }, running: { _ in 1000 })
    for node in nodes.catalogs { node.limitJobs(limits) }
    let chains = try (0..<Self.rounds).map {
      try insertChain(of: Tenant(stored: "\($0 % 2)"), reversed: $0 % 2 == 0)
    }
    let barrier = Barrier(RacingNodes.count)
    // Each pair of actions meets, as the number of threads and that of actions have no common divisor with the step.
    _ = try await nodes.race { thread, node in
      defer { barrier.leave() }
      for (number, chain) in chains.enumerated() {
        barrier.wait()
        for step in 0..<3 {
          try Self.actions[(number * 5 + thread * 7 + step * 3) % Self.actions.count](node, chain)
        }
      }
    }
    #expect(nodes.retries == 0)
    // Whatever has happened, nothing is left half done.
    let recordings = Set(try catalog.recordings(limit: 1000).map(\.id))
    let unfinished = try catalog.unfinishedJobs()
    #expect(unfinished.allSatisfy { recordings.contains($0.recording) && $0.output.map(recordings.contains) ?? true })
    #expect(try Self.usage(catalog) == Self.count(catalog))
    nodes.report("chains of recordings")
  }

  @Test("a recording, the job that makes it, and its source are deleted and ended by two at a time without a circle")
  func pairs() async throws {
    // The pairs that had circles: what is deleted at both ends of a job, and labels and profiles of what is deleted.
    let pairs = [(0, 1), (0, 3), (10, 1), (7, 1), (1, 2), (0, 12), (0, 13), (0, 14), (10, 2), (0, 5), (1, 8)]
    let chains = try (0..<Self.rounds * 2).map {
      try insertChain(of: Tenant(stored: "\($0 % 3)"), reversed: $0 % 4 < 2)
    }
    for (number, chain) in chains.enumerated() where number % 3 < 2 { _ = try catalog.claim(chain.jobs[0]) }
    let barrier = Barrier(RacingNodes.count)
    _ = try await nodes.race { thread, node in
      defer { barrier.leave() }
      for (number, chain) in chains.enumerated() {
        let pair = pairs[number % pairs.count]
        barrier.wait()
        try Self.actions[thread % 2 == 0 ? pair.0 : pair.1](node, chain)
      }
    }
    #expect(nodes.retries == 0)
    #expect(try Self.usage(catalog) == Self.count(catalog))
    nodes.report("pairs of changes")
  }

  @Test("nodes that delete old recordings of several tenants at once don't wait for each other in a circle")
  func retention() async throws {
    let tenants = (0..<4).map { Tenant(stored: "\($0)") }
    let recordings = try (0..<160).map { number in
      let recording = sample()
      // Each node finds the tenants in another order.
      try catalog.of(tenants[(number + number / 8) % 4]).insert(recording)
      return recording
    }
    let deleted = try await nodes.race { _, node in
      var ids: [RecordingID] = []
      while true {
        let more = try node.deleteRecordings(createdBefore: recordings[0].createdAt + 1e9, limit: 8)
        if more.isEmpty { return ids }
        ids += more.map(\.id)
      }
    }.flatMap { $0 }
    #expect(deleted.count == 160 && Set(deleted) == Set(recordings.map(\.id)))
    #expect(nodes.retries == 0)
    #expect(try Self.usage(catalog) == 0)
    nodes.report("retention of several tenants")
  }

  @Test("conversions that give way while their recordings are deleted don't make a circle")
  func conversions() async throws {
    for node in nodes.catalogs { node.nameDeletedObjects() }
    let recordings = try (0..<RacingNodes.count * 12).map { _ in
      let recording = sample()
      try catalog.insert(recording)
      return recording.id
    }
    _ = try await nodes.race { thread, node in
      for (number, id) in recordings.enumerated() where number % RacingNodes.count == thread {
        for format in ["flac", "mp3"] {
          let job = Job(kind: .convert, recording: id, parameters: "\"\(format)\"")
          do { try node.insert(job) } catch StorageError.noSuchRecording { continue }
          guard let token = try node.claim(job.id).written?.token else { continue }
          let key = ObjectKey(id, "converted-\(token.name).\(format)")
          try node.announce([key])
          let conversion = Conversion(recording: id, format: format, key: key, bytes: 30, sha256: "")
          _ = try node.keep(conversion, limit: 200, finishing: token, with: "{}")
        }
        if let kept = try node.conversions(of: id).first, number % 3 == 0 { try node.forget(kept) }
        // What another thread has converted long ago or just now.
        _ = try node.deleteRecording(recordings[max(0, number - 5)])
      }
    }
    #expect(nodes.retries == 0)
    #expect(try Self.usage(catalog) == Self.count(catalog))
    nodes.report("conversions and deletions")
  }

  private static func usage(_ catalog: Catalog) throws -> Int64 {
    try catalog.storedByTenant().values.map { $0.recordings + $0.storedBytes }.reduce(0, +)
  }

  /// What the counters should say.
  private static func count(_ catalog: Catalog) throws -> Int64 {
    try catalog.read { db in
      try [
        "SELECT count(*) FROM recordings",
        "SELECT CAST(coalesce(sum(\(TenantUsage.fileBytes(of: "recordings"))), 0) AS bigint) FROM recordings",
        "SELECT CAST(coalesce(sum(bytes), 0) AS bigint) FROM conversions",
        "SELECT CAST(coalesce(sum(bytes), 0) AS bigint) FROM label_tracks",
        "SELECT CAST(coalesce(sum(length(spectrum)), 0) AS bigint) FROM noise_profiles WHERE is_deleted = 0",
      ].map { try db.first($0, as: Int64.self) ?? 0 }.reduce(0, +)
    }
  }
}
