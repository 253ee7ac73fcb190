import Foundation
import ObjectStore
import PresentRows
import Storage
import Testing

@testable import S3Storage

/// Requests about descriptions that a store carries out late.
@Suite struct LateDescriptionTests {
  private func description(of id: RecordingID, _ cluster: BlobsCluster) -> [UInt8]? {
    cluster.objects[.description(of: id)]
  }

  @Test("a description that is put late, over a newer one, is put right by the collection of any node a day later")
  func lateAttempt() async throws {
    let cluster = try BlobsCluster { $0.attempts = 2 }
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    cluster.catalog.keepDescriptions(in: first.blobs) { Issue.record($1, "\($0)") }
    let (recording, older, newer) = try await cluster.blocking {
      let recording = try first.upload([9, 8, 7])
      cluster.test.store.fail(.postpones)
      let older = try #require(try cluster.catalog.update(recording.id) { $0.name = "older" })
      let newer = try #require(try cluster.catalog.update(recording.id) { $0.name = "newer" })
      return (recording, older, newer)
    }
    #expect(description(of: recording.id, cluster) == newer.describedJSON)
    #expect(try cluster.catalog.announcedObjects(of: recording.id) == [])
    cluster.test.store.carryOutPostponed()
    #expect(description(of: recording.id, cluster) == older.describedJSON)
    cluster.advance(86_401)
    try await cluster.blocking { try second.blobs.removeGarbage(of: cluster.catalog) }
    #expect(description(of: recording.id, cluster) == newer.describedJSON)
    let before = cluster.test.store.received.count
    cluster.advance(86_401)
    try await cluster.blocking { try second.blobs.removeGarbage(of: cluster.catalog) }
    #expect(cluster.test.store.received.count == before, "nothing is in doubt any more")
  }

  @Test("a description that a move has put without an answer is put right by a node a day later")
  func moved() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let node = try cluster.node("a")
    cluster.catalog.keepDescriptions(in: node.blobs) { Issue.record($1, "\($0)") }
    let moved = try await cluster.blocking {
      var settings = S3Settings()
      (settings.attempts, settings.breakSeconds) = (1, 0)
      return try MovedBucket(
        in: cluster.test.client.bucket, credentials: TestStore.source(), settings: settings, catalog: cluster.catalog)
    }
    let recording = try await cluster.blocking {
      let recording = try node.upload([9, 8, 7])
      var renamed = recording
      renamed.name = "older"
      let older = renamed
      cluster.test.store.fail(.postpones)
      #expect(throws: StorageError.self) { try moved.describe(older) }
      cluster.test.store.carryOutPostponed(1)
      return recording
    }
    #expect(description(of: recording.id, cluster).map { Recording(describedBy: $0)?.name } == "older")
    cluster.advance(86_401)
    try await cluster.blocking { try node.blobs.removeGarbage(of: cluster.catalog) }
    #expect(description(of: recording.id, cluster) == (try cluster.catalog.recording(recording.id))?.describedJSON)
  }

  @Test("a description that nobody has written in time is written again a day later: its node may have been killed")
  func killedNode() async throws {
    let cluster = try BlobsCluster()
    let node = try cluster.node("a")
    // Nobody describes it.
    let recording = try await cluster.blocking { try node.upload([9, 8, 7]) }
    cluster.catalog.keepDescriptions(in: node.blobs) { Issue.record($1, "\($0)") }
    cluster.advance(61)
    try await cluster.blocking { try node.blobs.removeGarbage(of: cluster.catalog) }
    let current = try #require(try cluster.catalog.recording(recording.id)).describedJSON
    #expect(description(of: recording.id, cluster) == current)
    cluster.test.store.put([1], as: "\(ObjectKey.description(of: recording.id))", in: "sounds")
    cluster.advance(86_401)
    try await cluster.blocking { try node.blobs.removeGarbage(of: cluster.catalog) }
    #expect(description(of: recording.id, cluster) == current)
  }

  @Test("what a killed node has put is put right a day later, although another has changed the recording since")
  func changedAfterKill() async throws {
    let cluster = try BlobsCluster()
    let node = try cluster.node("a")
    // Nobody hears whether its description was put.
    let former = try await cluster.blocking { try node.upload([9, 8, 7]) }
    cluster.catalog.keepDescriptions(in: node.blobs) { Issue.record($1, "\($0)") }
    let current = try await cluster.blocking {
      try #require(try cluster.catalog.update(former.id) { $0.name = "newer" }).describedJSON
    }
    #expect(description(of: former.id, cluster) == current)
    cluster.test.store.put(former.describedJSON, as: "\(ObjectKey.description(of: former.id))", in: "sounds")
    cluster.advance(86_401)
    try await cluster.blocking { try node.blobs.removeGarbage(of: cluster.catalog) }
    #expect(description(of: former.id, cluster) == current)
  }

  @Test("a description in doubt that a killed node has put since stays in doubt for another day")
  func doubtedTwice() async throws {
    let cluster = try BlobsCluster()
    let node = try cluster.node("a")
    // Nobody hears whether its description was put.
    let former = try await cluster.blocking { try node.upload([9, 8, 7]) }
    cluster.catalog.keepDescriptions(in: node.blobs) { Issue.record($1, "\($0)") }
    try cluster.catalog.doubtDescription(of: former.id)
    cluster.advance(86_401)
    let current = try await cluster.blocking {
      try node.blobs.removeGarbage(of: cluster.catalog)
      return try #require(try cluster.catalog.update(former.id) { $0.name = "newer" }).describedJSON
    }
    cluster.test.store.put(former.describedJSON, as: "\(ObjectKey.description(of: former.id))", in: "sounds")
    cluster.advance(86_401)
    try await cluster.blocking { try node.blobs.removeGarbage(of: cluster.catalog) }
    #expect(description(of: former.id, cluster) == current)
  }

  @Test(
    "what only a late description names stays until that is put right or deleted, and goes then",
    arguments: [false, true])
  func lateNames(isDeleted: Bool) async throws {
    let cluster = try BlobsCluster()
    let (node, catalog) = (try cluster.node("a"), cluster.catalog)
    catalog.keepDescriptions(in: node.blobs) { Issue.record($1, "\($0)") }
    @Sendable func makeWaveform(of id: RecordingID) throws -> Recording {
      let job = Job(kind: .waveform, recording: id)
      try catalog.insert(job)
      let token = try #require(try catalog.claim(job.id).written?.token)
      let stored = try node.put([1], as: ObjectKey(id, "waveform-\(token.name).pyramid"))
      _ = try catalog.finish(token, with: "{}") { ($0.waveformState, $0.waveformKey) = (.ready, stored.key) }
      return try #require(try catalog.recording(id))
    }
    let (older, newer) = try await cluster.blocking {
      let id = try node.upload([9, 8, 7]).id
      return (try makeWaveform(of: id), try makeWaveform(of: id))
    }
    let (id, former) = (newer.id, try #require(older.waveformKey))
    cluster.test.store.put(older.describedJSON, as: "\(ObjectKey.description(of: id))", in: "sounds")
    try catalog.doubtDescription(of: id)
    func collect(after seconds: Double) async throws {
      cluster.advance(seconds)
      try await cluster.blocking { try node.blobs.removeGarbage(of: catalog) }
    }
    try await collect(after: 80_000)
    #expect(cluster.objects[former] != nil, "the catalog might be one that was restored to an earlier moment")
    if isDeleted { _ = try catalog.deleteRecording(id) }
    for _ in 0..<2 { try await collect(after: 86_401) }
    #expect(description(of: id, cluster) == (isDeleted ? nil : newer.describedJSON))
    #expect(cluster.objects[former] == nil && cluster.objects.isEmpty == isDeleted)
    #expect(try catalog.announcedObjects(of: id) == [])
  }

  @Test("a recording that was deleted meanwhile isn't described again")
  func deleted() async throws {
    let cluster = try BlobsCluster()
    let node = try cluster.node("a")
    cluster.catalog.keepDescriptions(in: node.blobs) { Issue.record($1, "\($0)") }
    try await cluster.blocking {
      let recording = try node.upload([9, 8, 7])
      try cluster.catalog.doubtDescription(of: recording.id)
      _ = try cluster.catalog.deleteRecording(recording.id)
      cluster.advance(86_401)
      try node.blobs.removeGarbage(of: cluster.catalog)
    }
    #expect(cluster.objects.isEmpty)
    #expect(try cluster.catalog.takeGarbage() == [])
  }

  @Test("only an attempt that the store may still carry out leaves a doubt")
  func doubts() {
    let errors: [S3Error] = [
      .timedOut, .unreachable(reason: ""), .unavailable(status: 500, code: nil), .unavailable(status: 503, code: nil),
      .damaged, .accessDenied, .quotaExceeded,
    ]
    #expect(errors.map { $0.leavesDoubt(wasSent: true) } == [true, true, true, false, false, false, false])
    #expect(!S3Error.unreachable(reason: "").leavesDoubt(wasSent: false))
  }
}
