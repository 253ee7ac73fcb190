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
    "a download's name is never a path, and ends in the format's extension",
    arguments: [
      ("AC/DC.wav", "AC_DC.wav"), ("../../etc/passwd", ".._.._etc_passwd.wav"), ("a\\b.wav", "a_b.wav"),
      ("..", "recording.wav"), ("/", "_.wav"), ("A.WAV", "A.WAV"), ("page.html", "page.wav"),
      ("setup.exe", "setup.wav"),
      ("a.wav.html", "a.wav.wav"), ("2026.05.12", "2026.05.12.wav"), ("song.", "song..wav"), (".html", ".html.wav"),
      (String(repeating: "x", count: 250) + ".html", String(repeating: "x", count: 250) + ".wav"),
      (String(repeating: "x", count: 255), String(repeating: "x", count: 251) + ".wav"),
    ])
  func downloaded(name: String, file: String) async throws {
    let bench = try TestBench()
    let recording = try bench.recording(name: name)
    let response = try await bench.respond(.get, "/v1/recordings/\(recording.id)/audio?download=1")
    #expect(
      response.fields["Content-Disposition"] == "attachment; filename=\"\(file)\"; filename*=UTF-8''\(file)")
    #expect(response.fields["Content-Security-Policy"] == "sandbox")
  }

  @Test(
    "no name breaks out of its field",
    arguments: [
      (#"a"; filename="b.html"#, "a_; filename=_b.wav", "a%22%3B%20filename%3D%22b.wav"),
      ("a\r\nSet-Cookie: b=c.html", "aSet-Cookie: b=c.wav", "aSet-Cookie%3A%20b%3Dc.wav"),
      (#"a\"b.wav"#, "a__b.wav", "a_%22b.wav"), ("50%41.wav", "50_41.wav", "50%2541.wav"),
      ("é'*.wav", "__'*.wav", "%C3%A9%27%2A.wav"), ("a\u{202E}vaw.exe", "avaw.wav", "avaw.wav"),
      ("a.wav\u{0}.html", "a.wav.wav", "a.wav.wav"), ("a.ht\u{AD}ml", "a.wav", "a.wav"),
    ])
  func hostileName(name: String, plain: String, encoded: String) async throws {
    let bench = try TestBench()
    let recording = try bench.recording(name: RecordingName(typed: name)?.text ?? "")
    let response = try await bench.respond(.get, "/v1/recordings/\(recording.id)/audio?download=1")
    #expect(
      response.fields["Content-Disposition"]
        == "attachment; filename=\"\(plain)\"; filename*=UTF-8''\(encoded)")
  }

  @Test func aConversionsNameIsNeverAPath() async throws {
    let bench = try TestBench()
    let recording = try bench.recording(name: "AC/DC.wav")
    let response = try await bench.respond(.get, "/v1/recordings/\(recording.id)/audio?format=flac&download=1")
    #expect(
      response.fields["Content-Disposition"] == "attachment; filename=\"AC_DC.flac\"; filename*=UTF-8''AC_DC.flac")
  }
}
