import ObjectStore
import PresentRows
import Storage
import Testing

@testable import S3Storage

/// What is removed from a bucket, and what stays.
@Suite struct S3RemovalTests {
  @Test("an object that can't be removed keeps no others, and is tried again the next time")
  func refusedRemoval() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let node = try cluster.node("a")
    let keys = (0..<5).map { _ in ObjectKey(RecordingID(), "waveform-1.pyramid") }
    try cluster.catalog.announce(keys)
    for key in keys { cluster.test.store.put([1], as: "\(key)", in: "sounds") }
    cluster.advance(86_401)
    // Each is asked for its description before it is removed.
    cluster.test.store.fail(.none, .refuses(403, code: "AccessDenied"))
    await #expect(throws: StorageError.objectStore(detail: "the key may not do this")) {
      try await cluster.blocking { _ = try node.blobs.removeGarbage(of: cluster.catalog, batch: 1) }
    }
    #expect(cluster.objects.count == 1)
    try await cluster.blocking { _ = try node.blobs.removeGarbage(of: cluster.catalog, batch: 1) }
    #expect(cluster.objects.isEmpty)
    #expect(try cluster.catalog.takeGarbage() == [])
  }

  @Test("an upload that fails because the store does isn't taken back at once, but a day later")
  func failedAdoption() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let node = try cluster.node("a")
    let store = cluster.test.store
    try await cluster.blocking {
      store.fail(.cuts(afterBytes: 0))
      #expect(throws: StorageError.self) { try node.upload([1, 2, 3]) }
      store.heal()
      #expect(store.received.count { $0.method == "DELETE" } == 0 && cluster.objects.count == 1)
      cluster.advance(86_401)
      try node.blobs.removeGarbage(of: cluster.catalog)
    }
    #expect(cluster.objects.isEmpty)
  }

  @Test("what nothing names stays, and an object that appears after its recording's deletion goes in a day")
  func strays() async throws {
    let cluster = try BlobsCluster()
    let node = try cluster.node("a")
    let left = try await cluster.blocking {
      let recording = try node.upload([1, 2, 3])
      let (late, stranger) = (ObjectKey(recording.id, "working-1.wav"), ObjectKey(recording.id, "letter.txt"))
      try cluster.catalog.announce([late])
      _ = try cluster.catalog.deleteRecording(recording.id)
      try node.blobs.remove(recording.id)
      // The PUT of a node that was cut off, and someone else's object.
      for key in [late, stranger] { try cluster.test.client.put([4], as: "\(key)") }
      try node.blobs.removeGarbage(of: cluster.catalog)
      let before = cluster.objects.keys.map(\.name).sorted()
      cluster.advance(86_401)
      try node.blobs.removeGarbage(of: cluster.catalog)
      #expect(try cluster.catalog.isDeleted(recording.id) == false)
      return [before, cluster.objects.keys.map(\.name)]
    }
    #expect(left == [["letter.txt", "working-1.wav"], ["letter.txt"]])
  }

  @Test("an upload whose row comes after its object was collected is refused, not acknowledged without sound")
  func lateRow() async throws {
    let cluster = try BlobsCluster()
    let node = try cluster.node("a")
    try await cluster.blocking {
      let recording = try node.upload([1, 2, 3], isAcknowledged: false)
      cluster.advance(86_401)
      try node.blobs.removeGarbage(of: cluster.catalog)
      #expect(throws: StorageError.self) { try cluster.catalog.insert(recording) }
      #expect(try cluster.catalog.recording(recording.id) == nil && cluster.objects.isEmpty)
    }
  }

  @Test("a deletion that the store refuses is completed later")
  func refusedDeletion() async throws {
    let cluster = try BlobsCluster { $0.attempts = 1 }
    let node = try cluster.node("a")
    let recording = try await cluster.blocking {
      let recording = try node.upload([1, 2, 3])
      _ = try cluster.catalog.deleteRecording(recording.id)
      return recording
    }
    cluster.test.store.fail(.none, .refuses(500, code: "InternalError"))
    await #expect(throws: StorageError.self) { try await cluster.blocking { try node.blobs.remove(recording.id) } }
    #expect(!cluster.objects.isEmpty)
    cluster.advance(86_401)
    try await cluster.blocking { _ = try node.blobs.removeGarbage(of: cluster.catalog) }
    #expect(cluster.objects.isEmpty)
  }
}
