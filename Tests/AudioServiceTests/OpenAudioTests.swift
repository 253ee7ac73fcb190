import Foundation
import HTTP
import PresentRows
import Testing

@testable import AudioService
@testable import Storage

/// Files that stay open between requests: a request for one sees what it would see without that.
@Suite struct OpenAudioTests {
  private static let text = "RIFF0123456789"

  private func part(_ bench: TestBench, _ id: RecordingID, _ fields: HTTPFields) async throws -> (Int, String) {
    let response = try await bench.respond(.get, "/v1/recordings/\(id)/audio", fields: fields)
    return (response.status.code, String(decoding: try await response.body.collect(), as: UTF8.self))
  }

  private func key(_ id: RecordingID, of tenant: Tenant = .none) -> OpenAudio.Key {
    OpenAudio.Key(recording: id, tenant: tenant, isVideo: false)
  }

  @Test("the second range costs no query, and conditions are observed")
  func again() async throws {
    let bench = try TestBench()
    let id = try bench.recording(containing: Self.text).id
    let first = try await bench.respond(.get, "/v1/recordings/\(id)/audio", fields: ["Range": "bytes=4-6"])
    let etag = try #require(first.fields["ETag"])
    let reads = bench.catalog.readCount
    for (fields, status, content): (HTTPFields, Int, String) in [
      (["Range": "bytes=4-6"], 206, "012"), ([:], 200, Self.text), (["Range": "bytes=-2"], 206, "89"),
      (["If-None-Match": etag], 304, ""), (["Range": "bytes=0-3", "If-Range": etag], 206, "RIFF"),
      (["Range": "bytes=0-3", "If-Range": "\"other\""], 200, Self.text),
    ] {
      let (found, text) = try await part(bench, id, fields)
      #expect(found == status && text == content, "\(fields)")
    }
    #expect(try await part(bench, id, ["Range": "bytes=99-"]).0 == 416)
    #expect(try await part(bench, id, ["If-Match": "\"other\""]).0 == 412)
    let head = try await bench.respond(.head, "/v1/recordings/\(id)/audio")
    #expect(head.status == .ok && head.body.length == Int64(Self.text.count))
    #expect(bench.catalog.readCount == reads)
  }

  @Test("a file that is open answers at once")
  func atOnce() async throws {
    let bench = try TestBench()
    let id = try bench.recording().id
    func isAtOnce() throws -> Bool {
      let request = try HTTPRequest(method: .get, target: "/v1/recordings/\(id)/audio", fields: ["Range": "bytes=0-1"])
      guard case .now = bench.responder.respond(to: request) else { return false }
      return true
    }
    #expect(try !isAtOnce())
    _ = try await part(bench, id, [:])
    #expect(try isAtOnce())
  }

  @Test("parameters are read although the file is open")
  func parameters() async throws {
    let bench = try TestBench()
    let path = "/v1/recordings/\(try bench.recording(name: "talk.wav").id)/audio"
    #expect(try await bench.send(.get, path, 200).fields["Content-Disposition"] == nil)
    #expect(try await bench.send(.get, path + "?download=1", 200).fields["Content-Disposition"] != nil)
    #expect(try await bench.send(.get, path, 200).fields["Content-Disposition"] == nil)
    for query in ["?other=1", "?token=a&token=b"] {
      #expect(try await bench.respond(.get, path + query).status.code == 400, "\(query)")
    }
    // A recording without pictures has no video, although its file is open.
    #expect(try await bench.respond(.get, path.replacing("/audio", with: "/video")).status.code == 404)
  }

  @Test("a deleted recording is not sent, and its file is closed")
  func deleted() async throws {
    let bench = try TestBench()
    let id = try bench.recording(containing: Self.text).id
    _ = try await part(bench, id, [:])
    let path = bench.store.folder(of: id) + "/audio.wav"
    #expect(Self.isOpen(path))
    #expect(try await bench.respond(.delete, "/v1/recordings/\(id)").status == .noContent)
    #expect(try await part(bench, id, ["Range": "bytes=4-6"]).0 == 404)
    #expect(!Self.isOpen(path))
  }

  /// Whether this process has a file open that is, or was, at a path.
  private static func isOpen(_ path: String) -> Bool {
    let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return descriptors.contains { descriptor in
      let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
      return target?.hasPrefix(path) == true
    }
  }

  @Test("a response that was being made when the recording was deleted isn't kept")
  func deletedMeanwhile() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    let open = try #require(bench.context.openAudio)
    let version = open.version(key(recording.id))
    let file = try FileContent(path: bench.store.folder(of: recording.id) + "/audio.wav")
    _ = try bench.catalog.deleteRecording(recording.id)
    let whole = Representation(body: .file(file), contentType: "audio/wav", etag: nil, cacheControl: "no-cache")
    open.keep(file, whole, for: key(recording.id), version: version)
    #expect(open[key(recording.id)] == nil)
  }

  @Test(
    "a file that is gone or has another length is reported although it was open",
    arguments: [nil, "", "RIF", "RIFFRIFF"])
  func spoiled(content: String?) async throws {
    let bench = try TestBench()
    let id = try bench.recording().id
    #expect(try await part(bench, id, [:]) == (200, "RIFF"))
    let path = bench.store.folder(of: id) + "/audio.wav"
    if let content {
      try content.write(toFile: path, atomically: false, encoding: .utf8)
    } else {
      try FileManager.default.removeItem(atPath: path)
    }
    let code = content == nil ? "audio_missing" : "audio_damaged"
    let (status, text) = try await part(bench, id, ["Range": "bytes=0-1"])
    #expect(status == 410 && text.contains("\"\(code)\""), "\(status) \(text)")
  }

  @Test("a file that was replaced by another one isn't sent from its open descriptor")
  func replaced() async throws {
    let bench = try TestBench()
    let id = try bench.recording().id
    #expect(try await part(bench, id, [:]) == (200, "RIFF"))
    let path = bench.store.folder(of: id) + "/audio.wav"
    try "FFIR".write(toFile: path, atomically: true, encoding: .utf8)
    #expect(try await part(bench, id, [:]) == (200, "FFIR"))
  }

  @Test("another tenant finds nothing, and a withdrawn key is refused before the file is looked for")
  func keys() async throws {
    let keyed = try KeyedBench()
    let id = try await keyed.recording()
    await keyed.bench.allEnd()
    let path = "/v1/recordings/\(id)/audio"
    for _ in 0..<2 { #expect(try await keyed.status(.get, path) == 200) }
    #expect(try await keyed.status(.get, path, key: "theirs") == 404)
    #expect(try await keyed.status(.get, path, key: "writer") == 403)
    #expect(try await keyed.status(.get, path, key: nil) == 401)
    try KeyedBench.line("theirs", tenant: "theirs", ["read"])
      .write(toFile: keyed.folder.path + "/keys.jsonl", atomically: true, encoding: .utf8)
    keyed.bench.context.reloadAccess()
    #expect(try await keyed.status(.get, path) == 401)
  }
}
