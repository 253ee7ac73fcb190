import Foundation
import HTTP
import Logging
import PresentRows
import Testing

@testable import AudioService
@testable import Jobs
@testable import Storage

/// What happens to an upload in pieces if clients, the service, or the disk fail halfway.
@Suite struct UploadSessionTests {
  private func rows(_ bench: TestBench, _ upload: String) throws -> Int64? {
    try bench.catalog.upload(try bench.tus.id(upload))?.offset
  }

  private func length(_ bench: TestBench, _ upload: String) throws -> Int {
    try Data(contentsOf: URL(fileURLWithPath: bench.store.directory + "/uploads/\(try bench.tus.id(upload)).part"))
      .count
  }

  @Test func bytesBeforeADisconnectAreKept() async throws {
    let bench = try TestBench()
    let upload = try await bench.tus.create(8)
    try await bench.context.uploads.using(try bench.tus.id(upload)) { session in
      let writer = try await session.begin(at: 0, checksum: nil)
      try await session.append(Array("RIF".utf8), from: writer)
      #expect(try await session.end(writer, isWhole: false).offset == 3)
    }
    #expect(try await bench.tus.head(upload).offset == 3)
    #expect(try rows(bench, upload) == 3)
  }

  @Test func bytesUnderAChecksumBeforeADisconnectAreNot() async throws {
    let bench = try TestBench()
    let upload = try await bench.tus.create(8)
    _ = try await bench.tus.patch(upload, at: 0, "RI")
    try await bench.context.uploads.using(try bench.tus.id(upload)) { session in
      let writer = try await session.begin(
        at: 2, checksum: UploadChecksum(algorithm: .sha1, bytes: [UInt8](repeating: 0, count: 20)))
      try await session.append(Array("FF".utf8), from: writer)
      #expect(try await session.status().offset == 2)
      #expect(try await session.end(writer, isWhole: false).offset == 2)
    }
    #expect(try length(bench, upload) == 2)
  }

  @Test func aNewerRequestAtTheOffsetTakesOver() async throws {
    let bench = try TestBench()
    let upload = try await bench.tus.create(8)
    try await bench.context.uploads.using(try bench.tus.id(upload)) { session in
      let hanging = try await session.begin(at: 0, checksum: nil)
      try await session.append(Array("RIF".utf8), from: hanging)
      // A request with another offset than the upload's doesn't affect it.
      #expect(try await bench.tus.patch(upload, at: 1, "IFFabcd").status == 409)
      try await session.append(Array("F".utf8), from: hanging)
      #expect(try await bench.tus.head(upload).offset == 4)
      #expect(try await bench.tus.patch(upload, at: 4, "ab").offset == 6)
      let error = await #expect(throws: ServiceError.self) { try await hanging.outcome.value() }
      let answer = problem(for: try #require(error))
      #expect(answer.status == .locked && answer.fields["Retry-After"] != nil)
      await #expect(throws: ServiceError.self) { try await session.append(Array("late".utf8), from: hanging) }
      await #expect(throws: ServiceError.self) { try await session.end(hanging, isWhole: true) }
    }
    #expect(try await bench.tus.patch(upload, at: 6, "cd").recording != nil)
    let made = try #require(try bench.catalog.recordings(limit: 2).first)
    let path = bench.store.folder(of: made.id) + "/audio.wav"
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "RIFFabcd")
    await bench.runner.stop()
  }

  /// Another request may have moved the offset since the caller looked.
  @Test func writingBeginsOnlyAtTheOffset() async throws {
    let bench = try TestBench()
    let upload = try await bench.tus.create(8)
    _ = try await bench.tus.patch(upload, at: 0, "RI")
    try await bench.context.uploads.using(try bench.tus.id(upload)) { session in
      for offset in [Int64(0), 1, 3, 8] {
        await #expect(throws: ServiceError.self) { try await session.begin(at: offset, checksum: nil) }
      }
      let writer = try await session.begin(at: 2, checksum: nil)
      try await session.append(Array("FF".utf8), from: writer)
      #expect(try await session.end(writer, isWhole: true).offset == 4)
    }
  }

  @Test func anUploadThatIsBeingWrittenGivesWayToNoOther() async throws {
    let bench = try TestBench()
    let upload = try await bench.tus.create(8)
    try await bench.context.uploads.using(try bench.tus.id(upload)) { session in
      let writer = try await session.begin(at: 0, checksum: nil)
      #expect(try await !session.removeIfEmpty())
      try await session.append(Array("RI".utf8), from: writer)
      #expect(try await session.end(writer, isWhole: false).offset == 2)
    }
    let empty = try await bench.tus.create(8)
    #expect(try await bench.context.uploads.using(try bench.tus.id(empty)) { try await $0.removeIfEmpty() })
  }

  @Test func anOffsetIsNotReportedUntilItsBytesAreOnTheDisk() async throws {
    let folder = try TemporaryFolder()
    let upload = try await TestBench(in: folder).tus.create(8)
    let bench = try TestBench(in: folder)
    let part = bench.store.directory + "/uploads/\(try bench.tus.id(upload)).part"
    // A device can be written to, but fsync fails on it.
    try FileManager.default.removeItem(atPath: part)
    try FileManager.default.createSymbolicLink(atPath: part, withDestinationPath: "/dev/null")
    try await bench.context.uploads.using(try bench.tus.id(upload)) { session in
      let writer = try await session.begin(at: 0, checksum: nil)
      await #expect(throws: StorageError.io(operation: "fsync", path: part, errno: EINVAL)) {
        // Fails here already if more than the time between two checkpoints has passed.
        try await session.append(Array("RIFF".utf8), from: writer)
        _ = try await session.end(writer, isWhole: true)
      }
    }
    #expect(try rows(bench, upload) == 0)
  }

  @Test func bytesUnderAChecksumDoNotCountAfterATakeover() async throws {
    let bench = try TestBench()
    let upload = try await bench.tus.create(4)
    try await bench.context.uploads.using(try bench.tus.id(upload)) { session in
      let hanging = try await session.begin(
        at: 0, checksum: UploadChecksum(algorithm: .sha1, bytes: [UInt8](repeating: 0, count: 20)))
      try await session.append(Array("bad".utf8), from: hanging)
      let made = try #require(try await bench.tus.patch(upload, at: 0, "RIFF").recording)
      let path = bench.store.folder(of: made) + "/audio.wav"
      #expect(try String(contentsOfFile: path, encoding: .utf8) == "RIFF")
    }
    await bench.runner.stop()
  }

  // MARK: Crashes

  @Test func onlyReportedBytesSurviveACrash() async throws {
    let folder = try TemporaryFolder()
    let crashed = try TestBench(in: folder) {
      $0.uploadCheckpointBytes = 4
      // So that none is triggered by the clock, however slow the machine is.
      $0.uploadCheckpointSeconds = 3600
    }
    let upload = try await crashed.tus.create(12)
    try await crashed.context.uploads.using(try crashed.tus.id(upload)) { session in
      let writer = try await session.begin(at: 0, checksum: nil)
      try await session.append(Array("RI".utf8), from: writer)
      #expect(try rows(crashed, upload) == 0)
      try await session.append(Array("FF".utf8), from: writer)
      // Enough for a checkpoint.
      #expect(try rows(crashed, upload) == 4)
      try await session.append(Array("xy".utf8), from: writer)
      #expect(try await session.status().offset == 6)
      try await session.append(Array("z".utf8), from: writer)
      // Another service opens what's on the disk now.
      let next = try TestBench(in: folder)
      #expect(try length(next, upload) == 7)
      #expect(try await next.tus.head(upload).offset == 6)
      #expect(try length(next, upload) == 6)
      #expect(try await next.tus.patch(upload, at: 6, "abcdef").recording != nil)
      var hash = SHA256()
      hash.update(Array("RIFFxyabcdef".utf8).span)
      #expect(try next.catalog.recordings(limit: 2).map(\.sha256) == [hash.hexDigest()])
      await next.runner.stop()
    }
  }

  @Test func aPartShorterThanItsRowDeterminesTheOffset() async throws {
    let folder = try TemporaryFolder()
    let before = try TestBench(in: folder)
    let upload = try await before.tus.create(8)
    _ = try await before.tus.patch(upload, at: 0, "RIFF")
    let path = before.store.directory + "/uploads/\(try before.tus.id(upload)).part"
    #expect(unsafe truncate(path, 3) == 0)
    let after = try TestBench(in: folder)
    #expect(try await after.tus.head(upload).offset == 3)
    // Bytes received now count only once they're durable, so the row must not be ahead of them.
    #expect(try rows(after, upload) == 3)
    try FileManager.default.removeItem(atPath: path)
    let last = try TestBench(in: folder)
    #expect(try await last.tus.head(upload).status == 404)
    #expect(try last.catalog.unfinishedUploads().isEmpty)
  }

  @Test func theStartSettlesUploadsWhoseFilesAreShortOrGone() async throws {
    let folder = try TemporaryFolder()
    let before = try TestBench(in: folder)
    var uploads: [String] = []
    for _ in 0..<3 {
      let upload = try await before.tus.create(8)
      _ = try await before.tus.patch(upload, at: 0, "RIFF")
      uploads.append(upload)
    }
    let parts = before.store.directory + "/uploads/"
    #expect(unsafe truncate(parts + "\(try before.tus.id(uploads[1])).part", 3) == 0)
    try FileManager.default.removeItem(atPath: parts + "\(try before.tus.id(uploads[2])).part")
    // A file without a row is removed, too.
    try Data("RIFF".utf8).write(to: URL(fileURLWithPath: parts + "\(UploadID()).part"))

    var configuration = before.configuration
    configuration.port = 0
    let service = try Service(configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    #expect(try before.catalog.unfinishedUploads().count == 2)
    #expect(try uploads.map { try rows(before, $0) } == [4, 3, nil])
    #expect(try before.parts().count == 2)
    let after = try TestBench(in: folder)
    #expect(try await after.tus.head(uploads[0]).offset == 4)
    #expect(try await after.tus.head(uploads[1]).offset == 3)
    #expect(try await after.tus.patch(uploads[1], at: 4, "abcd").status == 409)
    #expect(try await after.tus.patch(uploads[1], at: 3, "abcde").recording != nil)
    #expect(try await after.tus.head(uploads[2]).status == 404)
    #expect(try await after.tus.patch(uploads[2], at: 4, "abcd").status == 404)
    await after.runner.stop()
    await service.stop()
  }

  /// All probes of one request fail, also that of a known sound. As after a crash, all bytes are there but no
  /// recording.
  @Test(arguments: ["HEAD", "PATCH"])
  func aCompleteUploadBecomesOneRecordingOnRequest(_ method: String) async throws {
    let folder = try TemporaryFolder()
    let script = "[ -e $folder/again ] || exit 7; finish"
    let first = try TestBench(script: script, in: folder)
    let upload = try await first.tus.create(4)
    let failed = try await first.tus.patch(upload, at: 0, "RIFF")
    #expect(failed.status == 503 && failed.fields["Retry-After"] != nil)
    #expect(try first.catalog.recordings(limit: 1).isEmpty)
    try Data().write(to: URL(fileURLWithPath: folder.path + "/again"))
    let next = try TestBench(script: script, in: folder)
    let answer = method == "HEAD" ? try await next.tus.head(upload) : try await next.tus.patch(upload, at: 4, "")
    let made = try #require(answer.recording)
    #expect(answer.offset == 4)
    #expect(try await next.tus.patch(upload, at: 4, "").recording == made)
    #expect(try await next.tus.patch(upload, at: 0, "RIFF").status == 409)
    #expect(try next.catalog.recordings(limit: 9).map(\.id) == [made])
    await next.runner.stop()
  }

  @Test func simultaneousFinalRequestsGetTheSameRecording() async throws {
    let script = TestBench.heldProbe
    let bench = try TestBench(script: script)
    try bench.holdProbe()
    let upload = try await bench.tus.create(4)
    let made = try await withThrowingTaskGroup(of: RecordingID?.self) { group in
      group.addTask { try await bench.tus.patch(upload, at: 0, "RIFF").recording }
      try await bench.eventually { try rows(bench, upload) == 4 }
      for number in 0..<8 {
        group.addTask {
          try await (number % 2 == 0 ? bench.tus.head(upload) : bench.tus.patch(upload, at: 4, "")).recording
        }
      }
      try await bench.eventually { bench.isProbing }
      try await bench.releaseProbe()
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(made.count == 9 && Set(made).count == 1 && made[0] != nil)
    #expect(try bench.catalog.recordings(limit: 9).count == 1)
    await bench.runner.stop()
  }

  // MARK: Time

  @Test func anUploadExpires() async throws {
    let bench = try TestBench { $0.uploadExpirySeconds = 100_000 }
    let (upload, finished) = (try await bench.tus.create(8), try await bench.tus.create(4))
    _ = try await bench.tus.patch(upload, at: 0, "R")
    _ = try await bench.tus.patch(finished, at: 0, "RIFF")
    let now = Timestamp.now.milliseconds
    await bench.context.uploads.removeExpired(now: Timestamp(milliseconds: now + 50_000_000))
    #expect(try await bench.tus.head(upload).status == 200)
    await bench.context.uploads.removeExpired(now: Timestamp(milliseconds: now + 150_000_000))
    #expect(try await bench.tus.head(upload).status == 404)
    #expect(try await bench.tus.head(finished).status == 404)
    #expect(try bench.parts() == [] && bench.catalog.recordings(limit: 9).count == 1)
    await bench.runner.stop()
  }

  @Test func anExpiredUploadThatCannotBeRemovedDoesNotKeepTheOthers() async throws {
    let bench = try TestBench { $0.uploadExpirySeconds = 100_000 }
    for _ in 0..<3 { _ = try await bench.context.uploads.create(length: 8, metadata: nil, for: .unknown) }
    // The part can't be opened.
    let damaged = try #require(bench.parts().sorted().first)
    let path = bench.store.directory + "/uploads/" + damaged
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(atPath: path + "/in", withIntermediateDirectories: true)
    let later = Timestamp(milliseconds: Timestamp.now.milliseconds + 150_000_000)
    await bench.context.uploads.removeExpired(now: later)
    #expect(try bench.parts().filter { $0 != damaged } == [])
    #expect(try bench.catalog.unfinishedUploads().count == 1, "the damaged one caused a failure")
  }

  @Test func anExpiredUploadIsGoneEvenBeforeItIsRemoved() async throws {
    let bench = try TestBench { $0.uploadExpirySeconds = -1 }
    let id = try await bench.context.uploads.create(length: 4, metadata: nil, for: .unknown)
    for answer in [
      try await bench.tus.head("/v1/uploads/\(id)"), try await bench.tus.patch("/v1/uploads/\(id)", at: 0, "RIFF"),
    ] { #expect(answer.status == 410 && answer.says("upload_expired")) }
    await bench.context.uploads.removeExpired()
    try bench.expectNothingLeft()
  }

  @Test func anUploadInUseIsNotRemoved() async throws {
    let bench = try TestBench { $0.uploadExpirySeconds = 100_000 }
    let upload = try await bench.tus.create(8)
    let later = Timestamp(milliseconds: Timestamp.now.milliseconds + 150_000_000)
    try await bench.context.uploads.using(try bench.tus.id(upload)) { session in
      _ = try await session.status()
      await bench.context.uploads.removeExpired(now: later)
    }
    #expect(try await bench.tus.head(upload).status == 200)
  }

  @Test func moreUploadsThanStayOpenStillWork() async throws {
    let bench = try TestBench { $0.maximumOpenUploadsPerClient = 100 }
    var uploads: [String] = []
    for _ in 0..<70 { uploads.append(try await bench.tus.create(3)) }
    for (offset, piece) in ["a", "b"].enumerated() {
      for upload in uploads { #expect(try await bench.tus.patch(upload, at: offset, piece).offset == offset + 1) }
    }
    // A session's last work on its queue may end shortly after the answer.
    try await bench.eventually {
      let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter { number in
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)"))?
          .hasPrefix(bench.store.directory + "/uploads/") ?? false
      }
      return (1...64).contains(open.count)
    }
  }
}
