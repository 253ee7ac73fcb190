import Foundation
import HTTP
import PresentRows
import Storage
import Testing

@testable import AudioService
@testable import Jobs

// A stream that never ends would block the whole run.
@Suite(.timeLimit(.minutes(5))) struct JobEventsTests {
  /// A stream, split into events the way a browser does.
  private struct Events {
    struct Event: Equatable {
      var name = "", id = "", data = ""
    }

    let response: HTTPResponse

    init(_ bench: TestBench, _ job: JobID, last: String? = nil) async throws {
      response = try await bench.respond(
        .get, "/v1/jobs/\(job)/events", fields: last.map { ["Last-Event-ID": $0] } ?? [:])
    }

    func piece() async throws -> String? {
      guard case .stream(nil, let next) = response.body else { return nil }
      return try await next().map { String(decoding: $0, as: UTF8.self) }
    }

    /// The next event; nil at the end.
    func next() async throws -> Event? {
      while let piece = try await piece() {
        var event = Event()
        for line in piece.split(separator: "\n") {
          if line.hasPrefix("event: ") { event.name = String(line.dropFirst(7)) }
          if line.hasPrefix("id: ") { event.id = String(line.dropFirst(4)) }
          if line.hasPrefix("data: ") { event.data = String(line.dropFirst(6)) }
        }
        if !event.name.isEmpty { return event }
      }
      return nil
    }
  }

  private func text(_ response: HTTPResponse) async throws -> String {
    String(decoding: try await response.body.collect(), as: UTF8.self)
  }

  private func value(_ json: String, _ member: String) throws -> String {
    let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
    return "\(try #require(object?[member]))"
  }

  @Test func aJobIsFollowedFromItsQueueToItsEnd() async throws {
    let bench = try TestBench(script: "progress 0.25; gate; progress 0.5; gate -last; finish")
    let job = try bench.waveformJob()
    try bench.makeGate(job.id, "-last")
    let events = try await Events(bench, job.id)
    #expect(events.response.status == .ok)
    #expect(events.response.fields["Content-Type"] == "text/event-stream")
    #expect(events.response.fields["Cache-Control"] == "no-store")
    let opening = try #require(try await events.piece())
    #expect(opening.hasPrefix("retry: 2000\n\nevent: progress\nid: 0-wait\ndata: {") && opening.hasSuffix("}\n\n"))

    bench.runner.submit(job)
    var seen: [Events.Event] = []
    while seen.last?.id != "1-250" { seen.append(try #require(try await events.next())) }
    let whole = try await text(try await bench.respond(.get, "/v1/jobs/\(job.id)"))
    let (members, expected) = (
      try JSONSerialization.jsonObject(with: Data(try #require(seen.last).data.utf8)) as? [String: Any],
      try JSONSerialization.jsonObject(with: Data(whole.utf8)) as? [String: Any]
    )
    #expect(Set(try #require(members).keys) == Set(try #require(expected).keys))
    #expect(try value(try #require(seen.last).data, "state") == "running")
    try await bench.openGate(job.id)
    seen.append(try #require(try await events.next()))
    #expect(seen.last?.id == "1-500")
    try await bench.openGate(job.id, "-last")
    let last = try #require(try await events.next())
    #expect(last.name == "done" && last.id == "done")
    #expect(last.data == (try await text(try await bench.respond(.get, "/v1/jobs/\(job.id)"))))
    #expect(try value(last.data, "state") == "succeeded")
    #expect(try await events.piece() == nil)
    #expect(seen.allSatisfy { $0.name == "progress" })
    let steps = try seen.map { try #require(JobStep($0.id)) }
    #expect(steps == steps.sorted() && Set(seen.map(\.id)).count == seen.count)
  }

  @Test func theStreamOfAFinishedJobIsOnlyItsEnd() async throws {
    let bench = try TestBench()
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    _ = try await bench.finished(job.id)
    for last in [nil, "1-370", "nonsense", "", "1-370-2", "-1-5"] {
      let events = try await Events(bench, job.id, last: last)
      #expect(try await events.next()?.name == "done")
      #expect(try await events.next() == nil)
    }
  }

  @Test func aClientThatHasSeenTheEndIsToldToStop() async throws {
    let bench = try TestBench(script: "gate; finish")
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    let early = try await Events(bench, job.id, last: "done")
    #expect(early.response.status == .ok)
    #expect(try await early.next()?.name == "progress")
    try await bench.openGate(job.id)
    _ = try await bench.finished(job.id)
    let events = try await Events(bench, job.id, last: "done")
    #expect(events.response.status == .noContent)
  }

  @Test func aReconnectingClientMissesNothingAndSeesNothingTwice() async throws {
    let bench = try TestBench(script: "progress 0.1; gate; progress 0.2; gate -2; progress 0.3; gate -3; finish")
    let job = try bench.waveformJob()
    for step in ["-2", "-3"] { try bench.makeGate(job.id, step) }
    bench.runner.submit(job)
    await bench.until(job.id) { $0?.fraction == 0.1 }
    let first = try await Events(bench, job.id)
    #expect(try await first.next()?.id == "1-100")
    // Nothing has happened since, so only the opening arrives.
    let same = try await Events(bench, job.id, last: "1-100")
    #expect(try await same.piece() == "retry: 2000\n\n")
    try await bench.openGate(job.id)
    #expect(try await same.next()?.id == "1-200")
    // Events while no client listens are delivered on the next connection.
    try await bench.openGate(job.id, "-2")
    await bench.until(job.id) { $0?.fraction == 0.3 }
    let again = try await Events(bench, job.id, last: "1-200")
    #expect(try await again.next()?.id == "1-300")
    try await bench.openGate(job.id, "-3")
    _ = try await bench.finished(job.id)
    let late = try await Events(bench, job.id, last: "1-300")
    #expect(try await late.next()?.name == "done")
    #expect(try await late.next() == nil)
  }

  @Test func progressContinuesFromTheFailedAttempt() async throws {
    let bench = try TestBench(script: "progress 0.7; [ $attempt -gt 1 ] || { gate; kill -9 $$; }; gate -2; finish")
    let job = try bench.waveformJob()
    try bench.makeGate(job.id, "-2")
    bench.runner.submit(job)
    await bench.until(job.id) { $0?.fraction == 0.7 }
    let events = try await Events(bench, job.id, last: "1-700")
    #expect(try await events.piece() == "retry: 2000\n\n")
    try await bench.openGate(job.id)
    var ids: [String] = []
    while ids.last != "2-700" { ids.append(try #require(try await events.next()).id) }
    #expect(ids.allSatisfy { $0 == "1-wait" || $0.hasPrefix("2-") })
    try await bench.openGate(job.id, "-2")
    #expect(try await events.next()?.name == "done")
  }

  @Test func aCommentIsSentWhileNothingHappens() async throws {
    let bench = try TestBench { $0.heartbeatSeconds = 0.01 }
    let job = try bench.waveformJob()
    let events = try await Events(bench, job.id)
    #expect(try await events.next()?.id == "0-wait")
    for _ in 0..<3 { #expect(try await events.piece() == ": \n\n") }
  }

  @Test func theStreamEndsWithTheService() async throws {
    let bench = try TestBench(script: "gate; finish")
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    await bench.begun(job.id)
    let events = try await Events(bench, job.id)
    #expect(try await events.next()?.name == "progress")
    let rest = Task { () -> Bool in
      while try await events.piece() != nil {}
      return true
    }
    try await bench.eventually { bench.runner.live.waiterCount(of: job.id) == 1 }
    bench.runner.live.endWaits()
    #expect(try await rest.value)
    await bench.runner.stop()
  }

  @Test func aClientThatDisconnectsIsForgotten() async throws {
    let bench = try TestBench()
    let job = try bench.waveformJob()
    let events = try await Events(bench, job.id)
    #expect(try await events.next() != nil)
    let waiting = Task { try await events.piece() }
    try await bench.eventually { bench.runner.live.waiterCount(of: job.id) == 1 }
    waiting.cancel()
    #expect(try await waiting.value == nil)
    #expect(bench.runner.live.waiterCount(of: job.id) == 0)
  }

  @Test func noCoderHoldsEventsBack() async throws {
    let bench = try TestBench()
    let job = try bench.waveformJob()
    let answer = try await bench.respond(
      .get, "/v1/jobs/\(job.id)/events", fields: ["Accept-Encoding": "gzip", "Accept": "text/event-stream"])
    #expect(!answer.fields.contains("Content-Encoding"))
    let head = try await bench.respond(.head, "/v1/jobs/\(job.id)/events")
    #expect(head.status == .ok && head.fields["Content-Type"] == "text/event-stream")
    let unknown = try await bench.respond(.get, "/v1/jobs/\(JobID())/events")
    #expect(unknown.status == .notFound)
  }

  @Test func laterStepsAreGreater() throws {
    let texts = ["0-wait", "1-0", "1-370", "1-1000", "1-wait", "2-0", "2-wait", "10-5", "done"]
    let steps = try texts.map { try #require(JobStep($0)) }
    #expect(steps == steps.sorted())
    #expect(steps.map(\.description) == texts)
    for nonsense in ["", "-", "1-", "-1", "1-1001", "1-2-3", "x-1", "99999999999999999999-1", "DONE"] {
      #expect(JobStep(nonsense) == nil, "\(nonsense)")
    }
  }

  /// Its row says that it's running; a client that looks now must not mistake the coming progress for old.
  @Test func aJobWhoseChildHasNotStartedIsBeforeAllItsProgress() throws {
    let row = Job(id: JobID(), kind: .waveform, recording: RecordingID(), state: .running, attempts: 2)
    let waiting = try JobSnapshot(
      JobDocument(row, live: LiveJob(attempts: 1, tenant: .none, recording: row.recording)), of: row)
    #expect(waiting.step == JobStep("1-wait"))
    let first = Job(
      id: JobID(), kind: .waveform, recording: RecordingID(), state: .running, startedAt: .now, attempts: 1)
    let new = JobDocument(first, live: LiveJob(tenant: .none, recording: first.recording))
    #expect(new.state == "queued" && new.attempts == 0 && new.startedAt == nil)
    let started = try JobSnapshot(
      JobDocument(row, live: LiveJob(isRunning: true, attempts: 2, tenant: .none, recording: row.recording)), of: row)
    #expect(started.step == JobStep("2-0"))
  }

  private static func threadCount() throws -> Int {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("Threads:") })
    return try #require(Int(line.dropFirst(8).trimmingCharacters(in: .whitespaces)))
  }

  @Test func thousandsOfWaitsCostNeitherThreadsNorQueries() async throws {
    let bench = try TestBench(script: "progress 0.1; gate; progress 0.2; gate -2; finish")
    let job = try bench.waveformJob()
    try bench.makeGate(job.id, "-2")
    bench.runner.submit(job)
    await bench.until(job.id) { $0?.fraction == 0.1 }
    let count = 1000
    try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<count {
        group.addTask {
          let events = try await Events(bench, job.id, last: "1-100")
          var last = Events.Event()
          while let event = try await events.next() { last = event }
          return last.name
        }
        group.addTask {
          let answer = try await bench.respond(.get, "/v1/jobs/\(job.id)?wait=60")
          return try self.value(try await self.text(answer), "progress")
        }
      }
      try await bench.eventually { bench.runner.live.waiterCount(of: job.id) == 2 * count }
      #expect(try Self.threadCount() < 200)
      let reads = bench.catalog.readCount
      try await bench.openGate(job.id)
      // The clients following the events wait again.
      try await bench.eventually {
        bench.runner.live[job.id]?.fraction == 0.2 && bench.runner.live.waiterCount(of: job.id) == count
      }
      // Nothing was written, so the step costs no query.
      #expect(bench.catalog.readCount == reads)
      try await bench.openGate(job.id, "-2")
      var answers: [String: Int] = [:]
      for try await answer in group { answers[answer, default: 0] += 1 }
      #expect(answers == ["done": count, "0.2": count])
      // The runner's own reads, and the few reads shared by the clients.
      #expect(bench.catalog.readCount - reads < 20)
    }
  }
}
