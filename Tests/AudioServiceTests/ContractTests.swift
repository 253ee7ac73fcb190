import Contract
import Foundation
import HTTP
import PresentRows
import Storage
import Testing
import Waveform

@testable import AudioService
@testable import Jobs

/// Checks that openapi.yaml and the service agree.
@Suite struct ContractTests {
  private let document: OpenAPIDocument

  init() throws { document = try OpenAPIDocument.shared.get() }

  /// Answers a request and checks the answer against the contract.
  @discardableResult
  private func check(
    _ bench: TestBench, _ method: HTTPMethod, _ target: String, fields: HTTPFields = [:], body: String = "",
    _ status: Int, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> String {
    var fields = fields
    if target.hasPrefix("/v1/uploads") { fields["Tus-Resumable"] = "1.0.0" }
    let response = try await bench.respond(method, target, fields: fields, body: body)
    let bytes = try await response.body.collect()
    // On the wire, the server adds the request's id.
    var headers = ["X-Request-Id": "test"]
    for (name, value) in response.fields { headers[name] = value }
    let violations = try document.validate(
      method: method.rawValue, path: String(target.prefix { $0 != "?" }), status: response.status.code,
      contentType: response.fields["Content-Type"], headers: headers,
      // The server removes the content of an answer to HEAD.
      body: method == .head ? Data() : Data(bytes))
    #expect(violations == [], sourceLocation: sourceLocation)
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(response.status.code == status, "\(text)", sourceLocation: sourceLocation)
    return text
  }

  private func path(of operation: (method: String, path: String), _ id: String, _ track: String) -> String {
    operation.path.replacingOccurrences(of: "{id}", with: id).replacingOccurrences(of: "{track}", with: track)
  }

  @Test func theRoutesAreTheContractsOperationsInItsOrder() throws {
    let served = try routes(TestBench().context).map { "\($0.method.rawValue) \($0.pattern)" }
    #expect(served == document.operations.map { "\($0.method) \($0.path)" })
  }

  @Test func everyExampleAndDefaultFitsItsSchema() throws {
    #expect(try document.exampleViolations() == [])
  }

  @Test func everyNameInAPathIsAParameter() throws {
    for operation in document.operations {
      let named = operation.path.split(separator: "/").filter { $0.hasPrefix("{") }.map { $0.dropFirst().dropLast() }
      let described = try document.parameters(method: operation.method, path: operation.path)
      #expect(described.filter { $0.place == "path" && $0.isRequired }.map(\.name) == named.map(String.init))
    }
  }

  @Test func theEmbeddedContractIsTheFile() async throws {
    let bench = try TestBench()
    let text = try await check(bench, .get, "/openapi.yaml", 200)
    #expect(try OpenAPIDocument(yaml: text).operations.count == document.operations.count)
  }

  /// The code knows every described parameter: it may reject the value, but never the name.
  @Test func onlyDescribedQueryParametersAreKnown() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    let track = try bench.labelTrack(of: recording).id.text
    for operation in document.operations where operation.path != "/" {
      let path = path(of: operation, recording.id.text, track)
      let method = HTTPMethod(rawValue: operation.method)
      for parameter in try document.parameters(method: operation.method, path: operation.path)
      where parameter.place == "query" {
        let isVersion = parameter.name == "version"
        let fields: HTTPFields = isVersion ? ["Accept": "application/vnd.bbc.audiowaveform"] : [:]
        let answer = try await bench.respond(method, "\(path)?\(parameter.name)=%01", fields: fields)
        // The events of the list have no end.
        if answer.fields["Content-Type"] == "text/event-stream" { continue }
        let text = String(decoding: try await answer.body.collect(), as: UTF8.self)
        #expect(!text.contains("unknown_parameter"), "\(operation.method) \(operation.path) \(parameter.name)")
        let given = "\(parameter.name)=1"
        let twice = try await check(bench, method, "\(path)?\(given)&\(given)", fields: fields, 400)
        #expect(twice.contains("\"code\":\"duplicate_parameter\""))
      }
      let answer = try await check(bench, method, "\(path)?nonsense=1", 400)
      #expect(answer.contains("\"code\":\"unknown_parameter\"") && answer.contains("\"parameter\":\"nonsense\""))
    }
  }

  @Test func codeGeneratorsCanReadEveryBodyAndEveryHeader() {
    #expect(document.unreadableForGenerators() == [])
  }

  /// Generated clients send the document's defaults with every request.
  @Test func everyDefaultMayBeSentWithEveryOtherParameter() async throws {
    let bench = try TestBench()
    let recording = try bench.recording(state: .queued)
    try bench.makeWaveform(of: recording)
    let track = try bench.labelTrack(of: recording).id.text
    // These two have parameters without which they can't be asked.
    let wanting = ["/v1/recordings/{id}/spectrum", "/oembed"]
    for operation in document.operations where operation.method == "GET" && !wanting.contains(operation.path) {
      let path = path(of: operation, recording.id.text, track)
      let (defaults, others) = try document.queryDefaults(method: operation.method, path: operation.path)
      // Parameters that need a certain field are excluded.
      let rest = others.filter { operation.path.hasSuffix("/waveform") ? $0.name != "version" : true }
      for other in [nil] + rest.map(Optional.some) where !defaults.isEmpty || other != nil {
        let query = (defaults + [other].compactMap { $0 }).map { "\($0.name)=\($0.value)" }.joined(separator: "&")
        let answer = try await bench.respond(.get, "\(path)?\(query)")
        if answer.fields["Content-Type"] == "text/event-stream" { continue }
        let text = String(decoding: try await answer.body.collect(), as: UTF8.self)
        let isRefused = answer.status == .badRequest && !text.contains("too_many_pixels")
        #expect(!isRefused, "\(operation.path)?\(query): \(text.prefix(300))")
      }
    }
    let denoise = "/v1/recordings/\(recording.id)/denoise"
    let defaults = document.memberDefaults(ofSchema: "DenoiseRequest").dropLast()
    for other in ["", ",\"strength\":\"gentle\"", ",\"reduction\":12", ",\"name\":\"a\""] {
      try await check(bench, .post, denoise, body: "\(defaults)\(other)}", 202)
    }
    await bench.runner.stop()
  }

  @Test func whatIsUnknownIsNotFound() async throws {
    let bench = try TestBench()
    for operation in document.operations where operation.path.contains("{id}") {
      let method = HTTPMethod(rawValue: operation.method)
      for id in [RecordingID().text, "nonsense", "..%2F..%2Fcatalog.sqlite"] {
        let path = path(of: operation, id, LabelTrackID().text)
        try await check(bench, method, path, body: method == .patch ? "{\"name\":\"a\"}" : "", 404)
      }
    }
  }

  @Test func theLifeOfARecordingIsAsDescribed() async throws {
    let bench = try TestBench()
    let body = try await check(bench, .post, "/v1/recordings?name=a.wav", body: "RIFF", 201)
    #expect(body.contains("\"name\":\"a.wav\""))
    let recording = try #require(try bench.catalog.recordings(limit: 1).first)
    let job = try #require(recording.waveformJob)
    try await check(bench, .get, "/v1/jobs/\(job)?wait=1", 200)
    _ = try await bench.finished(job)
    for target in ["/v1/jobs/\(job)", "/v1/jobs", "/v1/recordings", "/v1/recordings?q=A&limit=1"] {
      try await check(bench, .get, target, 200)
    }
    let path = "/v1/recordings/\(recording.id)"
    try await check(bench, .get, path, 200)
    try await check(bench, .patch, path, body: "{\"name\":\"b.wav\"}", 200)
    try await check(bench, .get, path + "/audio?download=1", 200)
    try await check(bench, .get, path + "/audio", fields: ["Range": "bytes=1-2"], 206)
    try await check(bench, .get, path + "/audio", fields: ["Range": "bytes=0-0,2-2"], 206)
    try await check(bench, .get, path + "/audio", fields: ["Range": "bytes=9-"], 416)
    try await check(bench, .get, path + "/audio", fields: ["If-None-Match": "*"], 304)
    try await check(bench, .post, path + "/denoise", body: "{\"strength\":\"gentle\"}", 202)
    try await check(bench, .get, "/v1/recordings", 200)
    try await check(bench, .delete, path, 204)
    try await check(bench, .get, path, 404)
  }

  @Test func theLifeOfAnUploadIsAsDescribed() async throws {
    let bench = try TestBench()
    try await check(bench, .options, "/v1/uploads", 204)
    try await check(bench, .post, "/v1/uploads", 400)
    try await check(bench, .post, "/v1/uploads", fields: ["Upload-Length": "\(Int64.max)"], 413)
    for method in [HTTPMethod.patch, .post] {
      let upload =
        "/v1/uploads/\(try await bench.context.uploads.create(length: 8, metadata: "filename YQ==", for: .unknown))"
      func send(_ fields: [String: String], _ body: String, _ status: Int) async throws {
        var all: HTTPFields = ["Content-Type": "application/offset+octet-stream"]
        if method == .post { all["X-HTTP-Method-Override"] = "PATCH" }
        for (name, value) in fields { all[name] = value }
        try await check(bench, method, upload, fields: all, body: body, status)
      }
      try await send(["Upload-Offset": "0"], "RIFF", 204)
      try await check(bench, .head, upload, 200)
      try await send(["Upload-Offset": "0"], "RIFF", 409)
      try await send(["Upload-Offset": "4"], "abcdef", 413)
      try await send(["Upload-Offset": "4", "Content-Type": "text/plain"], "abcd", 415)
      try await send(["Upload-Offset": "4", "Upload-Checksum": TusClient.checksum("x")], "abcd", 460)
      try await send(["Upload-Offset": "4"], "abcd", 204)
      try await check(bench, .head, upload, 200)
      if method == .post {
        try await check(bench, .post, upload, fields: ["X-HTTP-Method-Override": "HEAD"], 200)
        try await check(bench, .post, upload, 405)
      }
      try await check(bench, .delete, upload, 204)
      try await check(bench, .head, upload, 404)
    }
    let expired = try TestBench { $0.uploadExpirySeconds = -1 }
    let upload = "/v1/uploads/\(try await expired.context.uploads.create(length: 8, metadata: nil, for: .unknown))"
    for method in [HTTPMethod.head, .patch, .delete, .post] { try await check(expired, method, upload, 410) }
    await bench.runner.stop()
  }

  @Test func aRepeatedRequestIsAnsweredAsDescribed() async throws {
    let bench = try TestBench()
    let key: HTTPFields = ["Idempotency-Key": "k"]
    for _ in 0..<2 { try await check(bench, .post, "/v1/recordings", fields: key, body: "RIFF", 201) }
    try await check(bench, .post, "/v1/recordings", fields: key, body: "RIFX", 422)
    let path = "/v1/recordings/\(try bench.recording().id)/denoise"
    for _ in 0..<2 { try await check(bench, .post, path, fields: key, 202) }
    try await check(bench, .post, path, fields: key, body: "{\"strength\":\"strong\"}", 422)
    await bench.runner.stop()
  }

  @Test func everyFormOfAWaveformIsAsDescribed() async throws {
    let bench = try TestBench()
    let recording = try bench.recording(state: .queued)
    let path = "/v1/recordings/\(recording.id)"
    #expect(try await check(bench, .get, path + "/waveform", 200).contains("\"complete\":false"))
    for picture in ["waveform.png", "waveform.svg?axis=1"] { try await check(bench, .get, path + "/" + picture, 200) }
    try bench.makeWaveform(of: recording)
    let slice = try await check(bench, .get, path + "/waveform?scale=256&measures=peak,rms,average&bits=8", 200)
    #expect(slice.contains("\"complete\":true") && slice.contains("\"average\""))
    try await check(bench, .get, path + "/waveform?channels=split&measures=rms&width=100", 200)
    try await check(bench, .get, path + "/waveform?start=1000", 200)
    for form in [
      "waveform.dat?version=1&width=9", "waveform.json?width=9", "peaks.json?channels=1&start=1&scale=512",
      "waveform.png?width=200", "waveform.svg?width=200&channels=split&overlay=\(recording.id)",
    ] {
      try await check(bench, .get, path + "/" + form, 200)
      try await check(bench, .get, path + "/" + form, fields: ["If-None-Match": "*"], 304)
    }
    try await check(
      bench, .get, path + "/waveform?version=1&width=9", fields: ["Accept": "application/vnd.bbc.audiowaveform"], 200)
  }

  @Test func operatorsRequestsAreAsDescribed() async throws {
    let bench = try TestBench()
    for path in ["/healthz", "/readyz", "/readyz?own=1", "/metrics", "/openapi.yaml", "/", "/?recording=1", "/docs"] {
      try await check(bench, .get, path, 200)
    }
    let full = try TestBench { $0.reservedDiskBytes = .max }
    try await check(full, .get, "/readyz", 503)
    try await check(full, .get, "/readyz?own=1", 503)
    try await check(bench, .get, "/readyz?own=2", 400)
    try await check(bench, .get, "/readyz?other=1", 400)
    try await check(full, .post, "/v1/recordings", body: "RIFF", 507)
  }
}
