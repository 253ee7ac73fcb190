import HTTP
import Testing

@testable import AudioService
@testable import Jobs

/// A request's header fields about its content and the content it accepts.
@Suite struct RequestContentTests {
  private func answer(
    _ bench: TestBench, _ method: HTTPMethod, _ target: String, fields: HTTPFields, body: String = ""
  ) async throws -> (response: HTTPResponse, text: String) {
    let response = try await bench.respond(method, target, fields: fields, body: body)
    return (response, String(decoding: try await response.body.collect(), as: UTF8.self))
  }

  private static func jsonTargets(_ id: String) -> [(HTTPMethod, String, String)] {
    let path = "/v1/recordings/\(id)"
    return [
      (.patch, path, "{\"name\":\"b.wav\"}"), (.post, path + "/denoise", "{}"),
      (.post, path + "/denoise/preview", "{\"window\":{\"start\":0,\"end\":1}}"),
    ]
  }

  @Test(arguments: [
    "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "application/xml", "json",
    "application/octet-stream", "text/plain; charset=\"application/json\"", "",
  ])
  func aBodyThatIsNotSentAsJSONIsRefusedForThat(_ type: String) async throws {
    let bench = try TestBench()
    for (method, target, body) in Self.jsonTargets(try bench.recording().id.text) {
      let (response, text) = try await answer(bench, method, target, fields: ["Content-Type": type], body: body)
      #expect(response.status == .unsupportedMediaType, "\(target) \(text)")
      #expect(text.contains("\"code\":\"unsupported_content_type\"") && text.contains("application/json"))
      #expect(text.contains("\"parameter\":\"Content-Type\""))
      #expect(response.fields["Accept"] == "application/json")
    }
    #expect(try bench.catalog.jobs(limit: 9).isEmpty)
  }

  @Test(arguments: ["gzip", "identity, br", "deflate, gzip", "x-unknown"])
  func anEncodedBodyIsRejected(_ coding: String) async throws {
    let bench = try TestBench()
    let fields: HTTPFields = ["Content-Encoding": coding, "Tus-Resumable": "1.0.0", "Upload-Length": "8"]
    let uploads: [(HTTPMethod, String, String)] = [
      (.post, "/v1/recordings", "RIFF"), (.post, "/v1/uploads", "RIFF"),
    ]
    for (method, target, body) in Self.jsonTargets(try bench.recording().id.text) + uploads {
      let (response, text) = try await answer(bench, method, target, fields: fields, body: body)
      #expect(response.status == .unsupportedMediaType, "\(target) \(text)")
      #expect(text.contains("\"code\":\"unsupported_content_encoding\"") && text.contains(coding))
      #expect(response.fields["Accept-Encoding"] == "identity")
    }
  }

  @Test(arguments: [
    nil, "application/json", "Application/JSON", "application/json; charset=utf-8", "application/merge-patch+json",
  ])
  func whatIsSentAsJSONOrAsNothingIsRead(_ type: String?) async throws {
    let bench = try TestBench()
    let path = "/v1/recordings/\(try bench.recording().id)"
    var fields: HTTPFields = ["Content-Encoding": "identity"]
    fields["Content-Type"] = type
    let (response, text) = try await answer(bench, .patch, path, fields: fields, body: "{\"name\":\"b.wav\"}")
    #expect(response.status == .ok && text.contains("b.wav"))
  }

  /// Some clients send a Content-Type with every POST.
  @Test func withoutABodyTheFieldsAreIgnored() async throws {
    let bench = try TestBench()
    let target = "/v1/recordings/\(try bench.recording().id)/denoise"
    let fields: HTTPFields = ["Content-Type": "text/plain", "Content-Encoding": "gzip"]
    #expect(try await answer(bench, .post, target, fields: fields).response.status == .accepted)
    await bench.runner.stop()
  }

  @Test(arguments: [
    ("application/vnd.bbc.audiowaveform;q=0.5, */*", "application/json"),
    ("application/vnd.bbc.audiowaveform", "application/vnd.bbc.audiowaveform"),
    ("application/json;q=0, */*;q=0.1", "application/vnd.bbc.audiowaveform"),
    ("text/html", "application/json"), ("*/*;q=0", nil), ("application/json;q=0", nil),
  ])
  func theFormOfAWaveformGoesByTheWeightsOfAccept(_ accept: String, _ type: String?) async throws {
    let bench = try TestBench()
    let recording = try bench.recording(state: .queued)
    try bench.makeWaveform(of: recording)
    let (response, text) = try await answer(
      bench, .get, "/v1/recordings/\(recording.id)/waveform?width=9", fields: ["Accept": accept])
    #expect(response.status == (type == nil ? .notAcceptable : .ok))
    #expect(response.fields["Content-Type"] == type ?? "application/problem+json")
    #expect(type != nil || text.contains("\"code\":\"not_acceptable\""))
    #expect(response.fields["Vary"]?.contains("Accept") == true)
  }
}
