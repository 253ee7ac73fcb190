import PresentRows
import Testing

@testable import Storage

/// Races between eight nodes about uploads: what clients send to several at once, and what the nodes do by themselves.
@Suite(.onEveryEngine) struct UploadRaceTests {
  private let nodes: RacingNodes
  private static let rounds = 15
  private static let later = Timestamp(milliseconds: 5000)

  init() throws { nodes = try RacingNodes() }

  private var catalog: Catalog { nodes.catalog }

  private func insertUploads(_ count: Int = rounds) throws -> [UploadID] {
    try (0..<count).map { _ in
      let upload = Upload(length: 100, expiresAt: Timestamp(milliseconds: 1000))
      try catalog.insert(upload, limits: UploadLimits(total: 100, perClient: 100))
      return upload.id
    }
  }

  /// Whether a call succeeds. Other errors than those of a row that another has changed are thrown.
  private static func succeeds(_ call: () throws -> Void) throws -> Bool {
    do {
      try call()
      return true
    } catch StorageError.noSuchUpload { return false } catch StorageError.uploadTakenOver { return false } catch {
      if error as? StorageError == .changedMeanwhile { return false }
      throw error
    }
  }

  @Test("of eight that go on with an upload at the same offset, one's bytes count")
  func takeovers() async throws {
    let uploads = try insertUploads()
    let outcomes = try await nodes.race { thread, node in
      try uploads.map { id -> (writer: Int?, hasAdvanced: Bool) in
        var writer: Int?
        let offset = Int64(thread + 1)
        let hasAdvanced = try Self.succeeds {
          writer = try node.takeOver(id, at: 0).writer
          try node.advance(id, to: offset, expiresAt: Self.later, by: writer ?? 0)
        }
        return (writer, hasAdvanced)
      }
    }
    for (number, id) in uploads.enumerated() {
      let writers = outcomes.compactMap { $0[number].writer }
      #expect(Set(writers).count == writers.count, "each that takes it over is another writer")
      let counted = outcomes.map { $0[number] }.filter(\.hasAdvanced)
      let upload = try #require(try catalog.upload(id))
      #expect(counted.count == 1 && counted.first?.writer == upload.writer && upload.writer == writers.max())
      #expect(try catalog.segments(of: id) == [UploadSegment(upload: id, start: 0, writer: upload.writer)])
    }
    nodes.report("uploads taken over")
  }

  @Test("an upload that eight complete at once becomes one recording")
  func completions() async throws {
    let uploads = try insertUploads()
    let completed = try await nodes.race { _, node in
      try uploads.map { id in
        try Self.succeeds {
          let recording = sample()
          let job = Job(kind: .waveform, recording: recording.id)
          try node.insert(recording, jobs: [job], finishing: id, expiresAt: Self.later)
        }
      }
    }
    #expect(uploads.indices.allSatisfy { number in completed.count { $0[number] } == 1 })
    let recordings = Set(try catalog.recordings(limit: 1000).map(\.id))
    #expect(try Set(uploads.compactMap { try catalog.upload($0)?.recording }) == recordings)
    #expect(try recordings.count == Self.rounds && catalog.unfinishedJobs().count == Self.rounds)
    nodes.report("uploads completed")
  }

  @Test("an upload that is completed, refused, canceled and prolonged at once ends in one of these ways")
  func ends() async throws {
    let uploads = try insertUploads()
    let expiry = Timestamp(milliseconds: 2000)
    let ends = try await nodes.race { thread, node in
      try uploads.map { id -> String? in
        switch thread % 4 {
        case 0:
          let isRecording = try Self.succeeds {
            try node.insert(sample(), jobs: [], finishing: id, expiresAt: Self.later)
          }
          return isRecording ? "completed" : nil
        case 1: return try node.deleteUpload(id, unfinishedBy: 0) ? "deleted" : nil
        case 2: return try node.deleteUpload(id, ifExpiredBefore: expiry) ? "deleted" : nil
        default:
          return try Self.succeeds { try node.advance(id, to: 1, expiresAt: Self.later) } ? "prolonged" : nil
        }
      }
    }
    for (number, id) in uploads.enumerated() {
      let found = ends.compactMap { $0[number] }
      let upload = try catalog.upload(id)
      #expect(found.count { $0 == "completed" } + found.count { $0 == "deleted" } <= 1, "\(found)")
      #expect(found.contains("completed") == (upload?.recording != nil))
      #expect(found.contains("deleted") == (upload == nil))
    }
    #expect(try catalog.recordings(limit: 1000).count == ends.flatMap { $0 }.count { $0 == "completed" })
    nodes.report("ends of uploads")
  }

  @Test("an upload that has expired is deleted or prolonged, not both")
  func expiry() async throws {
    let uploads = try insertUploads()
    let expiry = Timestamp(milliseconds: 2000)
    let outcomes = try await nodes.race { thread, node in
      try uploads.map { id -> Bool in
        thread % 2 == 0
          ? try node.deleteUpload(id, ifExpiredBefore: expiry)
          : try Self.succeeds { try node.advance(id, to: 1, expiresAt: Self.later) }
      }
    }
    #expect(try outcomes.flatMap { $0 }.contains(true) && catalog.unfinishedUploads().count <= Self.rounds)
    for (number, id) in uploads.enumerated() {
      let upload = try catalog.upload(id)
      #expect(upload == nil || upload?.expiresAt == Self.later && upload?.offset == 1, "\(number)")
    }
    nodes.report("uploads that expire")
  }

  @Test("an upload that is deleted because it has no bytes, while it gets some, has lost none that count")
  func emptyUploads() async throws {
    for node in nodes.catalogs { node.nameDeletedObjects() }
    let pairs = RacingNodes.count / 2
    let uploads = try insertUploads(Self.rounds * pairs)
    let objects = uploads.map { UploadObject(of: $0, start: 0, bytes: 7) }
    try catalog.announce(objects)
    let barrier = Barrier(RacingNodes.count)
    // Of each two threads, one deletes an upload and the other receives bytes for it.
    let outcomes = try await nodes.race { thread, node in
      defer { barrier.leave() }
      return try (0..<Self.rounds).map { round -> (number: Int, end: String)? in
        let number = round * pairs + thread / 2
        barrier.wait()
        if thread % 2 == 0 {
          let isDeleted = try node.deleteUpload(uploads[number], unfinishedBy: 0, ifEmpty: true)
          return isDeleted ? (number, "deleted") : nil
        }
        let hasAdvanced = try Self.succeeds {
          try node.advance(uploads[number], to: 7, expiresAt: Self.later, adding: [objects[number]])
        }
        return hasAdvanced ? (number, "acknowledged") : nil
      }
    }.flatMap { $0 }.compactMap { $0 }
    for (number, id) in uploads.enumerated() {
      let found = outcomes.filter { $0.number == number }.map(\.end)
      #expect(found.count == 1, "\(found)")
      let isKept = found == ["acknowledged"]
      #expect(try catalog.upload(id)?.offset == (isKept ? 7 : nil))
      #expect(try catalog.objects(of: id) == (isKept ? [objects[number]] : []))
      #expect(try catalog.unneededObjects(of: id).map(\.key) == (isKept ? [] : [objects[number].key]))
    }
    nodes.report("empty uploads")
  }

  @Test("uploads that are begun at once are never more than their limits")
  func limits() async throws {
    let limits = UploadLimits(total: 20, perClient: 8)
    let begun = try await nodes.race { thread, node in
      try (0..<6).map { _ -> String? in
        let client = "\(thread % 4)"
        do {
          try node.insert(Upload(length: 1, expiresAt: Self.later, client: client), limits: limits)
          return client
        } catch StorageError.tooManyUploads { return nil } catch StorageError.tooManyUploadsOfClient { return nil }
      }
    }.flatMap { $0 }.compactMap { $0 }
    #expect(begun.count == 20 && Dictionary(grouping: begun) { $0 }.values.allSatisfy { $0.count <= 8 })
    #expect(try catalog.unfinishedUploads().count == 20)
    nodes.report("uploads begun")
  }

  @Test("a token for one upload that eight use at once is good for one of them")
  func tokens() async throws {
    let tokens = (0..<Self.rounds).map { UploadToken(id: "token \($0)", expiresAt: Self.later) }
    let used = try await nodes.race { thread, node in
      try tokens.count { token in
        do {
          if thread % 2 == 0 {
            try node.insert(sample(), spending: token)
          } else {
            let limits = UploadLimits(total: 100, perClient: 100)
            try node.insert(Upload(length: 1, expiresAt: Self.later), limits: limits, spending: token)
          }
          return true
        } catch StorageError.tokenIsSpent { return false }
      }
    }
    #expect(used.reduce(0, +) == Self.rounds)
    #expect(try catalog.recordings(limit: 1000).count + catalog.unfinishedUploads().count == Self.rounds)
    nodes.report("tokens")
  }
}
