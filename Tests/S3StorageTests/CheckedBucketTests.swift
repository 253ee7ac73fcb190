import Foundation
import ObjectStore
import PresentRows
import Storage
import Synchronization
import Testing

@testable import S3Storage

@Suite struct CheckedBucketTests {
  private let bench: CheckedBench

  init() throws { bench = try CheckedBench() }

  private var store: S3Server { bench.cluster.test.store }

  @Test("a bucket that has what its catalog says has no findings, and only reading requests are sent")
  func sound() async throws {
    let recording = try await bench.make()
    try await bench.blocking { _ = try bench.beginUpload(of: 30) }
    let before = store.received.count
    let report = try await bench.check()
    #expect(report.problems == [] && report.notes == [])
    #expect(report.recordings == 1 && report.files == 2 && report.bytes == 3)
    let requests = store.received.dropFirst(before)
    #expect(Set(requests.map(\.method)) == ["GET", "HEAD"])
    let audio = "/sounds/\(try #require(recording.audioKey))"
    #expect(requests.filter { $0.path == audio }.map(\.method) == ["HEAD", "GET"])
    let second = store.received.count
    #expect(try await bench.check(isQuick: true) == report)
    #expect(store.received.dropFirst(second).filter { $0.path == audio }.map(\.method) == ["HEAD"])
  }

  @Test("what is wrong with an object is found, and nothing is changed")
  func damage() async throws {
    let recording = try await bench.make()
    let upload = try await bench.blocking { try bench.beginUpload(of: 30) }
    let objects = store.objects(in: "sounds")
    func key(_ start: String) throws -> String {
      try #require(objects.keys.first { $0.hasPrefix(start) && !$0.hasSuffix(".map") })
    }
    let folder = "recordings/\(recording.id)/"
    let (audio, piece) = (folder + "audio.mp3", try key("uploads/\(upload.id)/10-"))
    for (key, bytes, code, quickly) in [
      (audio, nil, "audio_missing", true), (audio, [1, 2], "audio_damaged", true),
      (audio, [1, 2, 4], "audio_damaged", false), (try key(folder + "working-"), nil, "working_copy_missing", true),
      (try key(folder + "working-"), [8], "working_copy_damaged", true),
      (try key(folder + "working-"), [6, 6], "working_copy_damaged", false),
      (try key(folder + "waveform-"), nil, "waveform_missing", true),
      (try key(folder + "waveform-"), [7, 7, 0], "waveform_damaged", true),
      (try key(folder + "converted-"), [1], "conversion_damaged", true),
      (try key(folder + "converted-"), [1, 1, 1, 1, 1], "conversion_damaged", false),
      ("\(recording.descriptionKey)", nil, "description_outdated", true),
      ("\(recording.descriptionKey)", [1], "description_outdated", true), (piece, nil, "upload_damaged", true),
      (piece, [1], "upload_damaged", true),
    ] as [(String, [UInt8]?, String, Bool)] {
      if let bytes { store.put(bytes, as: key, in: "sounds") } else { store.remove(key, in: "sounds") }
      let before = store.objects(in: "sounds")
      let report = try await bench.check()
      let path = code == "upload_damaged" ? "uploads/\(upload.id)" : key
      #expect(report.problems.map(\.code) == [code] && report.problems.map(\.path) == [path], "\(key) \(bytes ?? [])")
      #expect(report.notes == [] && store.objects(in: "sounds") == before)
      #expect(try await bench.check(isQuick: true).problems.map(\.code) == (quickly ? [code] : []), "\(key)")
      store.put(try #require(objects[key]), as: key, in: "sounds")
    }
    store.remove(try key(folder + "converted-"), in: "sounds")
    #expect(try await bench.check().notes.map(\.code) == ["conversion_missing"])
  }

  @Test("an object that only now can't be read is reported, and one whose row changes meanwhile is looked at again")
  func secondLook() async throws {
    let recording = try await bench.make()
    let audio = try #require(recording.audioKey)
    // 1 list, 2 identity, 3 look at the audio.
    store.fail(.none, .none, .refuses(404, code: "NoSuchKey"), .refuses(404, code: "NoSuchKey"))
    #expect(try await bench.check().problems == [], "the second look finds it")
    // A HEAD that is refused is followed by a GET, for the reason.
    let denied = S3Server.Fault.refuses(403, code: "AccessDenied")
    store.fail(.none, .none, denied, denied, .none, .none, .none, .none, .none, .none, .none, denied, denied)
    let problems = try await bench.check().problems
    #expect(problems.map(\.code) == ["audio_damaged"] && problems.map(\.path) == ["\(audio)"])
    #expect(problems.allSatisfy { $0.detail.contains("the key may not do this") }, "\(problems)")
  }

  @Test("objects that no row and no intent names are listed with their lengths, page by page, and stay")
  func strays() async throws {
    let recording = try await bench.make()
    try await bench.blocking {
      _ = try bench.node.upload([1], isAcknowledged: false)
      try bench.cluster.catalog.announce([UploadObject(of: UploadID(), start: 0, bytes: 9)])
    }
    let strays = [
      "letter.txt", "recordings/letter.txt", "recordings/\(recording.id)/audio.wav", "recordings/x/audio.wav",
      "uploads/\(UploadID())/0-x", "uploads/\(recording.id)", "other/a b+c&d",
    ].sorted()
    for key in strays { store.put([1, 2, 3, 4], as: key, in: "sounds") }
    let before = store.objects(in: "sounds")
    for pageLength in [1, 3, 1000] {
      let report = try await bench.check(pageLength: pageLength)
      #expect(report.problems == [] && report.notes.dropLast().map(\.code) == strays.map { _ in "stray_object" })
      #expect(report.notes.dropLast().map(\.path) == strays)
      #expect(report.notes.first?.detail.contains("4 bytes") == true)
      #expect(report.notes.last?.code == "stray_objects")
      #expect(report.notes.last?.detail.contains("7 objects with 28 bytes") == true)
    }
    #expect(store.objects(in: "sounds") == before)
  }

  @Test("recordings without a row are a problem for each of them, however the pages divide them")
  func lostRows() async throws {
    let empty = bench.cluster.folder.path + "/empty.sqlite"
    try bench.copyCatalog(to: empty)
    let recordings = [try await bench.make(), try await bench.make()]
    let restored = try bench.cluster.catalog(restoredFrom: empty)
    for pageLength in [2, 3, 1000] {
      let report = try await bench.check(restored, pageLength: pageLength)
      #expect(report.problems.map(\.code) == ["row_missing", "row_missing"] && report.notes == [])
      #expect(report.problems.map(\.path) == recordings.map { "recordings/\($0.id)" }.sorted())
      // Audio with its map, waveform, working copy, conversion, description, and the description before.
      #expect(report.problems.allSatisfy { $0.detail.contains("7 objects") }, "\(report.problems)")
    }
  }

  @Test("an object that was removed, or named, after the listing isn't reported")
  func lateListing() async throws {
    let id = RecordingID()
    let late = ["recordings/\(id)/audio.wav", "uploads/\(UploadID())/0-x"]
    let entries = late.map { "<Contents><Key>\($0)</Key><Size>5</Size></Contents>" }.joined()
    let page = "<ListBucketResult><IsTruncated>false</IsTruncated>\(entries)</ListBucketResult>"
    // 1 list, 2 identity, 3 the listing.
    store.fail(.none, .none, .answers(Array(page.utf8)))
    let report = try await bench.check()
    #expect(report.problems == [] && report.notes == [])
  }

  @Test("nothing is found while nodes take in, work and delete")
  func meanwhile() async throws {
    let isDone = Flag()
    let catalog = bench.cluster.catalog
    async let work: Void = bench.blocking {
      var recordings: [Recording] = []
      while !isDone.isSet {
        recordings.append(try bench.makeNow())
        let upload = try bench.beginUpload(of: 20)
        if recordings.count > 3 {
          let old = recordings.removeFirst().id
          _ = try catalog.deleteRecording(old)
          try bench.node.blobs.remove(old)
        }
        _ = try catalog.update(recordings[0].id) { $0.name += "!" }
        _ = try catalog.deleteUpload(upload.id)
        bench.spool.removePart(of: upload.id)
      }
    }
    for _ in 0..<8 {
      let report = try await bench.check(pageLength: 4)
      #expect(report.problems == [] && report.notes == [])
    }
    isDone.set()
    try await work
  }

  @Test("a bucket that the catalog doesn't describe is refused, and neither is bound to the other")
  func otherBuckets() async throws {
    _ = try await bench.make()
    let (store, identity) = (store, try #require(store.objects(in: "sounds")[BucketIdentity.key]))
    let other = StorageError.otherMedia(path: "s3://sounds/")
    for content in [MediaID().content, nil, [1, 2]] {
      if let content {
        store.put(content, as: BucketIdentity.key, in: "sounds")
      } else {
        store.remove(BucketIdentity.key, in: "sounds")
      }
      await #expect(throws: other) { try await bench.check() }
    }
    store.put(identity, as: BucketIdentity.key, in: "sounds")
    let new = try bench.cluster.catalog(restoredFrom: bench.cluster.folder.path + "/new.sqlite")
    let unbound = TestBinding()
    await #expect(throws: other) { try await bench.check(new, boundBy: unbound) }
    store.empty("sounds")
    #expect(try await bench.check(new, boundBy: unbound) == DataCheck.Report(), "both are new")
    #expect(store.objects(in: "sounds").isEmpty)
    store.put(identity, as: BucketIdentity.key, in: "sounds")
    await #expect(throws: other, "another catalog's, although it is empty") {
      try await bench.check(new, boundBy: unbound)
    }
    #expect(unbound.boundMedia().id == nil)
  }

  @Test("a bucket that is replaced while it is checked has no findings")
  func replacedMeanwhile() async throws {
    _ = try await bench.make()
    // 1 list, 2 identity, 3 look at the audio.
    store.fail(.none, .none, .refuses(404, code: "NoSuchKey"), .refuses(404, code: "NoSuchKey"))
    store.fail(.replaces(MediaID().content))
    await #expect(throws: StorageError.otherMedia(path: "s3://sounds/")) { try await bench.check() }
  }

  @Test("a store that fails, hangs or refuses the key ends the check with its error")
  func failures() async throws {
    _ = try await bench.make()
    for count in [0, 2, 5] {
      for _ in 0..<count { store.fail(.none) }
      store.fail(.refuses(503, code: "SlowDown"))
      let failure = await #expect(throws: StorageError.self) { try await bench.check() }
      #expect(failure?.isTransient == true, "\(String(describing: failure))")
      store.heal()
    }
    let impatient = try TestStore.client(of: store) { ($0.attempts, $0.requestSeconds) = (1, 0.3) }
    for count in [0, 3] {
      for _ in 0..<count { store.fail(.none) }
      store.fail(.hangs)
      await #expect(throws: StorageError(S3Error.timedOut)) { try await bench.check(by: impatient) }
      store.heal()
    }
    let stranger = try TestStore.client(of: store, credentials: try TestStore.source("wrong"))
    await #expect(throws: StorageError(S3Error.badCredentials(code: "SignatureDoesNotMatch"))) {
      try await bench.check(by: stranger)
    }
    store.fail(.none, .none)
    for _ in 0..<3 { store.fail(.refuses(403, code: "InvalidAccessKeyId")) }
    await #expect(throws: StorageError.self, "a key that is revoked meanwhile isn't damage") {
      try await bench.check()
    }
  }

  @Test("a sound that breaks off is continued where it broke, and its digest is that of the whole")
  func brokenTransfer() async throws {
    let recording = try await bench.make(TestStore.bytes(300_000))
    let patient = try TestStore.client(of: store)
    store.fail(.none, .none, .none, .cuts(afterBytes: 100_000))
    #expect(try await bench.check(by: patient).problems == [])
    let audio = "/sounds/\(try #require(recording.audioKey))"
    #expect(store.received.filter { $0.path == audio && $0.method == "GET" }.map(\.range) == [nil, "bytes=100000-"])
  }
}

/// A bucket with what nodes make, to be checked.
struct CheckedBench: Sendable {
  let cluster: BlobsCluster
  let node: BlobsNode
  let spool: S3Spool

  init() throws {
    cluster = try BlobsCluster { $0.attempts = 1 }
    node = try cluster.node("a", isBound: true)
    spool = S3Spool(cluster.test.client, catalog: cluster.catalog, scratch: node.scratch, objectBytes: 10)
    cluster.catalog.keepDescriptions(in: node.blobs.descriptions) { Issue.record($1, "\($0)") }
  }

  func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await cluster.blocking(body)
  }

  /// Compares a catalog, by default the cluster's, with the bucket.
  func check(
    _ catalog: Catalog? = nil, boundBy binding: TestBinding? = nil, by client: S3Client? = nil, isQuick: Bool = false,
    pageLength: Int = 1000
  ) async throws -> DataCheck.Report {
    let (catalog, client) = (catalog ?? cluster.catalog, client ?? cluster.test.client)
    let binding = binding ?? cluster.binding
    return try await blocking { [folder = cluster.folder.path] in
      let bucket = try CheckedStore(
        client, of: catalog, boundBy: binding, temporary: folder + "/stillwave-check", pageLength: pageLength)
      let check = DataCheck(readsAudio: !isQuick, batch: 2) { path in
        FileManager.default.contents(atPath: path).map(Array.init) == [7, 7, 7] ? nil : "it isn't three sevens"
      }
      let report = try check.run(bucket, of: catalog)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder).allSatisfy { !$0.hasPrefix("stillwave") })
      return report
    }
  }

  /// Copies the catalog as it is now, as a backup does.
  func copyCatalog(to path: String) throws {
    try cluster.catalog.checkpoint()
    try FileManager.default.copyItem(atPath: cluster.folder.path + "/catalog.sqlite", toPath: path)
  }

  /// Takes in a recording, and makes its waveform, a working copy and a conversion.
  func make(_ bytes: [UInt8] = [1, 2, 3]) async throws -> Recording { try await blocking { try makeNow(bytes) } }

  /// The same. Blocks.
  func makeNow(_ bytes: [UInt8] = [1, 2, 3]) throws -> Recording {
    let recording = try node.upload(bytes)
    try finishWaveform(of: recording)
    let convert = Job(kind: .convert, recording: recording.id, parameters: #"{"format":"mp3"}"#)
    _ = try cluster.catalog.sharedJob(orElse: convert)
    let token = try #require(try cluster.catalog.claim(convert.id).written?.token)
    let stored = try node.put([5, 5, 5, 5, 5], as: ObjectKey(recording.id, "converted-\(token.name).mp3"))
    let conversion = Conversion(
      recording: recording.id, format: "mp3", key: stored.key, bytes: stored.bytes, sha256: stored.sha256)
    _ = try cluster.catalog.keep(conversion, limit: 1000, finishing: token, with: "{}")
    return try #require(try cluster.catalog.recording(recording.id))
  }

  /// Makes the waveform and a working copy that a recording waits for. Blocks.
  func finishWaveform(of recording: Recording) throws {
    let job = try #require(recording.waveformJob)
    let token = try #require(try cluster.catalog.claim(job).written?.token)
    try finishWaveform(of: recording.id, by: token)
  }

  /// The same for an attempt that has begun.
  func finishWaveform(of id: RecordingID, by token: AttemptToken) throws {
    let waveform = try node.put([7, 7, 7], as: ObjectKey(id, "waveform-\(token.name).pyramid"))
    let working = try node.put([8, 8], as: ObjectKey(id, "working-\(token.name).wav"))
    _ = try cluster.catalog.finish(token, with: "{}") {
      ($0.waveformState, $0.waveformKey) = (.ready, waveform.key)
      $0.noteWorkingCopy(working)
    }
  }

  /// Begins an upload of 99 bytes and receives `count` of them, in objects of ten. Blocks.
  func beginUpload(of count: Int) throws -> Upload {
    let upload = Upload(length: 99, expiresAt: cluster.catalog.time + 86_400)
    try cluster.catalog.insert(upload, limits: UploadLimits(total: 99, perClient: 99))
    let taken = try cluster.catalog.takeOver(upload.id, at: 0)
    let bytes = try #require(try spool.begin(try cluster.catalog.segments(of: upload.id), at: 0))
    try bytes.append([UInt8](repeating: 9, count: count).span)
    let objects = try bytes.sync(to: Int64(count))
    try cluster.catalog.advance(
      upload.id, to: Int64(count), expiresAt: upload.expiresAt, by: taken.writer, adding: objects)
    return try #require(try cluster.catalog.upload(upload.id))
  }
}

/// Something that another thread waits for.
private final class Flag: Sendable {
  private let value = Atomic(false)

  var isSet: Bool { value.load(ordering: .sequentiallyConsistent) }

  func set() { value.store(true, ordering: .sequentiallyConsistent) }
}
