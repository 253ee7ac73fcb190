import ObjectStore
import Randomness
import Storage
import Testing

@testable import S3Storage

@Suite struct BlobsHistoryTests {
  @Test(
    "whatever fails, each object is named by a row or was announced, each row's object exists, and strays go",
    arguments: 0..<6)
  func histories(number: Int) async throws {
    let cluster = try BlobsCluster { $0.attempts = 2 }
    let history = BlobsHistory(cluster, [try cluster.node("a"), try cluster.node("b")], number)
    try await cluster.blocking { try history.run(steps: 40) }
  }
}

/// A random history of nodes that upload, work, delete and collect, on a store that fails, and are killed in between.
private final class BlobsHistory: @unchecked Sendable {
  // @unchecked: `run` is called once, by one thread.
  private let cluster: BlobsCluster
  private let nodes: [BlobsNode]
  private var generator: TestRandom
  private var recordings: [Recording] = []

  init(_ cluster: BlobsCluster, _ nodes: [BlobsNode], _ number: Int) {
    (self.cluster, self.nodes) = (cluster, nodes)
    generator = TestRandom(for: number)
  }

  func run(steps: Int) throws {
    cluster.bind()
    cluster.catalog.keepDescriptions(in: nodes[0].blobs) { _, _ in }
    for step in 0..<steps {
      if chance(40) {
        let faults: [ObjectStore.Fault] = [
          .refuses(500, code: "InternalError"), .cuts(afterBytes: 0), .failsLate(code: "InternalError"), .none,
        ]
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
          if let fault = faults.randomElement(using: &generator) { cluster.test.store.fail(fault) }
        }
      }
      try act(nodes[Int.random(in: 0..<nodes.count, using: &generator)])
      try check("after step \(step)")
      if step % 10 == 9 { try compare("after step \(step)", mayLackDescriptions: true) }
    }
    for _ in 0..<3 {
      cluster.advance(90_000)
      _ = try cluster.catalog.endLostLeases()
      try nodes[0].blobs.removeGarbage(of: cluster.catalog)
    }
    try check("at the end")
    try compare("at the end", mayLackDescriptions: false)
    let named = try Set(recordings.flatMap { try cluster.catalog.namedObjects(of: $0.id) })
    let strays = cluster.objects.keys.filter { !named.contains($0) }
    #expect(strays == [])
  }

  private func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &generator) < percent }

  /// One act of a node; errors of the store end it where it is.
  private func act(_ node: BlobsNode) throws {
    do {
      switch Int.random(in: 0..<6, using: &generator) {
      case 0, 1:
        let bytes = (0..<100).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        recordings.append(try node.upload(bytes, isAcknowledged: chance(70)))
      case 2, 3: try work(node)
      case 4:
        guard let recording = recordings.randomElement(using: &generator) else { return }
        guard try cluster.catalog.deleteRecording(recording.id) != nil, chance(70) else { return }
        try node.blobs.remove(recording.id)
      default:
        cluster.advance(chance(50) ? 5000 : 90_000)
        _ = try cluster.catalog.endLostLeases()
        try node.blobs.removeGarbage(of: cluster.catalog)
      }
    } catch let error as StorageError {
      switch error {
      case .storeUnreachable, .objectStore, .noSuchRecording: break
      default: throw error
      }
    }
  }

  private func work(_ node: BlobsNode) throws {
    guard let recording = recordings.randomElement(using: &generator), let job = recording.waveformJob,
      let token = try cluster.catalog.claim(job).written?.token
    else { return }
    let key = ObjectKey(recording.id, "waveform-\(token.name).pyramid")
    _ = try node.put([7, 7, 7], as: key)
    if chance(30) {
      if chance(50) { node.blobs.removeResults(of: token, in: recording.id) }
      _ = try cluster.catalog.giveBack(token, interrupted: true, hasWritten: true)
    } else {
      _ = try cluster.catalog.finish(token, with: "{}") {
        ($0.waveformState, $0.waveformKey) = (.ready, key)
      }
    }
  }

  /// What operators run finds nothing, either. Only a description that couldn't be put may be outdated until the next
  /// collection, and it's known that a node will write it.
  private func compare(_ moment: String, mayLackDescriptions: Bool) throws {
    let bucket = try CheckedBucket(
      cluster.test.client, boundTo: cluster.binding, temporary: cluster.folder.path + "/checked")
    let report = try DataCheck { _ in nil }.run(bucket, of: cluster.catalog)
    #expect(report.problems == [], "\(moment)")
    #expect(report.notes.filter { !mayLackDescriptions || $0.code != "description_outdated" } == [], "\(moment)")
  }

  private func check(_ moment: String) throws {
    cluster.test.store.heal()
    let objects = cluster.objects
    for id in Set(objects.keys.map(\.recording)) {
      let known = try cluster.catalog.namedObjects(of: id).union(cluster.catalog.announcedObjects(of: id))
      #expect(objects.keys.filter { $0.recording == id && !known.contains($0) } == [], "\(moment)")
    }
    for recording in recordings {
      guard let current = try cluster.catalog.recording(recording.id) else { continue }
      for key in [current.audioKey, current.waveformKey].compactMap({ $0 }) {
        #expect(objects[key] != nil, "\(key) \(moment)")
      }
      #expect(try nodes[1].bytes(ObjectKey(recording.id, "audio.mp3")) == objects[ObjectKey(recording.id, "audio.mp3")])
    }
  }
}
