import Foundation
import Testing

/// API calls used by the tests.
extension HTTPClient {
  /// Uploads a file as the raw body; expects 201.
  func upload(_ bytes: [UInt8], name: String) throws -> JSON {
    let answer = try send(
      "POST", "/v1/recordings?name=\(escaped(name))", ["Content-Type": "audio/x-any"], .bytes(bytes))
    try #require(answer.status == 201, "\(answer.text)")
    #expect(answer["location"] == "/v1/recordings/\(answer.json["id"].string ?? "")")
    return answer.json
  }

  /// Uploads a file as the part `file` of a form.
  func uploadForm(_ bytes: [UInt8], fileName: String, part: String = "file") throws -> Answer {
    let boundary = "----stillwave-\(bytes.count)"
    let head =
      "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(part)\"; filename=\"\(fileName)\"\r\n"
      + "Content-Type: application/octet-stream\r\n\r\n"
    return try send(
      "POST", "/v1/recordings", ["Content-Type": "multipart/form-data; boundary=\(boundary)"],
      .bytes(Array(head.utf8) + bytes + Array("\r\n--\(boundary)--\r\n".utf8)))
  }

  /// Requests a recording's audio in another format. Repeats the request while the conversion runs, because the service
  /// waits only a few seconds.
  func conversion(_ target: String) throws -> Answer {
    let deadline = ContinuousClock.now + .seconds(hung)
    while true {
      let answer = try get(target)
      guard answer.status == 503, answer.json["code"].string == "converting" else { return answer }
      try #require(ContinuousClock.now < deadline, "\(target): \(answer.text)")
    }
  }

  func recording(_ id: String) throws -> JSON {
    let answer = try get("/v1/recordings/\(id)")
    try #require(answer.status == 200, "\(answer.text)")
    return answer.json
  }

  /// Requests a denoise job; expects 202.
  func denoise(_ id: String, _ json: String = "{}") throws -> JSON {
    let answer = try post("/v1/recordings/\(id)/denoise", json: json)
    try #require(answer.status == 202, "\(answer.text)")
    #expect(answer["location"] == "/v1/jobs/\(answer.json["id"].string ?? "")")
    return answer.json
  }

  /// Follows a job to its end through `?wait=`, passing each answer to `seen`. Progress must never decrease within an
  /// attempt.
  @discardableResult
  func follow(
    _ job: String, withinSeconds seconds: Double = hung, seen: (JSON) throws -> Void = { _ in }
  ) throws -> JSON {
    let deadline = ContinuousClock.now + .seconds(seconds)
    var (attempt, last) = (0, 0.0)
    while true {
      let answer = try get("/v1/jobs/\(job)?wait=20")
      try #require(answer.status == 200, "\(answer.text)")
      let document = answer.json
      let progress = try #require(document["progress"].double)
      if document["attempts"].int == attempt {
        #expect(progress >= last, "progress fell from \(last) to \(progress)")
      }
      (attempt, last) = (document["attempts"].int ?? 0, progress)
      try seen(document)
      if ["succeeded", "failed", "cancelled"].contains(document["state"].string) { return document }
      try #require(ContinuousClock.now < deadline, "job \(job) did not end: \(answer.text)")
    }
  }

  /// Follows a job and expects that it succeeds.
  @discardableResult
  func succeed(_ job: String, seen: (JSON) throws -> Void = { _ in }) throws -> JSON {
    let document = try follow(job, seen: seen)
    try #require(document["state"] == .string("succeeded"), "\(document)")
    #expect(document["progress"] == .number(1))
    #expect(document["error"] == .null)
    #expect(document["finished_at"].string != nil)
    return document
  }

  /// Uploads a file and waits for its waveform.
  func uploadReady(_ bytes: [UInt8], name: String = "clip.wav") throws -> JSON {
    let uploaded = try upload(bytes, name: name)
    try succeed(try #require(uploaded["waveform"]["job"].string))
    return try recording(try #require(uploaded["id"].string))
  }
}

func escaped(_ text: String) -> String {
  text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? text
}

/// Expects a problem document (RFC 9457) with the members that openapi.yaml gives every error.
func expectProblem(
  _ answer: Answer, _ status: Int, _ code: String, parameter: String? = nil,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(answer.status == status, "\(answer.text)", sourceLocation: sourceLocation)
  #expect(answer["content-type"] == "application/problem+json", sourceLocation: sourceLocation)
  let problem = answer.json
  #expect(problem["code"].string == code, sourceLocation: sourceLocation)
  #expect(problem["status"].int == status, sourceLocation: sourceLocation)
  for member in ["type", "title", "detail"] {
    #expect(problem[member].string?.isEmpty == false, "\(member)", sourceLocation: sourceLocation)
  }
  if let parameter { #expect(problem["parameter"].string == parameter, sourceLocation: sourceLocation) }
  #expect(answer["x-request-id"] != nil, sourceLocation: sourceLocation)
}
