import HTTP
import PresentRows
import Storage
import Testing

@testable import AudioService
@testable import Jobs

/// Lists join documents that are kept, and show every change at once.
@Suite struct RecordingListTests {
  private func names(_ bench: TestBench, _ query: String = "") async throws -> [String] {
    let text = try await bench.send(.get, "/v1/recordings" + query, 200).text
    return text.split(separator: "\"name\":\"").dropFirst().map { String($0.prefix { $0 != "\"" }) }
  }

  @Test("a list of which nothing has changed reads only IDs")
  func again() async throws {
    let bench = try TestBench()
    for name in ["one", "two", "three"] { _ = try bench.recording(name: name) }
    let list = try await bench.send(.get, "/v1/recordings", 200)
    let reads = bench.catalog.readCount
    let again = try await bench.send(.get, "/v1/recordings", 200)
    #expect(again.text == list.text && again.fields["ETag"] == list.fields["ETag"])
    #expect(bench.catalog.readCount == reads + 1)
    // Pages and other orders are made of the same documents.
    #expect(try await names(bench, "?limit=2&sort=name&order=desc") == ["two", "three"])
    #expect(bench.catalog.readCount == reads + 2)
  }

  @Test("a new, a renamed and a deleted recording are in the next list")
  func changes() async throws {
    let bench = try TestBench()
    let (one, two) = (try bench.recording(name: "one"), try bench.recording(name: "two"))
    #expect(try await names(bench) == ["two", "one"])
    _ = try bench.catalog.update(one.id) { $0.name = "first" }
    #expect(try await names(bench) == ["two", "first"])
    _ = try bench.recording(name: "three")
    #expect(try await names(bench) == ["three", "two", "first"])
    _ = try bench.catalog.deleteRecording(two.id)
    #expect(try await names(bench) == ["three", "first"])
    #expect(try await names(bench, "?q=first") == ["first"])
  }

  @Test("a list shows how far a waveform has come, and that it is ready")
  func progress() async throws {
    let bench = try TestBench(script: "progress 0.5; gate; finish")
    let job = try bench.waveformJob()
    func waveform() async throws -> String {
      let list = try await bench.send(.get, "/v1/recordings", 200).text
      return String(try #require(list.firstMatch(of: /"progress":([0-9.]+),"scales":[^\]]+\],"state":"([a-z]+)"/)?.0))
    }
    #expect(try await waveform().contains("queued"))
    bench.runner.submit(job)
    await bench.until(job.id) { $0?.fraction == 0.5 }
    for _ in 0..<2 { #expect(try await waveform().hasPrefix("\"progress\":0.5,")) }
    try await bench.openGate(job.id)
    _ = try await bench.finished(job.id)
    for _ in 0..<2 { #expect(try await waveform().contains("ready")) }
  }

  @Test("a row that changes while a list is made is read again for the next list")
  func changedMeanwhile() throws {
    let bench = try TestBench()
    let recording = try bench.recording(name: "old")
    let documents = bench.context.documents
    let list = try documents.list([recording.id], of: .none) {
      let rows = try bench.catalog.recordings(limit: 9)
      _ = try bench.catalog.update(recording.id) { $0.name = "new" }
      return rows
    }
    #expect(list.map(\.row.name) == ["old"])
    let next = try documents.list([recording.id], of: .none) { try bench.catalog.recordings(limit: 9) }
    #expect(next.map(\.row.name) == ["new"])
    // Another tenant's list doesn't find it.
    #expect(try documents.list([recording.id], of: #require(Tenant("theirs")), { [] }).isEmpty)
  }
}
