import Foundation
import HTTP
import Testing

@testable import AudioService
@testable import Jobs
@testable import Storage

@Suite struct ResumableUploadTests {
  @Test func theLastPieceMakesTheRecording() async throws {
    let bench = try TestBench()
    let tus = bench.tus
    let metadata = "filename dGFsay53YXY=,filetype YXVkaW8vd2F2"
    let upload = try await tus.create(8, ["Upload-Metadata": metadata])
    #expect(try await tus.patch(upload, at: 0, "RIFF").offset == 4)
    let between = try await tus.head(upload)
    #expect(between.status == 200 && between.offset == 4 && between.fields["Upload-Length"] == "8")
    #expect(between.fields["Upload-Metadata"] == metadata && between.fields["Cache-Control"] == "no-store")
    #expect(between.recording == nil)
    let last = try await tus.patch(upload, at: 4, "abcd")
    #expect(last.status == 204 && last.offset == 8)
    let made = try #require(last.recording)
    let recording = try #require(try bench.catalog.recording(made))
    var hash = SHA256()
    hash.update(Array("RIFFabcd".utf8).span)
    #expect(recording.name == "talk.wav" && recording.bytes == 8 && recording.sha256 == hash.hexDigest())
    let path = bench.store.folder(of: recording.id) + "/audio.wav"
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "RIFFabcd")
    #expect(try bench.parts() == [])
    let after = try await tus.head(upload)
    #expect(after.offset == 8 && after.recording == recording.id)
    #expect(try await bench.finished(try #require(recording.waveformJob)).state == .succeeded)
  }

  @Test func optionsNeedsNoVersion() async throws {
    let bench = try TestBench { $0.maximumUploadBytes = 77 }
    let answer = try await bench.respond(.options, "/v1/uploads")
    #expect(answer.status == .noContent)
    for (name, value) in [
      ("Tus-Version", "1.0.0"), ("Tus-Max-Size", "77"), ("Tus-Checksum-Algorithm", "sha1,sha256"),
      ("Tus-Extension", Tus.extensions), ("Allow", "OPTIONS, POST"),
    ] {
      #expect(answer.fields[name] == value)
    }
  }

  @Test func anUnsupportedMethodIsAnsweredWithTheVersion() async throws {
    let bench = try TestBench()
    let upload = try await bench.tus.create(4)
    for (method, target) in [(HTTPMethod.get, upload), (.put, upload), (.get, "/v1/uploads"), (.get, upload + "/x")] {
      let status = try await bench.tus.send(method, target).status
      #expect(status == (target.hasSuffix("/x") ? 404 : 405), "\(method.rawValue) \(target)")
    }
  }

  @Test("another version, or none, is rejected before anything else", arguments: ["", "0.2.2", "1.0.0, 1.0.0"])
  func version(version: String) async throws {
    let bench = try TestBench()
    let upload = try await bench.tus.create(4)
    for (method, target) in [
      (HTTPMethod.post, "/v1/uploads"), (.head, upload), (.patch, upload), (.delete, upload), (.post, upload),
    ] {
      let fields: HTTPFields = ["Tus-Resumable": version, "Upload-Length": "4"]
      let answer = try await bench.tus.send(method, target, fields)
      #expect(answer.status == 412 && answer.says("unsupported_tus_version"))
      #expect(answer.fields["Tus-Version"] == "1.0.0")
    }
    #expect(try bench.parts().count == 1)
  }

  @Test(
    "an invalid creation request is rejected and leaves nothing",
    arguments: [
      ([:], 400, "invalid_header"), (["Upload-Length": "-1"], 400, "invalid_header"),
      (["Upload-Length": "0x10"], 400, "invalid_header"), (["Upload-Length": "+4"], 400, "invalid_header"),
      (["Upload-Length": "4.0"], 400, "invalid_header"), (["Upload-Length": ""], 400, "invalid_header"),
      (["Upload-Length": "0"], 400, "empty_body"), (["Upload-Length": "101"], 413, "content_too_large"),
      (["Upload-Length": "99999999999999999999999"], 413, "content_too_large"),
      (["Upload-Defer-Length": "2"], 400, "invalid_header"),
      (["Upload-Length": "4", "Upload-Defer-Length": "1"], 400, "invalid_header"),
      (["Upload-Length": "4", "Upload-Concat": "part"], 400, "invalid_header"),
      (["Upload-Concat": "final;"], 400, "invalid_header"),
      (["Upload-Concat": "final;/v1/uploads/a /v1/uploads/b"], 400, "invalid_header"),
      (["Upload-Length": "4", "Upload-Metadata": "filename YQ"], 400, "invalid_header"),
      (["Upload-Length": "4", "Upload-Metadata": "filename Y!=="], 400, "invalid_header"),
      (["Upload-Length": "4", "Upload-Metadata": "filename YQ== YQ=="], 400, "invalid_header"),
      (["Upload-Length": "4", "Upload-Metadata": "filename YQ==,filename YQ=="], 400, "invalid_header"),
      (["Upload-Length": "4", "Upload-Metadata": "filename YQ==,"], 400, "invalid_header"),
      (["Upload-Length": "4", "Upload-Metadata": "filename /w=="], 400, "invalid_header"),
      (["Upload-Length": "4", "X-HTTP-Method-Override": "PATCH"], 405, "method_not_allowed"),
    ] as [([String: String], Int, String)])
  func announcement(fields: [String: String], status: Int, code: String) async throws {
    let bench = try TestBench { $0.maximumUploadBytes = 100 }
    var all: HTTPFields = [:]
    for (name, value) in fields { all[name] = value }
    let answer = try await bench.tus.send(.post, "/v1/uploads", all)
    #expect(answer.status == status && answer.says(code), "\(answer.text)")
    #expect(status != 413 || answer.fields["Tus-Max-Size"] == "100")
    try bench.expectNothingLeft()
  }

  @Test(
    "metadata may be empty, without a value, and of any name", arguments: ["", " ", "is_confidential", "name w7ouZw=="])
  func metadata(text: String) async throws {
    let bench = try TestBench()
    let upload = try await bench.tus.create(4, ["Upload-Metadata": text])
    let made = try #require(try await bench.tus.patch(upload, at: 0, "RIFF").recording)
    #expect(try bench.catalog.recording(made)?.name == (text.hasPrefix("name") ? "ú.g" : "recording.wav"))
    await bench.runner.stop()
  }

  @Test(
    "bytes that don't fit are rejected and change nothing",
    arguments: [
      (["Upload-Offset": "1"], "FFa", 409, "upload_offset_mismatch"),
      (["Upload-Offset": "3"], "Fab", 409, "upload_offset_mismatch"),
      (["Upload-Offset": "-2"], "FF", 400, "invalid_header"), ([:], "FF", 400, "invalid_header"),
      (["Upload-Offset": "2", "Content-Type": "audio/wav"], "FF", 415, "unsupported_content_type"),
      (["Upload-Offset": "2"], "FFabcdefg", 413, "content_too_large"),
      (["Upload-Offset": "2", "Upload-Checksum": "crc32 AAAA"], "FF", 400, "invalid_header"),
      (["Upload-Offset": "2", "Upload-Checksum": "sha1 AAAA"], "FF", 400, "invalid_header"),
      (["Upload-Offset": "2", "Upload-Checksum": "sha1"], "FF", 400, "invalid_header"),
      (["Upload-Offset": "2", "Upload-Checksum": TusClient.checksum("XX")], "FF", 460, "checksum_mismatch"),
      (["Upload-Offset": "2", "Upload-Checksum": TusClient.checksum("FFabcd")], "FFabce", 460, "checksum_mismatch"),
    ] as [([String: String], String, Int, String)])
  func misfit(fields: [String: String], body: String, status: Int, code: String) async throws {
    let bench = try TestBench()
    let upload = try await bench.tus.create(8)
    _ = try await bench.tus.patch(upload, at: 0, "RI")
    var all: HTTPFields = fields["Content-Type"] == nil ? ["Content-Type": Tus.contentType] : [:]
    for (name, value) in fields { all[name] = value }
    let answer = try await bench.tus.send(.patch, upload, all, body: body)
    #expect(answer.status == status && answer.says(code), "\(answer.text)")
    #expect(try await bench.tus.head(upload).offset == 2)
    #expect(try await bench.tus.patch(upload, at: 2, "FFabcd").recording != nil)
    let made = try #require(try bench.catalog.recordings(limit: 2).first)
    #expect(made.bytes == 8)
    let path = bench.store.folder(of: made.id) + "/audio.wav"
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "RIFFabcd")
    await bench.runner.stop()
  }

  @Test(arguments: MessageDigest.Algorithm.allCases)
  func bytesThatMatchTheirDigestAreKept(_ algorithm: MessageDigest.Algorithm) async throws {
    let bench = try TestBench()
    let upload = try await bench.tus.create(8)
    for (offset, piece) in [(0, "RIFF"), (4, "abcd")] {
      let sum = TusClient.checksum(piece, algorithm)
      #expect(try await bench.tus.patch(upload, at: offset, piece, ["Upload-Checksum": sum]).offset == offset + 4)
    }
    #expect(try bench.catalog.recordings(limit: 2).map(\.bytes) == [8])
    await bench.runner.stop()
  }

  @Test func theFirstBytesMayComeWithTheCreation() async throws {
    let bench = try TestBench()
    let fields: HTTPFields = ["Upload-Length": "8", "Content-Type": Tus.contentType]
    let begun = try await bench.tus.send(.post, "/v1/uploads", fields, body: "RIFF")
    #expect(begun.status == 201 && begun.offset == 4)
    #expect(try await bench.tus.head(try #require(begun.fields["Location"])).offset == 4)
    let whole = try await bench.tus.send(.post, "/v1/uploads", fields, body: "RIFFabcd")
    #expect(whole.status == 201 && whole.offset == 8 && whole.recording != nil)
    await bench.runner.stop()
  }

  @Test(
    "a creation request whose bytes are rejected leaves nothing",
    arguments: [
      (["Content-Type": "audio/wav"], 415), (["Upload-Checksum": TusClient.checksum("XX")], 460),
      (["Upload-Length": "2"], 413),
    ])
  func refusedAtOnce(fields: [String: String], status: Int) async throws {
    let bench = try TestBench()
    var all: HTTPFields = ["Upload-Length": "8", "Content-Type": Tus.contentType]
    for (name, value) in fields { all[name] = value }
    #expect(try await bench.tus.send(.post, "/v1/uploads", all, body: "RIFF").status == status)
    try bench.expectNothingLeft()
  }

  @Test func aTerminatedUploadIsGone() async throws {
    let bench = try TestBench()
    let upload = try await bench.tus.create(8)
    _ = try await bench.tus.patch(upload, at: 0, "RIFF")
    #expect(try await bench.tus.send(.delete, upload).status == 204)
    for answer in [
      try await bench.tus.head(upload), try await bench.tus.patch(upload, at: 4, "abcd"),
      try await bench.tus.send(.delete, upload),
    ] { #expect(answer.status == 404) }
    try bench.expectNothingLeft()
  }

  @Test func aRecordingOutlivesItsUpload() async throws {
    let bench = try TestBench()
    let upload = try await bench.tus.create(4)
    let made = try #require(try await bench.tus.patch(upload, at: 0, "RIFF").recording)
    #expect(try await bench.tus.send(.delete, upload).status == 204)
    #expect(try await bench.tus.head(upload).status == 404)
    #expect(try bench.catalog.recording(made) != nil)
    await bench.runner.stop()
  }

  @Test func aPostMayReplaceOtherMethods() async throws {
    let bench = try TestBench()
    let upload = try await bench.tus.create(8)
    let fields: HTTPFields = [
      "X-HTTP-Method-Override": "PATCH", "Upload-Offset": "0", "Content-Type": Tus.contentType,
    ]
    #expect(try await bench.tus.send(.post, upload, fields, body: "RIFF").offset == 4)
    #expect(try await bench.tus.send(.post, upload, ["X-HTTP-Method-Override": "HEAD"]).offset == 4)
    let bare = try await bench.tus.send(.post, upload)
    #expect(bare.status == 405 && bare.fields["Allow"] == "DELETE, HEAD, OPTIONS, PATCH")
    // A safe method must not turn into another, because the guards go by the method.
    #expect(try await bench.tus.send(.head, upload, ["X-HTTP-Method-Override": "DELETE"]).status == 400)
    #expect(try await bench.tus.send(.post, upload, ["X-HTTP-Method-Override": "DELETE"]).status == 204)
    try bench.expectNothingLeft()
  }

  // MARK: Limits

  @Test func aLackOfRoomIsReportedAtTheCreation() async throws {
    let full = try TestBench { $0.reservedDiskBytes = .max }
    let refused = try await full.tus.send(.post, "/v1/uploads", ["Upload-Length": "4"])
    #expect(refused.status == 507 && refused.says("disk_full"))
    try full.expectNothingLeft()
    let busy = try TestBench { $0.maximumQueuedJobs = 0 }
    let late = try await busy.tus.send(.post, "/v1/uploads", ["Upload-Length": "4"])
    #expect(late.status == 429 && late.says("queue_full") && late.fields["Retry-After"] != nil)
    let many = try TestBench { $0.maximumOpenUploads = 1 }
    let first = try await many.tus.create(4)
    let second = try await many.tus.send(.post, "/v1/uploads", ["Upload-Length": "4"])
    #expect(second.status == 429 && second.says("too_many_uploads") && second.fields["Retry-After"] != nil)
    #expect(try many.parts().count == 1)
    _ = try await many.tus.patch(first, at: 0, "RIFF")
    _ = try await many.tus.create(4)
    await many.runner.stop()
  }

  @Test func aDiskThatFillsUpDuringAnUploadKeepsItsBytes() async throws {
    let folder = try TemporaryFolder()
    let before = try TestBench(in: folder)
    let upload = try await before.tus.create(8)
    _ = try await before.tus.patch(upload, at: 0, "RI")
    let full = try TestBench(in: folder) { $0.reservedDiskBytes = .max }
    let refused = try await full.tus.patch(upload, at: 2, "FF")
    #expect(refused.status == 507)
    #expect(try await full.tus.head(upload).offset == 2)
    // Noticed only after the body has begun.
    let onTheWay = try TestBench(in: folder) {
      $0.reservedDiskBytes = .max
      $0.uploadCheckpointBytes = 1
    }
    let id = try onTheWay.tus.id(upload)
    try await onTheWay.context.uploads.using(id) { session in
      let writer = try await session.begin(at: 2, checksum: nil)
      await #expect(throws: ServiceError.self) { try await session.append(Array("FF".utf8), from: writer) }
      #expect(try await session.end(writer, isWhole: false).offset == 4)
    }
  }
}
