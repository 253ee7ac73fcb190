import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService
@testable import Jobs

/// A tus client of a bench, without a socket.
struct TusClient {
  let bench: TestBench

  struct Answer {
    let status: Int
    let fields: HTTPFields
    let text: String

    var offset: Int? { fields["Upload-Offset"].flatMap { Int($0) } }
    var recording: RecordingID? { fields["Stillwave-Recording"].flatMap { RecordingID($0) } }
    func says(_ code: String) -> Bool { text.contains("\"code\":\"\(code)\"") }
  }

  /// Sends a request and checks that the answer has the version.
  func send(_ method: HTTPMethod, _ target: String, _ fields: HTTPFields = [:], body: String = "") async throws
    -> Answer
  {
    var fields = fields
    if !fields.contains("Tus-Resumable") { fields["Tus-Resumable"] = "1.0.0" }
    let response = try await bench.respond(method, target, fields: fields, body: body)
    #expect(response.fields["Tus-Resumable"] == "1.0.0")
    return Answer(
      status: response.status.code, fields: response.fields,
      text: String(decoding: try await response.body.collect(), as: UTF8.self))
  }

  /// Creates an upload and returns its address.
  func create(_ length: Int, _ fields: HTTPFields = [:]) async throws -> String {
    var fields = fields
    fields["Upload-Length"] = "\(length)"
    let answer = try await send(.post, "/v1/uploads", fields)
    try #require(answer.status == 201, "\(answer.text)")
    #expect(answer.offset == 0 && answer.recording == nil && answer.fields["Upload-Expires"] != nil)
    return try #require(answer.fields["Location"])
  }

  func patch(_ upload: String, at offset: Int, _ body: String, _ fields: HTTPFields = [:]) async throws -> Answer {
    var fields = fields
    fields["Upload-Offset"] = "\(offset)"
    if !fields.contains("Content-Type") { fields["Content-Type"] = Tus.contentType }
    return try await send(.patch, upload, fields, body: body)
  }

  func head(_ upload: String) async throws -> Answer { try await send(.head, upload) }

  func id(_ upload: String) throws -> UploadID {
    try #require(UploadID(String(upload.dropFirst("/v1/uploads/".count))))
  }

  /// Returns the checksum field of a body: `sha1 …`.
  static func checksum(_ body: String, _ algorithm: MessageDigest.Algorithm = .sha1) -> String {
    var digest = MessageDigest(algorithm)
    digest.update(Array(body.utf8).span)
    return "\(algorithm.rawValue) \(Data(digest.bytes()).base64EncodedString())"
  }
}

extension TestBench {
  var tus: TusClient { TusClient(bench: self) }

  /// Returns the names of the stored parts.
  func parts() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: store.directory + "/uploads") }

  /// Checks that there are no recordings, jobs, or bytes left.
  func expectNothingLeft(sourceLocation: SourceLocation = #_sourceLocation) throws {
    #expect(try catalog.recordings(limit: 1).isEmpty && catalog.jobs(limit: 1).isEmpty, sourceLocation: sourceLocation)
    #expect(try catalog.unfinishedUploads().isEmpty, sourceLocation: sourceLocation)
    for folder in ["incoming", "uploads", "recordings", "jobs", "removed"] {
      let names = try FileManager.default.contentsOfDirectory(atPath: store.directory + "/" + folder)
      #expect(names == [], sourceLocation: sourceLocation)
    }
  }
}
