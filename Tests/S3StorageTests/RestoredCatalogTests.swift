import Foundation
import ObjectStore
import PresentRows
import Storage
import Testing

@testable import S3Storage

/// A catalog that was restored to an earlier moment, with the bucket of today.
@Suite struct RestoredCatalogTests {
  private let bench: CheckedBench
  private let path: String

  init() throws {
    bench = try CheckedBench()
    path = bench.cluster.folder.path + "/yesterday.sqlite"
  }

  /// Does what nodes do for days: gives lost jobs back and removes what rows say is unneeded.
  private func collect(_ catalog: Catalog) async throws {
    let test = bench.cluster.test
    try await bench.blocking { [cluster = bench.cluster] in
      let media = try S3Media(
        in: test.client.bucket, credentials: try TestStore.source(), settings: S3Settings(), catalog: catalog,
        binding: cluster.binding,
        scratch: cluster.folder.path + "/restored", cacheBytes: 1 << 30, spareBytes: 0)
      catalog.keepDescriptions(in: media.blobs.descriptions) { Issue.record($1, "\($0)") }
      for _ in 0..<4 {
        _ = try catalog.endLostLeases()
        try media.removeUnneeded()
        cluster.advance(90_000)
      }
      try media.removeUnneeded()
    }
  }

  @Test("no sound that is newer than the catalog is lost, and a check names each such recording")
  func newerSounds() async throws {
    let store = bench.cluster.test.store
    // At the moment of the backup, one recording is being taken in, and one waits for its waveform.
    let (known, waiting, incoming, token) = try await bench.blocking {
      let known = try bench.makeNow([1])
      let waiting = try bench.node.upload([2])
      let job = try #require(waiting.waveformJob)
      let token = try #require(try bench.cluster.catalog.claim(job).written?.token)
      try bench.cluster.catalog.announce([ObjectKey(waiting.id, "waveform-\(token.name).pyramid")])
      return (known, waiting, try bench.node.upload([3], isAcknowledged: false), token)
    }
    try bench.copyCatalog(to: path)
    let newer = try await bench.blocking {
      var incoming = incoming
      incoming.waveformJob = nil
      try bench.cluster.catalog.insert(incoming)
      try bench.finishWaveform(of: waiting.id, by: token)
      let newer = try bench.makeNow([4])
      _ = try bench.beginUpload(of: 30)
      return newer
    }
    let today = store.objects(in: "sounds")
    let restored = try bench.cluster.catalog(restoredFrom: path)
    for isCollected in [false, true] {
      let report = try await bench.check(restored)
      let lost = report.problems.filter { $0.code == "row_missing" }.map(\.path)
      #expect(lost == [incoming.id, newer.id].map { "recordings/\($0)" }.sorted(), "\(report.problems)")
      #expect(report.problems.count == lost.count, "\(report.problems)")
      #expect(report.notes.contains { $0.path.hasPrefix("uploads/") })
      if !isCollected { try await collect(restored) }
    }
    let left = store.objects(in: "sounds")
    // The description before the one that its row names has gone.
    let isOutdated = { (key: String) in
      key.hasPrefix(ObjectKey.descriptions(of: known.id)) && key != "\(known.descriptionKey)"
    }
    for id in [known, incoming, newer].map(\.id) {
      let objects = today.filter { $0.key.hasPrefix("recordings/\(id)/") && !isOutdated($0.key) }
      #expect(objects.count > 2 && objects.allSatisfy { left[$0.key] == $0.value })
    }
    #expect(today.keys.filter { $0.hasPrefix("uploads/") && left[$0] == nil } == [])
    #expect(left["\(try #require(waiting.audioKey))"] == [2])
  }

  @Test("what was deleted or finished since the backup is missing, and a check says so")
  func missingObjects() async throws {
    let (deleted, upload) = try await bench.blocking { (try bench.makeNow(), try bench.beginUpload(of: 30)) }
    try bench.copyCatalog(to: path)
    try await bench.blocking {
      _ = try bench.cluster.catalog.deleteRecording(deleted.id)
      try bench.node.blobs.remove(deleted.id)
      _ = try bench.cluster.catalog.deleteUpload(upload.id)
      bench.spool.removePart(of: upload.id)
      bench.spool.settle()
    }
    let report = try await bench.check(try bench.cluster.catalog(restoredFrom: path))
    #expect(
      report.problems.map(\.code) == [
        "audio_missing", "working_copy_missing", "waveform_missing", "description_outdated", "upload_damaged",
      ])
    #expect(report.notes.map(\.code) == ["conversion_missing"])
  }
}
