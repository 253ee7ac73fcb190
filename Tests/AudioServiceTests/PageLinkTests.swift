import Foundation
import HTTP
import PresentRows
import Storage
import Testing

@testable import AudioService
@testable import Jobs

@Suite struct PageLinkTests {
  /// Follows `rel="next"` like a client that doesn't know the API's parameters.
  private func walk(_ bench: TestBench, from start: String) async throws -> [String] {
    let pattern = /^<(\/v1\/[a-z]+\?[^<> ]+)>; rel="next"$/
    var (target, ids): (String?, [String]) = (start, [])
    while let page = target {
      let response = try await bench.respond(.get, page)
      let text = String(decoding: try await response.body.collect(), as: UTF8.self)
      ids += text.matches(of: /"id":"([^"]+)"/).map { String($0.output.1) }
      target = try response.fields["Link"].map { String(try #require($0.wholeMatch(of: pattern)).output.1) }
      #expect((target == nil) == text.contains("\"next_cursor\":null"))
    }
    return ids
  }

  @Test(arguments: ["talk", "a+b&c=d", "ä €?", "<x>; rel=\"prev\"", "100%"])
  func aListsLinksLeadThroughAllOfItForAnySearch(_ name: String) async throws {
    let bench = try TestBench()
    let made = try (0..<5).map { _ in try bench.recording(name: "\(name).wav").id.text }
    _ = try bench.recording(name: "other.wav")
    let query = name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    #expect(try await walk(bench, from: "/v1/recordings?q=\(query)&limit=2") == made.reversed())
    #expect(try await walk(bench, from: "/v1/recordings?limit=1&q=\(query)") == made.reversed())
  }

  @Test func aListIsSortedByNameOrLengthInEitherDirection() async throws {
    let bench = try TestBench()
    let made = try ["b", "Ä", "a", "B", "c", "a", ""].enumerated().map { index, name in
      var recording = try bench.recording(name: "\(name) talk")
      if index > 0 {
        recording = try #require(
          bench.catalog.update(recording.id) {
            ($0.format.frames, $0.format.estimatedFrames) = (Int64(800 * (index % 3)), nil)
          })
      }
      return recording
    }
    func sorted<Key: Comparable>(by key: (Recording) -> Key) -> [String] {
      made.sorted { (key($0), $0.id) < (key($1), $1.id) }.map(\.id.text)
    }
    let expected = [
      "created": made.map(\.id.text), "name": sorted { $0.name.lowercased().precomposedStringWithCanonicalMapping },
      "duration": sorted { $0.format.duration ?? -1 },
    ]
    for (key, ids) in expected {
      for search in ["", "&q=talk", "&q=t"] {
        let list = "/v1/recordings?limit=2&sort=\(key)\(search)"
        #expect(try await walk(bench, from: list + "&order=asc") == ids, "\(list)")
        #expect(try await walk(bench, from: list + "&order=desc") == ids.reversed(), "\(list)")
      }
    }
    let name = try await bench.respond(.get, "/v1/recordings?sort=name&limit=1")
    #expect(try await walk(bench, from: "/v1/recordings?sort=name") == expected["name"])
    let cursor = try #require(name.fields["Link"]?.firstMatch(of: /cursor=([^>&]+)/)).1
    // A place says where it is also in another order, and after its recording was deleted.
    let places = [
      ("sort=name&cursor=\(cursor)", "name"), ("sort=name&cursor=\(cursor.prefix(36))", "name"),
      ("sort=duration&cursor=\(cursor)", "duration"), ("order=asc&cursor=\(cursor)", "created"),
    ]
    let first = String(cursor.prefix(36))
    for (target, key) in places {
      let after = expected[key, default: []].drop { $0 != first }.dropFirst()
      #expect(try await walk(bench, from: "/v1/recordings?" + target) == Array(after), "\(target)")
    }
    _ = try bench.catalog.deleteRecording(#require(RecordingID(first)))
    let rest = try await walk(bench, from: "/v1/recordings?sort=name&cursor=\(cursor)")
    #expect(rest == expected["name"]?.filter { $0 != first })
    for target in ["sort=length", "order=up", "cursor=\(cursor)0", "cursor=x"] {
      #expect(try await bench.respond(.get, "/v1/recordings?\(target)").status == .badRequest, "\(target)")
    }
  }

  @Test func jobsAreFollowedInTheSameWay() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    let jobs = try (0..<3).map { _ in
      let job = Job(kind: .waveform, recording: recording.id)
      try bench.catalog.insert(job)
      return job.id.text
    }
    let found = try await walk(bench, from: "/v1/jobs?recording=\(recording.id)&state=queued&limit=1")
    #expect(found == jobs.reversed())
  }

  @Test func aCompleteListHasNoLink() async throws {
    let bench = try TestBench()
    _ = try bench.recording()
    #expect(try await bench.respond(.get, "/v1/recordings?limit=1").fields["Link"] == nil)
  }
}
