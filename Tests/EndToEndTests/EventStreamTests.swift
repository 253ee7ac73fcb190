import Foundation
import Testing

/// Server-sent events over a real connection.
struct EventStreamTests {
  private struct Event {
    var name = "", id = ""
    var data = JSON.absent
  }

  private func events(_ text: String) throws -> [Event] {
    try text.components(separatedBy: "\n\n").compactMap { block in
      var event = Event()
      for line in block.split(separator: "\n") {
        if line.hasPrefix("event: ") { event.name = String(line.dropFirst(7)) }
        if line.hasPrefix("id: ") { event.id = String(line.dropFirst(4)) }
        if line.hasPrefix("data: ") { event.data = try JSON(Array(line.dropFirst(6).utf8)) }
      }
      return event.name.isEmpty ? nil : event
    }
  }

  @Test func aJobIsFollowedToItsEnd() throws {
    let server = try TestServer()
    let uploaded = try server.client.upload(LongClip.wave(), name: "long.wav")
    let job = try #require(uploaded["waveform"]["job"].string)
    let answer = try server.client.get("/v1/jobs/\(job)/events", ["Accept-Encoding": "gzip"])
    #expect(answer.status == 200 && answer["content-encoding"] == nil && answer["cache-control"] == "no-store")
    #expect(answer.text.hasPrefix("retry: "))
    let events = try events(answer.text)
    #expect(events.map(\.name) == Array(repeating: "progress", count: events.count - 1) + ["done"])
    #expect(Set(events.map(\.id)).count == events.count)
    let progress = events.compactMap(\.data["progress"].double)
    #expect(progress == progress.sorted() && progress.last == 1)
    #expect(events.last?.data["state"] == .string("succeeded"))
    #expect(try events.last?.data == server.client.get("/v1/jobs/\(job)").json)

    let again = try server.client.get("/v1/jobs/\(job)/events", ["Last-Event-ID": "1-370"])
    #expect(try self.events(again.text).map(\.name) == ["done"])
    #expect(try server.client.get("/v1/jobs/\(job)/events", ["Last-Event-ID": "done"]).status == 204)
    #expect(try server.client.send("HEAD", "/v1/jobs/\(job)/events").status == 200)
    try server.stop()
  }

  @Test func aServiceThatStopsEndsTheStream() throws {
    let server = try TestServer()
    let source = try #require(try server.client.uploadReady(LongClip.wave())["id"].string)
    let job = try #require(try server.client.denoise(source, #"{"noise":{"start":1,"end":3}}"#)["id"].string)
    let wire = try Wire(port: server.client.port)
    wire.send("GET /v1/jobs/\(job)/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    #expect(eventually { wire.hasInput })
    try server.stop()
    let answer = try wire.answer(to: "GET")
    #expect(answer.status == 200)
    let events = try events(answer.text)
    #expect(!events.isEmpty && events.allSatisfy { $0.name == "progress" })
    // After a restart, the service continues from there.
    try server.restart()
    let last = try #require(events.last?.id)
    let rest = try server.client.get("/v1/jobs/\(job)/events", ["Last-Event-ID": last])
    let more = try self.events(rest.text)
    #expect(more.last?.name == "done" && more.last?.data["state"] == .string("succeeded"))
    #expect(Set(more.map(\.id)).isDisjoint(with: events.map(\.id)))
    try server.stop()
  }

  @Test func theListIsFollowedUntilTheServiceStops() throws {
    let server = try TestServer()
    func follow(_ last: String?) throws -> Wire {
      let wire = try Wire(port: server.client.port)
      let field = last.map { "Last-Event-ID: \($0)\r\n" } ?? ""
      wire.send("GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\(field)\r\n")
      #expect(eventually { wire.hasInput })
      return wire
    }
    let wire = try follow(nil)
    let recording = try server.client.uploadReady(LongClip.wave(), name: "long.wav")
    let id = try #require(recording["id"].string)
    #expect(try server.client.delete("/v1/recordings/\(id)").status == 204)
    try server.stop()
    let answer = try wire.answer(to: "GET")
    #expect(answer.status == 200 && answer["content-type"] == "text/event-stream")
    let events = try events(answer.text)
    #expect(Set(events.map(\.name)) == ["recording", "job", "deleted"])
    #expect(events.filter { $0.name == "recording" }.last?.data["waveform"]["state"] == .string("ready"))
    #expect(events.filter { $0.name == "job" }.contains { $0.data["state"] == .string("succeeded") })
    #expect(events.last?.name == "deleted" && events.last?.data["id"] == .string(id))
    try server.restart()
    let again = try follow(try #require(events.last?.id))
    let other = try #require(try server.client.upload(LongClip.wave(), name: "other.wav")["id"].string)
    try server.stop()
    let rest = try self.events(again.answer(to: "GET").text)
    #expect(rest.first?.name == "resync" && rest.contains { $0.data["id"] == .string(other) })
  }
}
