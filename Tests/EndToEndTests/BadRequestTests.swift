import Testing

@testable import Sounds

/// A request that can't be fulfilled explains the error, names the parameter at fault, and changes nothing.
struct BadRequestTests {
  private static let unknown = "01930000-0000-7000-8000-000000000000"

  /// The target below the recording, status, code, and parameter.
  private static let slices: [(String, Int, String, String?)] = [
    ("waveform?start=2&end=1", 400, "invalid_parameter", "end"),
    ("waveform?start=1&end=1", 400, "invalid_parameter", "end"),
    ("waveform?start=-1", 400, "invalid_parameter", "start"),
    ("waveform?start=nan", 400, "invalid_parameter", "start"),
    ("waveform?end=inf", 400, "invalid_parameter", "end"),
    ("waveform?start=one", 400, "invalid_parameter", "start"),
    ("waveform?scale=0", 400, "invalid_parameter", "scale"),
    ("waveform?scale=16777217", 400, "invalid_parameter", "scale"),
    ("waveform?scale=1.5", 400, "invalid_parameter", "scale"),
    ("waveform?width=0", 400, "invalid_parameter", "width"),
    ("waveform?width=20001", 400, "invalid_parameter", "width"),
    ("waveform?width=9&scale=512", 400, "invalid_parameter", "width"),
    ("waveform?channels=1", 400, "invalid_parameter", "channels"),
    ("waveform?channels=both", 400, "invalid_parameter", "channels"),
    ("waveform?measures=loudness", 400, "invalid_parameter", "measures"),
    ("waveform?measures=", 400, "invalid_parameter", "measures"),
    ("waveform?bits=12", 400, "invalid_parameter", "bits"),
    ("waveform?scale=1", 400, "too_many_pixels", "scale"),
    ("waveform?widht=9", 400, "unknown_parameter", "widht"),
    ("waveform?scale=512&scale=256", 400, "duplicate_parameter", "scale"),
    ("waveform.dat?measures=rms", 400, "invalid_parameter", "measures"),
    ("waveform.dat?version=3", 400, "invalid_parameter", "version"),
    ("audio?download=yes", 400, "invalid_parameter", "download"),
    ("?expand=1", 400, "unknown_parameter", "expand"),
  ]

  /// The body, status, code, and parameter.
  private static let denoises: [(String, Int, String, String?)] = [
    (#"{"noise":{"start":1,"end":9}}"#, 422, "noise_region_outside", "noise"),
    (#"{"noise":{"start":100,"end":101}}"#, 422, "noise_region_outside", "noise"),
    (#"{"noise":{"start":1,"end":1.02}}"#, 422, "noise_region_too_short", "noise"),
    (#"{"noise":{"start":2,"end":1}}"#, 400, "invalid_member", "noise.end"),
    (#"{"noise":{"start":-1,"end":1}}"#, 400, "invalid_member", "noise.start"),
    (#"{"noise":{"start":1}}"#, 400, "invalid_member", "noise.end"),
    (#"{"noise":{"start":0,"end":1,"quantile":0.5}}"#, 400, "invalid_member", nil),
    (#"{"noise":{"start":0,"finish":1}}"#, 400, "unknown_member", "noise.finish"),
    (#"{"noise":"quiet"}"#, 400, "invalid_member", "noise"),
    (#"{"nosie":"auto"}"#, 400, "unknown_member", "nosie"),
    (#"{"method":"magic"}"#, 400, "invalid_member", "method"),
    (#"{"strength":"natural","reduction":12}"#, 400, "invalid_member", "reduction"),
    (#"{"reduction":61}"#, 400, "invalid_member", "reduction"),
    (#"{"reduction":"12"}"#, 400, "invalid_member", "reduction"),
    (#"{"sensitivity":0.4}"#, 400, "invalid_member", "sensitivity"),
    (#"{"adapt":"yes"}"#, 400, "invalid_member", "adapt"),
    (#"{"output":"noise"}"#, 400, "invalid_member", "output"),
    (#"{"link":"stereo"}"#, 400, "invalid_member", "link"),
    (#"{"format":"wma"}"#, 400, "invalid_member", "format"),
    (#"{"name":""}"#, 400, "invalid_member", "name"),
    ("[]", 400, "invalid_json", nil), ("{", 400, "invalid_json", nil), ("{} {}", 400, "invalid_json", nil),
    (#"{"reduction":1e999}"#, 400, "invalid_member", "reduction"),
  ]

  @Test func invalidRequestsForARecordingAreExplained() throws {
    let server = try TestServer()
    let client = server.client
    let recording = try client.uploadReady(BadUploadTests.tone.bytes)
    let id = try #require(recording["id"].string)
    for (target, status, code, parameter) in Self.slices {
      let separator = target.hasPrefix("?") ? "" : "/"
      let answer = try client.get("/v1/recordings/\(id)\(separator)\(target)")
      #expect(answer.status == status && answer.json["parameter"].string == parameter, "\(target): \(answer.text)")
      expectProblem(answer, status, code)
    }
    for (body, status, code, parameter) in Self.denoises {
      let answer = try client.post("/v1/recordings/\(id)/denoise", json: body)
      #expect(answer.status == status, "\(body): \(answer.text)")
      if let parameter { #expect(answer.json["parameter"].string == parameter, "\(body): \(answer.text)") }
      expectProblem(answer, status, code)
    }
    for body in [#"{"name":5}"#, "{}", #"{"name":"a","id":"b"}"#] {
      #expect(try client.send("PATCH", "/v1/recordings/\(id)", [:], .json(body)).status == 400, "\(body)")
    }
    expectProblem(try client.send("POST", "/v1/recordings/\(id)/waveform"), 409, "waveform_not_failed")
    let job = try #require(recording["waveform"]["job"].string)
    expectProblem(try client.delete("/v1/jobs/\(job)"), 409, "job_finished")
    for query in ["limit=0", "limit=1001", "cursor=x", "order=name"] {
      #expect(try client.get("/v1/recordings?\(query)").status == 400, "\(query)")
      #expect(try client.get("/v1/jobs?\(query)").status == 400, "\(query)")
    }
    for query in ["state=done", "recording=x"] {
      #expect(try client.get("/v1/jobs?\(query)").status == 400, "\(query)")
    }
    for wait in ["-1", "x"] { #expect(try client.get("/v1/jobs/\(job)?wait=\(wait)").status == 400) }

    // None of these requests has changed anything.
    #expect(try client.recording(id) == recording)
    #expect(try client.get("/v1/jobs").json["jobs"].array?.count == 1)
    #expect(try client.delete("/v1/recordings/\(id)").status == 204)
    try server.expectNothingKept(jobs: nil)
    try server.stop()
  }

  @Test(arguments: [unknown, "x", "..%2F..%2Fetc", unknown + "0"])
  func unknownIdsAreNotFound(_ id: String) throws {
    let server = try TestServer()
    for path in ["", "/audio", "/waveform", "/waveform.dat", "/waveform.json", "/peaks.json", "/waveform.png"] {
      expectProblem(try server.client.get("/v1/recordings/\(id)\(path)"), 404, "not_found")
    }
    expectProblem(try server.client.post("/v1/recordings/\(id)/denoise", json: "{}"), 404, "not_found")
    expectProblem(
      try server.client.send("PATCH", "/v1/recordings/\(id)", [:], .json(#"{"name":"a"}"#)), 404, "not_found")
    expectProblem(try server.client.delete("/v1/recordings/\(id)"), 404, "not_found")
    expectProblem(try server.client.get("/v1/jobs/\(id)?wait=5"), 404, "not_found")
    expectProblem(try server.client.delete("/v1/jobs/\(id)"), 404, "not_found")
    try server.expectNothingKept()
  }

  @Test func aFormatThatCannotHoldTheAudioIsRejected() throws {
    let server = try TestServer()
    let wide = WAVFile(Sound.noisy(rate: 96_000, channels: 3, seconds: 2.6, voice: Sound.tone)).bytes
    let id = try #require(try server.client.uploadReady(wide)["id"].string)
    for format in ["mp3", "opus"] {
      expectProblem(
        try server.client.post("/v1/recordings/\(id)/denoise", json: #"{"format":"\#(format)"}"#), 422,
        "unsupported_output", parameter: "format")
    }
    #expect(try server.client.get("/v1/recordings").json["recordings"].array?.count == 1)
  }

  @Test func pathsAndMethodsOutsideTheAPIAreRejected() throws {
    let server = try TestServer()
    server.client.followsContract = false
    for (target, status) in [("/v1/nothing", 404), ("/v1/recordings/", 404), ("/v1/recordings/%00", 400)] {
      #expect(try server.client.get(target).status == status, "\(target)")
    }
    let answer = try server.client.send("PUT", "/v1/recordings", [:], .json("{}"))
    #expect(answer.status == 405 && answer["allow"]?.contains("POST") == true)
    server.client.followsContract = true
    for target in ["/healthz", "/readyz", "/metrics", "/"] {
      #expect(try server.client.get(target).status == 200, "\(target)")
    }
  }
}
