import HTTP
import Storage
import Testing

@testable import AudioService

/// Uploads of unknown length, and uploads that are joined from others.
@Suite struct JoinedUploadTests {
  private func part(_ tus: TusClient, _ bytes: String) async throws -> String {
    let part = try await tus.create(bytes.utf8.count, ["Upload-Concat": "partial"])
    let answer = try await tus.patch(part, at: 0, bytes)
    #expect(answer.status == 204 && answer.offset == bytes.utf8.count && answer.recording == nil)
    let head = try await tus.head(part)
    #expect(head.fields["Upload-Concat"] == "partial" && head.recording == nil)
    return part
  }

  private func content(_ id: RecordingID, _ bench: TestBench) async throws -> String {
    try await bench.check(.get, "/v1/recordings/\(id)/audio", 200)
  }

  @Test("parts that were sent in any order are joined in the order of their addresses")
  func joined() async throws {
    let bench = try TestBench()
    let tus = bench.tus
    let last = try await part(tus, "end")
    let first = try await part(tus, "RIFF")
    let field = "final;https://example.org/base\(first) \(last)"
    let answer = try await tus.send(
      .post, "/v1/uploads", ["Upload-Concat": field, "Upload-Metadata": "filename dGFsay53YXY="])
    try #require(answer.status == 201, "\(answer.text)")
    let made = try #require(answer.recording)
    #expect(answer.offset == 7)
    #expect(try await content(made, bench) == "RIFFend")
    #expect(try bench.catalog.recording(made)?.name == "talk.wav")
    let upload = try #require(answer.fields["Location"])
    let head = try await tus.head(upload)
    #expect(head.fields["Upload-Concat"] == field && head.fields["Upload-Length"] == "7" && head.recording == made)
    let more = try await tus.patch(upload, at: 7, "")
    #expect(more.status == 403 && more.says("joined_upload"))
    for part in [first, last] { #expect(try await tus.head(part).status == 404) }
    #expect(try bench.parts() == [])
    await bench.runner.stop()
  }

  @Test("only complete parts are joined, each once, and what fails leaves them")
  func refused() async throws {
    let bench = try TestBench { $0.maximumUploadBytes = 8 }
    let tus = bench.tus
    let (whole, other) = (try await part(tus, "RIFF"), try await part(tus, "abcde"))
    let unfinished = try await tus.create(4, ["Upload-Concat": "partial"])
    let plain = try await tus.create(4)
    for (field, status) in [
      ("\(whole) \(unfinished)", 400), ("\(whole) \(plain)", 400), ("\(whole) \(whole)", 400),
      ("\(whole) /v1/uploads/\(UploadID())", 404), ("\(whole) \(other)", 413),
    ] {
      let answer = try await tus.send(.post, "/v1/uploads", ["Upload-Concat": "final;\(field)"])
      #expect(answer.status == status, "\(field): \(answer.text)")
    }
    let withLength = try await tus.send(
      .post, "/v1/uploads", ["Upload-Concat": "final;\(whole)", "Upload-Length": "4"])
    #expect(withLength.status == 400 && withLength.text.contains("Upload-Length"))
    #expect(try await tus.head(whole).offset == 4)
    #expect(try bench.catalog.recordings(limit: 1).isEmpty)
  }

  @Test(
    "the length of an upload can be given later, once, with its last bytes or after them", arguments: [true, false])
  func deferred(withBytes: Bool) async throws {
    let bench = try TestBench { $0.maximumUploadBytes = 100 }
    let tus = bench.tus
    let created = try await tus.send(.post, "/v1/uploads", ["Upload-Defer-Length": "1"])
    let upload = try #require(created.fields["Location"])
    #expect(try await tus.patch(upload, at: 0, "RIFF").offset == 4)
    let head = try await tus.head(upload)
    #expect(head.offset == 4 && head.fields["Upload-Defer-Length"] == "1" && head.fields["Upload-Length"] == nil)
    for (length, status) in [("3", 400), ("x", 400), ("101", 413)] {
      #expect(try await tus.patch(upload, at: 4, "", ["Upload-Length": length]).status == status)
    }
    let answer: TusClient.Answer
    if withBytes {
      answer = try await tus.patch(upload, at: 4, "end", ["Upload-Length": "7"])
    } else {
      #expect(try await tus.patch(upload, at: 4, "en", ["Upload-Length": "7"]).recording == nil)
      #expect(try await tus.patch(upload, at: 6, "d", ["Upload-Length": "8"]).status == 400)
      #expect(try await tus.patch(upload, at: 6, "de").status == 413)
      #expect(try await tus.head(upload).fields["Upload-Length"] == "7")
      answer = try await tus.patch(upload, at: 6, "d", ["Upload-Length": "7"])
    }
    #expect(try await content(#require(answer.recording), bench) == "RIFFend")
    await bench.runner.stop()
  }

  @Test("an upload of unknown length that has all bytes ends with an empty request")
  func empty() async throws {
    let bench = try TestBench()
    let created = try await bench.tus.send(
      .post, "/v1/uploads", ["Upload-Defer-Length": "1", "Content-Type": Tus.contentType], body: "RIFF")
    let upload = try #require(created.fields["Location"])
    let answer = try await bench.tus.patch(upload, at: 4, "", ["Upload-Length": "4"])
    #expect(answer.status == 204 && answer.recording != nil, "\(answer.text)")
    await bench.runner.stop()
  }
}
