import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService
@testable import Jobs

@Suite struct BatchTests {
  private struct Document: Decodable {
    var id, state: String
    var total, succeeded, failed, cancelled: Int
    var progress: Double
    var finished_at: String?

    /// Succeeded, failed, canceled.
    var counts: [Int] { [succeeded, failed, cancelled] }
  }

  /// Children of `trim` wait to be released, one at a time.
  private static let held = "[ $command != trim ] || read -r line < $folder/hold; finish"

  private func document(_ text: String) throws -> Document {
    try JSONDecoder().decode(Document.self, from: Data(text.utf8))
  }

  private func bench(_ script: String = "finish", _ change: (inout Configuration) -> Void = { _ in }) throws
    -> TestBench
  {
    let bench = try TestBench(script: script, change)
    bench.context.batches.start(in: bench.context)
    return bench
  }

  private func create(_ bench: TestBench, _ recordings: [RecordingID], _ operation: String) async throws -> Document {
    let list = recordings.map { "\"\($0)\"" }.joined(separator: ",")
    return try document(
      try await bench.check(.post, "/v1/batches", body: "{\"recordings\":[\(list)],\(operation)}", 202))
  }

  /// Returns the batch once a condition holds.
  private func until(
    _ bench: TestBench, _ batch: Document, _ condition: (Document) -> Bool = { $0.finished_at != nil }
  ) async throws -> Document {
    while true {
      let now = try document(try await bench.check(.get, "/v1/batches/\(batch.id)?wait=60", 200))
      if condition(now) { return now }
    }
  }

  @Test(
    "each operation is done to every recording",
    arguments: [
      #""denoise":{"strength":"strong","format":"flac"}"#, #""trim":{"start":1,"end":2}"#,
      #""convert":{"format":"flac"}"#, #""loudness":{}"#,
    ])
  func operations(operation: String) async throws {
    let bench = try bench()
    let sources = try (0..<5).map { try bench.recording(name: "talk \($0).wav").id }
    let batch = try await create(bench, sources, operation)
    #expect(batch.state == "queued" && batch.total == 5)
    let ended = try await until(bench, batch)
    #expect(ended.state == "succeeded" && ended.counts == [5, 0, 0] && ended.progress == 1)
    let jobs = try bench.catalog.jobs(limit: 99)
    #expect(Set(jobs.map(\.recording)) == Set(sources) && jobs.count == 5)
    // What is there already isn't done again.
    let isKept = operation.contains("convert") || operation.contains("loudness")
    let again = try await until(bench, try await create(bench, sources, operation))
    #expect(again.counts == [5, 0, 0])
    #expect(try bench.catalog.jobs(limit: 99).count == (isKept ? 5 : 10))
  }

  @Test("a recording that is missing, or can't have the operation, counts as failed, and a job says why")
  func failures() async throws {
    let bench = try bench()
    let good = try bench.recording()
    let batch = try await create(bench, [RecordingID(), good.id], #""trim":{"start":70,"end":80}"#)
    let ended = try await until(bench, batch)
    #expect(ended.state == "failed" && ended.counts == [0, 2, 0])
    let jobs = try await bench.check(.get, "/v1/batches/\(batch.id)/jobs", 200)
    #expect(jobs.contains(#""code":"invalid_member""#) && jobs.contains(#""state":"failed""#))
    #expect(try bench.catalog.jobs(limit: 9).count == 1)
    let body = #"{"recordings":["\#(good.id)","x","00000000-0000-0000-0000-000000000000"],"loudness":{}}"#
    _ = try await bench.check(.post, "/v1/batches", body: body, 202)
    let listed = try await bench.check(.get, "/v1/batches?limit=1", 200)
    #expect(listed.contains(#""total":3"#), "\(listed)")
  }

  @Test("single jobs begin before the next job of a batch, which takes none of the client's room in the queue")
  func singleJobsFirst() async throws {
    let bench = try bench(Self.held) {
      $0.workerCount = 1
      $0.maximumQueuedJobsPerClient = 2
    }
    try bench.holdProbe()
    let sources = try (0..<6).map { _ in try bench.recording().id }
    let batch = try await create(bench, sources, #""trim":{"start":1,"end":2}"#)
    _ = try await until(bench, batch) { $0.state == "running" }
    await bench.begun(try #require(try bench.catalog.jobs(limit: 1).first).id)
    _ = try await bench.check(.post, "/v1/recordings/\(sources[5])/trim", body: #"{"start":3,"end":4}"#, 202)
    let single = try #require(try bench.catalog.jobs(limit: 1).first)
    #expect(single.batch == nil)
    try await bench.releaseProbe()
    await bench.begun(single.id)
    #expect(try bench.catalog.jobs(limit: 99).count == 2)
    try await bench.releaseProbe()
    _ = try await bench.finished(single.id)
    for done in 2...6 {
      try await bench.releaseProbe()
      _ = try await until(bench, batch) { $0.succeeded == done }
    }
    #expect(try await until(bench, batch).counts == [6, 0, 0])
  }

  @Test("canceling ends the running jobs and those to come, and leaves finished results")
  func cancelling() async throws {
    let bench = try bench(Self.held) { $0.workerCount = 1 }
    try bench.holdProbe()
    let batch = try await create(
      bench, try (0..<4).map { _ in try bench.recording().id }, #""trim":{"start":1,"end":2}"#)
    try await bench.releaseProbe()
    _ = try await until(bench, batch) { $0.succeeded == 1 }
    try await bench.eventually { try bench.catalog.jobs(limit: 9).count == 2 }
    let answer = try await bench.respond(.delete, "/v1/batches/\(batch.id)")
    #expect(answer.status == .accepted && answer.fields["Location"] == "/v1/batches/\(batch.id)")
    let ended = try await until(bench, batch)
    #expect(ended.state == "cancelled" && ended.counts == [1, 0, 3])
    await bench.allEnd()
    #expect(try bench.catalog.recordings(limit: 9).count == 5)
    #expect(try await bench.check(.delete, "/v1/batches/\(batch.id)", 409).contains("batch_finished"))
  }

  @Test("a batch goes on after a restart, and no recording has two turns")
  func restart() async throws {
    let before = try TestBench()
    let sources = try (0..<3).map { _ in try before.recording().id }
    let batch = try await create(before, sources, #""loudness":{}"#)
    let after = try TestBench(in: before.folder)
    after.context.batches.start(in: after.context)
    #expect(try await until(after, batch).counts == [3, 0, 0])
    #expect(try after.catalog.jobs(limit: 99).count == 3)
  }

  @Test("its events are its progress, then done, and a client that has seen that isn't told again")
  func events() async throws {
    let bench = try bench()
    let batch = try await create(bench, [try bench.recording().id, RecordingID()], #""loudness":{}"#)
    let response = try await bench.respond(.get, "/v1/batches/\(batch.id)/events")
    guard case .stream(_, let next) = response.body else {
      Issue.record("no stream")
      return
    }
    var text = ""
    while let piece = try await next() { text += String(decoding: piece, as: UTF8.self) }
    #expect(text.hasPrefix("retry: 2000\n\n") && text.contains("event: done\nid: done\ndata: {"))
    #expect(text.components(separatedBy: "event: done").count == 2)
    let again = try await bench.respond(.get, "/v1/batches/\(batch.id)/events", fields: ["Last-Event-ID": "done"])
    #expect(again.status == .noContent)
  }

  @Test("a repeated key gets the first answer, and begins nothing")
  func repeated() async throws {
    let bench = try bench()
    let body = #"{"recordings":["\#(try bench.recording().id)"],"loudness":{}}"#
    let first = try await bench.send(.post, "/v1/batches", fields: ["Idempotency-Key": "once"], body: body, 202)
    let second = try await bench.send(.post, "/v1/batches", fields: ["Idempotency-Key": "once"], body: body, 202)
    #expect(first.text == second.text && second.fields["Idempotency-Replayed"] == "true")
    #expect(try await bench.check(.get, "/v1/batches", 200).components(separatedBy: "created_at").count == 2)
  }

  @Test(
    "a request without exactly one operation, or with members that it doesn't have, is refused",
    arguments: [
      ("{}", "denoise"), (#"{"recordings":[]}"#, "denoise"), (#"{"loudness":{}}"#, "recordings"),
      (#"{"recordings":[],"loudness":{}}"#, "recordings"), (#"{"recordings":[7],"loudness":{}}"#, "recordings"),
      (#"{"recordings":["x"],"loudness":{},"trim":{"start":0,"end":1}}"#, "loudness"),
      (#"{"recordings":["x"],"loudness":{"a":1}}"#, "loudness.a"),
      (#"{"recordings":["x"],"loudness":null}"#, "loudness"),
      (#"{"recordings":["x"],"convert":{"format":"mp3"},"loudness":null}"#, "convert"),
      (#"{"recordings":["x"],"denoise":{"callback_url":"http://a.b"}}"#, "denoise.callback_url"),
      (#"{"recordings":["x"],"denoise":{"noise":{"from":1}}}"#, "denoise.noise.from"),
      (#"{"recordings":["x"],"denoise":{"strength":"huge"}}"#, "denoise.strength"),
      (#"{"recordings":["x"],"convert":{}}"#, "convert.format"), (#"{"recordings":["x"],"trim":7}"#, "trim"),
    ])
  func refused(body: String, member: String) async throws {
    let bench = try bench()
    let text = try await bench.check(.post, "/v1/batches", body: body, 400)
    #expect(text.contains(#""parameter":"\#(member)""#), "\(text)")
  }

  @Test("a noise profile that doesn't exist is named at once, and no batch is made")
  func unknownProfile() async throws {
    let bench = try bench()
    let (source, profile) = (try bench.recording(), KeptProfileID())
    let body = #"{"recordings":["\#(source.id)"],"denoise":{"noise":{"profile":"\#(profile)"}}}"#
    let text = try await bench.check(.post, "/v1/batches", body: body, 404)
    #expect(text.contains(#""parameter":"denoise.noise.profile""#) && text.contains("\(profile)"))
    #expect(try await bench.check(.get, "/v1/batches", 200).contains(#""batches":[]"#))
  }

  @Test("another tenant's batch doesn't exist")
  func tenants() async throws {
    let keyed = try KeyedBench()
    let body = #"{"recordings":["\#(RecordingID())"],"loudness":{}}"#
    let made = try #require(
      try await keyed.respond(.post, "/v1/batches", body: body).fields["Location"])
    let reads: [(HTTPMethod, String)] = [(.get, ""), (.get, "/jobs"), (.get, "/events"), (.delete, "")]
    for (method, path) in reads {
      #expect(try await keyed.respond(method, made + path, key: "theirs").status == .notFound)
    }
    let list = try await keyed.respond(.get, "/v1/batches", key: "theirs").body.collect()
    #expect(String(decoding: list, as: UTF8.self).contains(#""batches":[]"#))
    #expect(try await keyed.respond(.post, "/v1/batches", key: "reader", body: body).status == .forbidden)
    #expect(try await keyed.respond(.delete, made, key: "reader").status == .forbidden)
  }
}
