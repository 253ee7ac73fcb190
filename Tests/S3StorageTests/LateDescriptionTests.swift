import ObjectStore
import PresentRows
import Testing

@testable import S3Storage
@testable import Storage

/// Descriptions in a bucket, and requests about them that the store carries out late.
@Suite struct LateDescriptionTests {
  private func descriptions(of id: RecordingID, _ cluster: BlobsCluster) -> Set<ObjectKey> {
    Set(cluster.objects.keys.filter { $0.recording == id && $0.descriptionVersion != nil })
  }

  @Test("a description that is put late, after a newer one, changes nothing, and goes a day later")
  func lateAttempt() async throws {
    let cluster = try BlobsCluster { $0.attempts = 2 }
    let (first, second) = (try cluster.node("a"), try cluster.node("b"))
    cluster.catalog.keepDescriptions(in: first.blobs.descriptions) { Issue.record($1, "\($0)") }
    let (older, newer) = try await cluster.blocking {
      let recording = try first.upload([9, 8, 7])
      cluster.test.store.fail(.postpones)
      let older = try #require(try cluster.catalog.update(recording.id) { $0.name = "older" })
      return (older, try #require(try cluster.catalog.update(recording.id) { $0.name = "newer" }))
    }
    cluster.test.store.carryOutPostponed()
    #expect(cluster.objects[older.descriptionKey] == older.describedJSON)
    #expect(cluster.objects[newer.descriptionKey] == newer.describedJSON)
    cluster.advance(86_401)
    try await cluster.blocking { _ = try second.blobs.removeGarbage(of: cluster.catalog) }
    #expect(descriptions(of: newer.id, cluster) == [newer.descriptionKey])
    #expect(try cluster.catalog.announcedObjects(of: newer.id) == [])
  }

  @Test("what a killed node hasn't described is described before the description before goes")
  func killedNode() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let node = try cluster.node("a")
    cluster.catalog.keepDescriptions(in: node.blobs.descriptions) { _, _ in }
    let (former, current) = try await cluster.blocking {
      let former = try node.upload([9, 8, 7])
      // Nobody hears of it.
      cluster.test.store.fail(.refuses(507, code: "QuotaExceeded"))
      return (former, try #require(try cluster.catalog.update(former.id) { $0.name = "newer" }))
    }
    #expect(descriptions(of: former.id, cluster) == [former.descriptionKey])
    cluster.advance(86_401)
    cluster.test.store.fail(.refuses(507, code: "QuotaExceeded"))
    await #expect(throws: StorageError.self) {
      try await cluster.blocking { _ = try node.blobs.removeGarbage(of: cluster.catalog) }
    }
    #expect(descriptions(of: former.id, cluster) == [former.descriptionKey])
    cluster.advance(10)
    try await cluster.blocking { _ = try node.blobs.removeGarbage(of: cluster.catalog) }
    #expect(descriptions(of: former.id, cluster) == [current.descriptionKey])
    #expect(try cluster.catalog.announcedObjects(of: former.id) == [])
  }

  @Test(
    "what only a later description names stays until the recording is changed or deleted", arguments: [false, true])
  func laterNames(isDeleted: Bool) async throws {
    let cluster = try BlobsCluster()
    let (node, catalog) = (try cluster.node("a"), cluster.catalog)
    catalog.keepDescriptions(in: node.blobs.descriptions) { Issue.record($1, "\($0)") }
    let (recording, later) = try await cluster.blocking {
      let recording = try node.upload([9, 8, 7])
      // The catalog was restored to this moment, at which a job was about to put a waveform.
      let waveform = try node.put([1], as: ObjectKey(recording.id, "waveform-1.pyramid"))
      var later = recording
      (later.waveformState, later.waveformKey, later.version) = (.ready, waveform.key, recording.version + 1)
      try cluster.test.client.put(later.describedJSON, as: "\(later.descriptionKey)")
      return (recording, later)
    }
    func collect() async throws {
      cluster.advance(86_401)
      try await cluster.blocking { _ = try node.blobs.removeGarbage(of: catalog) }
    }
    for _ in 0..<2 { try await collect() }
    let waveform = try #require(later.waveformKey)
    #expect(cluster.objects[waveform] != nil && descriptions(of: recording.id, cluster).contains(later.descriptionKey))
    if isDeleted {
      _ = try catalog.deleteRecording(recording.id)
    } else {
      _ = try await cluster.blocking { try catalog.update(recording.id) { $0.name = "changed" } }
    }
    for _ in 0..<2 { try await collect() }
    #expect(cluster.objects[waveform] == nil && cluster.objects.isEmpty == isDeleted)
    #expect(try catalog.announcedObjects(of: recording.id) == [])
  }
}
