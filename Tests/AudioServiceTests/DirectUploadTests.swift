import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService
@testable import Jobs

@Suite struct DirectUploadTests {
  private func upload(
    _ bench: TestBench, _ target: String = "/v1/recordings", fields: HTTPFields = [:], body: String = "RIFF"
  ) async throws -> (status: Int, body: String) {
    let response = try await bench.respond(.post, target, fields: fields, body: body)
    return (response.status.code, String(decoding: try await response.body.collect(), as: UTF8.self))
  }

  private func form(_ parts: String) -> String { "--b\r\n\(parts)\r\n--b--\r\n" }

  private static let formType: HTTPFields = ["Content-Type": "multipart/form-data; boundary=b"]

  @Test func theNameInTheQueryPrecedesThePartsAndTheHeads() async throws {
    let bench = try TestBench()
    let part = form("Content-Disposition: form-data; name=\"file\"; filename=\"part.wav\"\r\n\r\nRIFF")
    #expect(try await upload(bench, fields: Self.formType, body: part).body.contains("\"name\":\"part.wav\""))
    let asked = try await upload(bench, "/v1/recordings?name=query.wav", fields: Self.formType, body: part)
    #expect(asked.body.contains("\"name\":\"query.wav\""))
    let head = try await upload(bench, fields: ["Content-Disposition": "attachment; filename=\"head.wav\""])
    #expect(head.body.contains("\"name\":\"head.wav\""))
    #expect(try await upload(bench).body.contains("\"name\":\"recording.wav\""))
    await bench.runner.stop()
  }

  @Test("a form may have other fields in any order", arguments: ["file", "files[]", "file[]"])
  func otherFields(name: String) async throws {
    let bench = try TestBench()
    let field = "Content-Disposition: form-data; name=\"csrf\"\r\n\r\nsecret"
    let file = "Content-Disposition: form-data; name=\"\(name)\"; filename=\"a %22b%22.wav\"\r\n\r\nRIFF"
    for parts in [[field, file], [file, field]] {
      let answer = try await upload(bench, fields: Self.formType, body: form(parts.joined(separator: "\r\n--b\r\n")))
      #expect(answer.status == 201 && answer.body.contains(#""name":"a \"b\".wav""#), "\(answer.body)")
      #expect(answer.body.contains("\"bytes\":4,"))
    }
    let named = try await upload(bench, "/v1/recordings?name=AC/DC%20-%20Live.wav")
    #expect(named.body.contains(#""name":"AC/DC - Live.wav""#), "\(named.body)")
    await bench.runner.stop()
  }

  @Test(
    "a form without exactly one file is rejected",
    arguments: [
      ("Content-Disposition: form-data; name=\"other\"\r\n\r\nRIFF", "invalid_multipart"),
      ("Content-Disposition: form-data; name=\"other\"; filename=\"a.wav\"\r\n\r\nRIFF", "invalid_multipart"),
      (
        "Content-Disposition: form-data; name=\"other\"\r\n\r\n" + String(repeating: "a", count: 65_537),
        "invalid_multipart"
      ),
      (
        "Content-Disposition: form-data; name=\"file\"\r\n\r\nRIFF\r\n--b\r\n"
          + "Content-Disposition: form-data; name=\"file\"\r\n\r\nRIFF", "invalid_multipart"
      ),
      ("nonsense\r\n\r\nRIFF", "malformed_multipart"), ("\r\nRIFF", "malformed_multipart"),
      ("Content-Disposition: form-data; name=\"file\"\r\n\r\n", "empty_body"),
    ])
  func badForm(parts: String, code: String) async throws {
    let bench = try TestBench()
    let answer = try await upload(bench, fields: Self.formType, body: form(parts))
    #expect(answer.status == 400 && answer.body.contains("\"code\":\"\(code)\""), "\(answer.body)")
    try bench.expectNothingLeft()
  }

  @Test func aTruncatedFormLeavesNothing() async throws {
    let bench = try TestBench()
    let body = "--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nRIFF"
    let answer = try await upload(bench, fields: Self.formType, body: body)
    #expect(answer.status == 400 && answer.body.contains("malformed_multipart"))
    try bench.expectNothingLeft()
  }

  @Test(
    "a file that the probe rejects gets the probe's reason and leaves nothing",
    arguments: [
      ("failure unsupported_media false", 415, "unsupported_media"),
      ("failure unsupported_format false", 422, "unsupported_format"),
      ("kill -SEGV $$", 415, "unsupported_media"), ("failure io_error true", 503, "unavailable"),
      ("exit 0", 503, "unavailable"), ("exit 7", 503, "unavailable"),
      // A worker that ends badly may have reported nonsense.
      ("finish; exit 7", 503, "unavailable"),
      ("kill -KILL $$", 503, "unavailable"), ("kill -XCPU $$", 422, "probe_too_slow"),
      ("failure memory_limit true", 415, "unsupported_media"),
      // The probe fails on every file, then only on this one.
      ("failure worker_failed true", 503, "unavailable"), ("failure decoder_failed true", 503, "unavailable"),
      ("[ $command = ffmpegCheck ] || failure worker_failed true; finish", 415, "unsupported_media"),
      ("[ $command = ffmpegCheck ] || failure decoder_failed true; finish", 415, "unsupported_media"),
      ("[ $command = ffmpegCheck ] || failure cpu_limit true; finish", 415, "unsupported_media"),
      ("[ $command = ffmpegCheck ] || kill -KILL $$; finish", 415, "unsupported_media"),
      ("[ $command = ffmpegCheck ] || exit 7; finish", 415, "unsupported_media"),
      // The disk fails, whatever the file is.
      ("[ $command = ffmpegCheck ] || failure io_error true; finish", 503, "unavailable"),
    ])
  func refused(script: String, status: Int, code: String) async throws {
    let bench = try TestBench(script: script)
    let answer = try await upload(bench)
    #expect(answer.status == status && answer.body.contains("\"code\":\"\(code)\""), "\(answer.body)")
    try bench.expectNothingLeft()
  }

  @Test(
    "a probe that was killed, crashed, or ran out of memory is retried once",
    arguments: ["kill -KILL $$", "kill -SEGV $$", "failure memory_limit true", "failure decoder_failed true", "exit 7"])
  func secondProbe(failure: String) async throws {
    let bench = try TestBench(
      script: "[ -e $folder/tried ] || { echo > $folder/tried; [ $command != probe ] || { \(failure); }; }; finish")
    #expect(try await upload(bench).status == 201)
  }

  @Test func anUploadThatIsEmptyOrTooLongLeavesNothing() async throws {
    let bench = try TestBench { $0.maximumUploadBytes = 3 }
    #expect(try await upload(bench, body: "").status == 400)
    #expect(try await upload(bench, body: "RIFF").status == 413)
    try bench.expectNothingLeft()
  }

  @Test func anUploadMayBeAsLongAsTheLimit() async throws {
    let bench = try TestBench { $0.maximumUploadBytes = 4 }
    #expect(try await upload(bench, body: "RIFF").status == 201)
    let upload = try await bench.tus.create(4)
    #expect(try await bench.tus.patch(upload, at: 0, "RIFF").recording != nil)
    await bench.runner.stop()
  }

  @Test func aFullQueueRejectsUploadsAndDenoiseRequests() async throws {
    let bench = try TestBench { $0.maximumQueuedJobs = 0 }
    let source = try bench.recording()
    let refused = try await bench.respond(.post, "/v1/recordings", body: "RIFF")
    #expect(refused.status.code == 429 && refused.fields["Retry-After"] != nil)
    #expect(String(decoding: try await refused.body.collect(), as: UTF8.self).contains("\"code\":\"queue_full\""))
    #expect(try await bench.respond(.post, "/v1/recordings/\(source.id)/denoise").status.code == 429)
  }
}
