import Contract
import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService
@testable import Jobs

/// A typed name isn't a path.
@Suite struct RenameTests {
  private func rename(_ bench: TestBench, _ id: RecordingID, to name: String) async throws -> HTTPResponse {
    let body = String(decoding: try JSONEncoder().encode(["name": name]), as: UTF8.self)
    return try await bench.respond(.patch, "/v1/recordings/\(id)", body: body)
  }

  @Test(
    "a typed name is kept except for invisible characters",
    arguments: [
      ("AC/DC", "AC/DC"), ("a\\b", "a\\b"), ("/", "/"), ("1/2.wav", "1/2.wav"), (" a\u{7}b ", "ab"),
      ("a\u{202E}b\u{2066}", "ab"), ("..", ".."),
    ])
  func typed(name: String, kept: String) async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    #expect(try await rename(bench, recording.id, to: name).status == .ok)
    #expect(try bench.catalog.recording(recording.id)?.name == kept)
  }

  @Test(
    "an invisible name is rejected",
    arguments: ["", " ", "\u{0}\u{7}\r\n", "\u{200B}", "\u{202E}\u{2066}", "\u{E0067}\u{E007F}"])
  func unseen(name: String) async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    let target = "/v1/recordings/\(recording.id)"
    let body = String(decoding: try JSONEncoder().encode(["name": name]), as: UTF8.self)
    for (method, target) in [(HTTPMethod.patch, target), (.post, target + "/denoise")] {
      let response = try await bench.respond(method, target, body: body)
      let text = String(decoding: try await response.body.collect(), as: UTF8.self)
      #expect(response.status == .badRequest && text.contains("\"code\":\"invalid_member\""), "\(text)")
      #expect(text.contains("\"parameter\":\"name\""))
    }
    #expect(try bench.catalog.recordings(limit: 9).map(\.name) == ["talk.wav"])
  }

  @Test func openAPIsPatternAcceptsWhatTheServiceAccepts() throws {
    let pattern = try #require(try OpenAPIDocument.shared.get().pattern(ofSchema: "DisplayName"))
    // Beyond 16 bits, patterns have no notation that all tools share.
    let differing = (0...0xFFFF as ClosedRange<UInt32>).compactMap(Unicode.Scalar.init).filter { scalar in
      let text = String(scalar)
      return (RecordingName(typed: text) != nil) != (text.firstMatch(of: pattern) != nil)
    }
    #expect(differing == [])
  }

  @Test func aResultKeepsATypedNameOrItsSourcesName() async throws {
    let bench = try TestBench()
    let source = try bench.recording(name: "AC/DC.wav")
    for body in ["{\"name\":\"AC/DC 2\"}", "{}"] {
      #expect(try await bench.respond(.post, "/v1/recordings/\(source.id)/denoise", body: body).status == .accepted)
    }
    let names = try bench.catalog.recordings(limit: 9).map(\.name)
    #expect(names == ["AC/DC (denoised).wav", "AC/DC 2", "AC/DC.wav"])
    await bench.runner.stop()
  }

  @Test(
    "a download's name is never a path",
    arguments: [
      ("AC/DC.wav", "AC_DC.wav"), ("../../etc/passwd", ".._.._etc_passwd"), ("a\\b.wav", "a_b.wav"),
      ("..", "recording.wav"), ("/", "_"),
    ])
  func downloaded(name: String, file: String) async throws {
    let bench = try TestBench()
    let recording = try bench.recording(name: name)
    let response = try await bench.respond(.get, "/v1/recordings/\(recording.id)/audio?download=1")
    #expect(
      response.fields["Content-Disposition"] == "attachment; filename=\"\(file)\"; filename*=UTF-8''\(file)")
  }

  @Test func aConversionsNameIsNeverAPath() async throws {
    let bench = try TestBench()
    let recording = try bench.recording(name: "AC/DC.wav")
    let response = try await bench.respond(.get, "/v1/recordings/\(recording.id)/audio?format=flac&download=1")
    #expect(
      response.fields["Content-Disposition"] == "attachment; filename=\"AC_DC.flac\"; filename*=UTF-8''AC_DC.flac")
  }
}
