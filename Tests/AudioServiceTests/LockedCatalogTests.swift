import Foundation
import HTTP
import Testing

@testable import AudioService
@testable import Storage

/// A catalog whose file another program has locked.
@Suite struct LockedCatalogTests {
  @Test("reads are answered, changes say that nothing was changed, and after the lock they succeed")
  func answers() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/data/catalog.sqlite"
    let bench = try TestBench(in: folder, engine: { (try? SQLiteEngine(path: path, patienceSeconds: 0.02)) ?? $0 })
    let (recording, waiting) = (try bench.recording(), try bench.waveformJob())
    let target = "/v1/recordings/\(recording.id)"
    let changes: [(HTTPMethod, String, String, HTTPStatus)] = [
      (.patch, target, #"{"name":"x"}"#, .ok), (.post, "/v1/recordings", "RIFF", .created),
      (.post, target + "/denoise", "{}", .accepted),
      (.post, target + "/labels?format=srt", "1\n00:00:00,000 --> 00:00:01,000\na\n", .created),
      (.delete, "/v1/jobs/\(waiting.id)", "", .accepted), (.delete, target, "", .noContent),
    ]
    let other = try SQLiteConnection(path)
    try other.execute("BEGIN IMMEDIATE")
    for (method, target, body, _) in changes {
      let answer = try await bench.respond(method, target, body: body)
      let text = String(decoding: try await answer.body.collect(), as: UTF8.self)
      #expect(answer.status == .serviceUnavailable && text.contains("\"catalog_busy\""), "\(method) \(target): \(text)")
      #expect(answer.fields["Retry-After"] != nil)
    }
    for target in ["/healthz", "/v1/recordings", target, target + "/audio", "/v1/jobs/\(waiting.id)"] {
      #expect(try await bench.respond(.get, target).status == .ok, "\(target)")
    }
    #expect(try bench.catalog.recordings(limit: 9).map(\.name).sorted() == ["talk.wav", "talk.wav"])
    try other.execute("ROLLBACK")
    for (method, target, body, status) in changes {
      #expect(try await bench.respond(method, target, body: body).status == status, "\(method) \(target)")
    }
    await bench.runner.stop()
  }
}
