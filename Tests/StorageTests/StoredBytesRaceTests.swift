import PresentRows
import Terms
import Testing

@testable import Storage

/// Nodes that add to what a tenant stores at once, each in another way, so that only together they exceed its limit.
@Suite(.onEveryEngine) struct StoredBytesRaceTests {
  private let nodes: RacingNodes
  private static let rounds = 24
  /// Each way adds ten bytes, so two of eight fit.
  private static let limits = StoredLimits(bytes: 25)
  private static let later = Timestamp(milliseconds: 5000)
  private static let chunk = LabelChunk(start: 0, end: 9, texts: ["abc"], labels: Array(repeating: 1, count: 7))

  init() throws { nodes = try RacingNodes() }

  /// What a tenant has before the race, without any bytes.
  private struct Round: Sendable {
    let tenant: Tenant
    let recording: RecordingID
    let uploads: [UploadID]
    let tracks: [LabelTrackID]
    /// Attempts at jobs: at a waveform, and at a conversion.
    let attempts: [AttemptToken]
  }

  private func prepare(_ number: Int) throws -> Round {
    let tenant = Tenant(stored: "\(number)")
    let part = nodes.catalog.of(tenant)
    let recording = sample()
    try part.insert(recording)
    let uploads = try (0..<2).map { _ in
      let upload = Upload(length: 10, expiresAt: Self.later)
      try part.insert(upload, limits: UploadLimits(total: 999, perClient: 999))
      return upload.id
    }
    let tracks = try (0..<2).map { _ in
      let track = LabelTrack(of: recording.id, name: "t", kind: .labels, language: nil, source: .upload)
      try part.insert(track, [], limit: 99)
      return track.id
    }
    let attempts = try [JobKind.waveform, .convert].map { kind in
      let job = Job(kind: kind, recording: recording.id)
      try nodes.catalog.insert(job)
      return try #require(try nodes.catalog.claim(job.id).written?.token)
    }
    return Round(tenant: tenant, recording: recording.id, uploads: uploads, tracks: tracks, attempts: attempts)
  }

  private static func tenBytes() -> Recording {
    var recording = sample()
    recording.bytes = 10
    return recording
  }

  /// The ways to store ten bytes, by number; some of them twice.
  private static let ways: [@Sendable (TenantCatalog, Round) throws -> Void] = [
    { part, _ in try part.insert(tenBytes(), within: limits) },
    { part, round in
      try part.insert(tenBytes(), jobs: [], finishing: round.uploads[0], expiresAt: later, within: limits)
    },
    { part, round in
      try part.insert(tenBytes(), jobs: [], finishing: round.uploads[1], expiresAt: later, within: limits)
    },
    { part, _ in
      let recording = tenBytes()
      let job = Job(kind: .waveform, recording: recording.id)
      let token = AttemptToken(job: job.id, attempt: 1, nonce: AttemptToken.newNonce())
      _ = try part.insert(recording, finished: job, by: token, with: "{}", within: limits)
    },
    { part, round in
      let track = LabelTrack(of: round.recording, name: "t", kind: .labels, language: nil, source: .upload)
      try part.insert(track, [chunk], limit: 99, within: limits)
    },
    { _ = try $0.update($1.tracks[0], if: { _ in true }, .all([chunk]), within: limits) { $0.count = 1 } },
    { _ = try $0.update($1.tracks[1], if: { _ in true }, .all([chunk]), within: limits) { $0.count = 1 } },
    { part, round in
      let profile = KeptProfile(
        name: "p", recording: round.recording, noise: nil, sampleRate: nil, channels: 1,
        spectrum: Array(repeating: 1, count: 10))
      try part.insert(profile, limit: 99, within: limits)
    },
    { part, round in
      _ = try part.whole.finish(round.attempts[0], with: "{}", { $0.waveformBytes = 10 }, within: limits)
    },
    { part, round in
      let conversion = Conversion(
        recording: round.recording, format: "mp3", key: ObjectKey(round.recording, "converted-1"), bytes: 10,
        sha256: String(repeating: "0", count: 64))
      _ = try part.whole.keep(conversion, limit: 99, finishing: round.attempts[1], with: "{}", within: limits)
    },
  ]

  @Test(
    "recordings, uploads, labels, profiles, waveforms and conversions that are stored at once never exceed a tenant's bytes together"
  )
  func bytes() async throws {
    let rounds = try (0..<Self.rounds).map(prepare)
    let barrier = Barrier(RacingNodes.count)
    let stored = try await nodes.race { thread, node in
      defer { barrier.leave() }
      return try rounds.enumerated().map { number, round in
        barrier.wait()
        do {
          try Self.ways[(thread + number) % Self.ways.count](node.of(round.tenant), round)
          return true
        } catch StorageError.limitReached("stored_bytes", limit: 25) { return false }
      }
    }
    for (number, round) in rounds.enumerated() {
      #expect(stored.count { $0[number] } == 2)
      #expect(try nodes.catalog.of(round.tenant).usage().storedBytes == 20)
    }
    #expect(nodes.retries == 0)
    nodes.report("bytes of one tenant")
  }
}
