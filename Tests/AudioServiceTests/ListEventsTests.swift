import Foundation
import HTTP
import PresentRows
import Storage
import Terms
import Testing

@testable import AudioService
@testable import Jobs

/// `GET /v1/events`. A stream that never ends would block the whole run.
@Suite(.timeLimit(.minutes(5))) struct ListEventsTests {
  private struct Event: Equatable {
    var name = "", id = "", data = ""

    /// The ID of the object in the event.
    var subject: String? {
      let object = try? JSONSerialization.jsonObject(with: Data(data.utf8)) as? [String: Any]
      return object?["id"] as? String
    }
  }

  /// A stream, split into events the way a browser does.
  private final class Events {
    let response: HTTPResponse
    private(set) var lastID = ""
    private var waiting: [Event] = []

    init(_ bench: TestBench, last: String? = nil, from peer: String = "in-process") async throws {
      response = try await bench.respond(
        .get, "/v1/events", fields: last.map { ["Last-Event-ID": $0] } ?? [:], from: peer)
    }

    func piece() async throws -> String? {
      guard case .stream(nil, let next) = response.body else { return nil }
      return try await next().map { String(decoding: $0, as: UTF8.self) }
    }

    /// The next event with data; nil at the end.
    func next() async throws -> Event? {
      while waiting.isEmpty {
        guard let piece = try await piece() else { return nil }
        for block in piece.components(separatedBy: "\n\n") {
          var event = Event()
          for line in block.split(separator: "\n") {
            if line.hasPrefix("event: ") { event.name = String(line.dropFirst(7)) }
            if line.hasPrefix("id: ") { event.id = String(line.dropFirst(4)) }
            if line.hasPrefix("data: ") { event.data = String(line.dropFirst(6)) }
          }
          if !event.id.isEmpty { lastID = event.id }
          if !event.data.isEmpty { waiting.append(event) }
        }
      }
      return waiting.removeFirst()
    }
  }

  @Test("what happens to a recording and its job is told in order, with their current documents")
  func life() async throws {
    let bench = try TestBench(script: "gate; finish")
    let events = try await Events(bench)
    #expect(events.response.status == .ok && events.response.fields["Content-Type"] == "text/event-stream")
    #expect(try await events.piece()?.hasPrefix("retry: 2000\nid: ") == true)
    let job = try bench.waveformJob()
    let first = try #require(try await events.next())
    #expect(first.name == "recording" && first.subject == job.recording.text)
    let second = try #require(try await events.next())
    #expect(second.name == "job" && second.subject == job.id.text && second.data.contains("\"state\":\"queued\""))
    bench.runner.submit(job)
    var seen: [Event] = []
    while !(seen.last?.data.contains("\"state\":\"running\"") ?? false) {
      seen.append(try #require(try await events.next()))
    }
    try await bench.openGate(job.id)
    while !seen.contains(where: { $0.name == "job" && $0.data.contains("\"state\":\"succeeded\"") })
      || !seen.contains(where: { $0.name == "recording" && $0.data.contains("\"state\":\"ready\"") })
    {
      seen.append(try #require(try await events.next()))
    }
    #expect(try await bench.respond(.delete, "/v1/recordings/\(job.recording)").status == .noContent)
    while seen.last?.name != "deleted" { seen.append(try #require(try await events.next())) }
    #expect(seen.last?.data == "{\"id\":\"\(job.recording)\"}")
  }

  @Test("a client that comes again gets what has changed since, each thing once, and nothing twice")
  func again() async throws {
    let bench = try TestBench()
    let events = try await Events(bench)
    _ = try await events.piece()
    let one = try bench.recording(name: "one.wav")
    _ = try #require(try await events.next())
    for name in ["a", "b", "c"] { try bench.catalog.update(one.id) { $0.name = name } }
    let two = try bench.recording(name: "two.wav")
    let later = try await Events(bench, last: events.lastID)
    let changed = [try #require(try await later.next()), try #require(try await later.next())]
    #expect(changed.map(\.subject) == [one.id.text, two.id.text] && changed[0].data.contains("\"name\":\"c\""))
    let current = try await Events(bench, last: later.lastID)
    try bench.catalog.update(two.id) { $0.name = "d" }
    #expect(try await current.next()?.data.contains("\"name\":\"d\"") == true)
  }

  @Test("a client whose place is unknown is told to read the list again", arguments: ["1-5", "x", "", "0-0", "ff-"])
  func resync(last: String) async throws {
    let bench = try TestBench()
    _ = try bench.recording()
    let events = try await Events(bench, last: last)
    let first = try #require(try await events.next())
    #expect(first.name == "resync" && first.data == "{}")
    let recording = try bench.recording()
    #expect(try await events.next()?.subject == recording.id.text)
  }

  @Test("a client that is too slow loses its place, not the service its memory")
  func slow() async throws {
    let feed = ChangeFeed(streams: ClientTally(limit: 1, clientLimit: { _ in 1 }), clock: .system)
    let start = feed.now(of: .none)
    let ids = (0..<ChangeFeed.limit).map { _ in RecordingID() }
    for id in ids { feed.post(CatalogChanges(recordings: [Owned(id, of: .none)])) }
    let all = try #require(feed.changes(of: .none, since: start, most: .max))
    #expect(all.subjects == ids.map { .recording($0) } && all.place == feed.now(of: .none))
    let some = try #require(feed.changes(of: .none, since: start, most: 3))
    #expect(some.subjects == ids.prefix(3).map { .recording($0) })
    feed.post(CatalogChanges(deleted: [Owned(ids[0], of: .none)]))
    #expect(feed.changes(of: .none, since: start, most: 1) == nil)
    #expect(feed.changes(of: .none, since: some.place, most: .max)?.subjects.last == .deleted(ids[0]))
    #expect(feed.changes(of: .none, since: .init(run: start.run, number: 99_999), most: 1) == nil)
  }

  @Test("a tenant's flood moves no other tenant's place, and tells it nothing")
  func floods() throws {
    let feed = ChangeFeed(
      streams: ClientTally(limit: 1, clientLimit: { _ in 1 }), totalLimit: 3 * ChangeFeed.limit,
      clock: .system)
    let (calm, flooding) = (try #require(Tenant("calm")), try #require(Tenant("flooding")))
    let start = feed.now(of: calm)
    let own = RecordingID()
    feed.post(CatalogChanges(recordings: [Owned(own, of: calm)]))
    let flood = (0..<2 * ChangeFeed.limit).map { _ in Owned<Recording>(RecordingID(), of: flooding) }
    feed.post(CatalogChanges(recordings: flood))
    let found = try #require(feed.changes(of: calm, since: start, most: .max))
    #expect(found.subjects == [.recording(own)] && found.place.number == 1)
    #expect(feed.changes(of: flooding, since: start, most: 1) == nil)
  }

  @Test("the changes of many tenants take a bounded memory: those of the quietest are forgotten, who read again")
  func forgotten() async throws {
    let feed = ChangeFeed(streams: ClientTally(limit: 1, clientLimit: { _ in 1 }), totalLimit: 100, clock: .system)
    let tenants = try (0..<11).map { try #require(Tenant("tenant \($0)")) }
    let places = tenants.map { feed.now(of: $0) }
    let wait = Task.immediate { await feed.wait(of: tenants[0], since: places[0], seconds: 10_000) }
    for tenant in tenants.dropFirst() {
      feed.post(CatalogChanges(jobs: (0..<10).map { _ in JobChange(JobID(), of: tenant) }))
      #expect(feed.changes(of: tenant, since: feed.now(of: tenant), most: 1) != nil)
    }
    feed.post(CatalogChanges(jobs: [JobChange(JobID(), of: tenants[10])]))
    await wait.value
    let kept = zip(tenants, places).map { feed.changes(of: $0, since: $1, most: 99)?.subjects.count }
    #expect(kept == [nil, nil, nil, nil, 10, 10, 10, 10, 10, 10, 11])
    for tenant in tenants { #expect(feed.changes(of: tenant, since: feed.now(of: tenant), most: 1)?.subjects == []) }
  }

  @Test("a deleted upload isn't a deleted recording")
  func uploads() async throws {
    let bench = try TestBench()
    let events = try await Events(bench)
    _ = try await events.piece()
    let made = try await bench.respond(
      .post, "/v1/uploads", fields: ["Tus-Resumable": "1.0.0", "Upload-Length": "10"])
    let path = try #require(made.fields["Location"])
    #expect(try await bench.respond(.delete, path, fields: ["Tus-Resumable": "1.0.0"]).status == .noContent)
    let recording = try bench.recording()
    #expect(try await events.next()?.subject == recording.id.text)
  }

  @Test("a quiet stream is kept open by comments, and ends when the service stops")
  func quiet() async throws {
    let bench = try TestBench { $0.heartbeatSeconds = 0.01 }
    let events = try await Events(bench)
    _ = try await events.piece()
    #expect(try await events.piece() == ": \n\n")
    bench.context.changes.endWaits()
    #expect(try await events.piece() == nil)
  }

  @Test("one client can't open all streams")
  func limited() async throws {
    let bench = try TestBench { ($0.maximumEventStreams, $0.maximumEventStreamsPerClient) = (3, 2) }
    var open: [Events] = []
    for peer in ["192.0.2.1", "192.0.2.1", "192.0.2.2"] { open.append(try await Events(bench, from: peer)) }
    #expect(open.allSatisfy { $0.response.status == .ok })
    let refused = try await bench.respond(.get, "/v1/events", from: "192.0.2.1")
    #expect(refused.status.code == 429 && refused.fields["Retry-After"] == "5")
    #expect(String(decoding: try await refused.body.collect(), as: UTF8.self).contains("limit_event_streams"))
    #expect(try await bench.respond(.get, "/v1/events", from: "192.0.2.3").status == .serviceUnavailable)
    open.removeAll()
    #expect(try await bench.respond(.get, "/v1/events", from: "192.0.2.1").status == .ok)
  }

  @Test("a tenant is told nothing of another one's recordings, not even that they are gone")
  func tenants() async throws {
    let keyed = try KeyedBench()
    let answer = try await keyed.respond(.get, "/v1/events", key: "theirs")
    guard case .stream(nil, let next) = answer.body else { return }
    _ = try await next()
    let ours = try await keyed.recording(key: "ours")
    #expect(try await keyed.respond(.delete, "/v1/recordings/\(ours)", key: "ours").status == .noContent)
    let theirs = try await keyed.recording(key: "theirs")
    #expect(try await keyed.respond(.delete, "/v1/recordings/\(theirs)", key: "theirs").status == .noContent)
    var text = ""
    while !text.contains("event: deleted") {
      text += String(decoding: try #require(try await next()), as: UTF8.self)
    }
    #expect(text.contains("{\"id\":\"\(theirs)\"}") && !text.contains(ours.text), "\(text)")
  }
}
