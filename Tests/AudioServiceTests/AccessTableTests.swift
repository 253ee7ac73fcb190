import Contract
import Foundation
import HTTP
import PresentRows
import Storage
import Synchronization
import Terms
import Testing
import Webhooks
import Workers

@testable import AudioService
@testable import Jobs

/// Who gets which status on every route, with keys.
///
///     STILLWAVE_TABLES=remake deploy/test --filter AccessTableTests
///
/// writes the table of docs/security.md.
@Suite struct AccessTableTests {
  /// What a tenant has, for the names in paths.
  private struct Things {
    let recording: String
    let track, job, upload, profile: String

    func path(of route: ServiceRoute) -> String {
      let id =
        switch route.pattern.split(separator: "/").dropFirst().first {
        case "uploads": upload
        case "jobs": job
        case "noise-profiles": profile
        default: recording
        }
      return route.pattern.replacing("{id}", with: id).replacing("{track}", with: track)
        .replacing("{code}", with: "not_found").replacing("/embed/{file}", with: "/embed/stillwave.js")
        .replacing("/oembed", with: "/oembed?url=http://localhost/embed%23recording=\(recording)")
    }
  }

  private static func things(_ keyed: KeyedBench, key: String = "ours") async throws -> Things {
    let id = try await keyed.recording(key: key)
    let job = try #require(try keyed.bench.catalog.recording(id)?.waveformJob)
    _ = try await keyed.bench.finished(job)
    let track = LabelTrack(of: id, name: "Words", kind: .labels, language: nil, source: .upload)
    try keyed.bench.catalog.insert(track, [], limit: 9)
    let made = try await keyed.respond(.post, "/v1/uploads", key: key, fields: ["Upload-Length": "8"])
    let upload = try #require(made.fields["Location"]).dropFirst("/v1/uploads/".count)
    let tenant = try #require(try keyed.bench.catalog.recording(id)).tenant
    let profile = KeptProfile(
      name: "Fan", recording: id, noise: nil, sampleRate: nil, channels: 1,
      spectrum: Array(#"{"frequencies":[0,1],"power_db":[[1,1]]}"#.utf8))
    try keyed.bench.catalog.of(tenant).insert(profile, limit: 9)
    return Things(
      recording: id.text, track: track.id.text, job: job.text, upload: String(upload), profile: profile.id.text)
  }

  private static func scope(_ rule: AccessRule, _ method: HTTPMethod) -> String {
    switch rule {
    case .everyone: "—"
    case .operators: "admin"
    case .anyKey: "any"
    case .key(let scope): scope.rawValue
    case .recording(let scope): "\(scope.rawValue), or a token"
    case .jobEvents: "read, or a token"
    case .newUpload: "write, or a token"
    case .upload: (method == .head ? "read or write" : method == .delete ? "delete" : "write") + ", or a token"
    }
  }

  @Test func everyRouteRefusesEveryoneWithoutTheRightKey() async throws {
    let keyed = try KeyedBench()
    let ours = try await Self.things(keyed)
    let other = try await keyed.recording()
    let foreign = try await keyed.token("{\"recording\":\"\(other)\",\"scopes\":[\"read\",\"write\",\"delete\"]}")
    var rows = ["| route | scope | no key | wrong key | wrong scope | other tenant | other token | expired |"]
    rows.append("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for route in routes(keyed.bench.context) + [ViewerFiles.route] {
      let path = ours.path(of: route).replacing("{file}", with: "index.html")
      // An admin's key is the only one with the scope of an operator's route, and has no other. A key can't mint a
      // scope that it hasn't.
      let wrongScope = route.rule == .operators ? "ours" : route.rule == .anyKey ? "reader" : "root"
      let body = route.rule == .anyKey ? "{\"recording\":\"\(ours.recording)\",\"scopes\":[\"write\"]}" : ""
      var cells: [String] = []
      for key in [nil, "nobody-has-this-secret-0123456789", wrongScope, "theirs", foreign, "old"] {
        let status = try await keyed.status(route.method, path, key: key, fields: ["Host": "localhost"], body: body)
        cells.append("\(status)")
        let isOpen = route.rule == .everyone
        switch key {
        case nil, "nobody-has-this-secret-0123456789", "old": #expect(isOpen ? status < 300 : status == 401, "\(path)")
        case wrongScope: #expect(isOpen ? status < 300 : status == 403, "\(path)")
        case foreign where !isOpen: #expect([403, 404].contains(status), "\(path)")
        case "theirs" where route.pattern.contains("{id}"): #expect(status == 404, "\(route.method) \(path)")
        default: break
        }
      }
      let scope = Self.scope(route.rule, route.method)
      rows.append("| `\(route.method.rawValue) \(route.pattern)` | \(scope) | \(cells.joined(separator: " | ")) |")
    }
    #expect(try keyed.bench.catalog.recording(#require(RecordingID(ours.recording))) != nil)
    try Self.compare(rows.joined(separator: "\n") + "\n")
  }

  private static func compare(_ table: String) throws {
    let document = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appending(path: "../../docs/security.md").standardized
    let text = try String(contentsOf: document, encoding: .utf8)
    let begin = "<!-- access -->\n"
    let parts = text.components(separatedBy: begin)
    try #require(parts.count == 2, "docs/security.md has no place for the table")
    let written = try #require(parts[1].components(separatedBy: "<!-- end -->").first)
    if ProcessInfo.processInfo.environment["STILLWAVE_TABLES"] == "remake" {
      try text.replacing(begin + written, with: begin + table).write(to: document, atomically: true, encoding: .utf8)
    } else {
      #expect(written == table, "docs/security.md is out of date; STILLWAVE_TABLES=remake writes it")
    }
  }

  /// Takes two tenants through the whole contract with each other's IDs.
  @Test func nothingOfAnotherTenantExists() async throws {
    let keyed = try KeyedBench()
    let (ours, theirs) = (try await Self.things(keyed), try await Self.things(keyed, key: "theirs"))
    let document = try OpenAPIDocument.shared.get()
    let allRoutes = routes(keyed.bench.context)
    for operation in document.operations where operation.path.hasPrefix("/v1/") && operation.path.contains("{id}") {
      let route = try #require(
        allRoutes.first { $0.method.rawValue == operation.method && $0.pattern == operation.path })
      for (key, things) in [("ours", theirs), ("theirs", ours)] {
        let path = things.path(of: route)
        // Conditions that hold for every existing resource.
        for fields in [[:], ["If-None-Match": "*"], ["If-Match": "*"]] as [HTTPFields] {
          let body = route.method == .patch ? "{\"name\":\"stolen\"}" : ""
          let status = try await keyed.status(route.method, path, key: key, fields: fields, body: body)
          #expect(status == 404, "\(operation.method) \(path) \(fields)")
        }
      }
    }
    for (key, own, others) in [("ours", ours, theirs), ("theirs", theirs, ours)] {
      for path in [
        "/v1/recordings", "/v1/recordings?q=record", "/v1/recordings?q=r", "/v1/jobs",
        "/v1/jobs?state=succeeded", "/v1/recordings?cursor=\(RecordingID())",
      ] {
        let list = String(
          decoding: try await keyed.respond(.get, path, key: key).body.collect(), as: UTF8.self)
        #expect(list.contains(own.recording), "\(path): \(list)")
        #expect(!list.contains(others.recording) && !list.contains(others.job), "\(path)")
      }
      let jobs = try await keyed.respond(.get, "/v1/jobs?recording=\(others.recording)", key: key)
      #expect(String(decoding: try await jobs.body.collect(), as: UTF8.self).contains("\"jobs\":[]"))
      // Another tenant's recording can't be drawn over one's own.
      let picture = "/v1/recordings/\(own.recording)/waveform.png?overlay=\(others.recording)"
      #expect(try await keyed.status(.get, picture, key: key) == 404)
      let track = "/v1/recordings/\(own.recording)/labels/\(others.track)"
      #expect(try await keyed.status(.get, track, key: key) == 404)
      #expect(
        try await keyed.status(.post, "/v1/tokens", key: key, body: "{\"recording\":\"\(others.recording)\"}") == 404)
      #expect(try await keyed.status(.get, "/v1/jobs/\(others.job)?wait=60", key: key) == 404)
    }
    for things in [ours, theirs] {
      let id = try #require(RecordingID(things.recording))
      #expect(try keyed.bench.catalog.recording(id)?.name != "stolen")
    }
  }

  @Test("what another tenant has costs the statements and rows of what never was, whatever is cached")
  func costs() async throws {
    let notes = Mutex<StatementNotes?>(nil)
    let keyed = try KeyedBench(engine: { engine in
      let noting = StatementNotes(engine)
      notes.withLock { $0 = noting }
      return noting
    })
    let statements = try #require(notes.withLock { $0 })
    let (theirs, own) = (try await Self.things(keyed), try await Self.things(keyed, key: "theirs"))
    let never = Things(
      recording: RecordingID().text, track: LabelTrackID().text, job: JobID().text, upload: UploadID().text,
      profile: KeptProfileID().text)
    // A waveform without a file would be built again beside the requests.
    for things in [theirs, own] {
      let id = try #require(RecordingID(things.recording))
      try keyed.bench.makeWaveform(of: try #require(try keyed.bench.catalog.recording(id)))
    }
    await keyed.bench.allEnd()
    let all = routes(keyed.bench.context).filter { $0.pattern.contains("{id}") && $0.pattern.hasPrefix("/v1/") }
    // Their owner has just read them.
    let path = "/v1/recordings/\(theirs.recording)"
    for target in [path, path + "/waveform?width=100", path + "/peaks.json?width=9", "/v1/jobs/\(theirs.job)"] {
      for _ in 0..<2 { #expect(try await keyed.status(.get, target) == 200) }
    }
    var cases = all.flatMap { route in
      (route.method == .get ? ["", "?width=100", "?wait=1"] : [""]).map {
        (route.method, $0, theirs.path(of: route), never.path(of: route))
      }
    }
    let track = "/v1/recordings/\(own.recording)/labels/"
    cases += [HTTPMethod.get, .delete].map { ($0, "", track + theirs.track, track + never.track) }
    let picture = "/v1/recordings/\(own.recording)/waveform.png?overlay="
    cases.append((.get, "", picture + theirs.recording, picture + never.recording))
    for (method, query, foreign, unknown) in cases {
      var costs: [[StatementNotes.Note]] = []
      // The first one reads what is the caller's own.
      for path in [unknown, foreign, unknown] {
        _ = statements.take()
        let body = method == .patch || method == .post ? "{\"name\":\"a\"}" : ""
        let status = try await keyed.status(
          method, path + query, key: "theirs", fields: method == .get ? [:] : ["If-Match": "*"], body: body)
        #expect(status == 404 || status == 400, "\(method) \(path)\(query)")
        // Jobs that have ended are counted beside the requests.
        costs.append(statements.take().filter { !$0.sql.contains("job_seconds") && !$0.sql.contains("webhooks") })
      }
      #expect(costs[1] == costs[2], "\(method) \(foreign)\(query)")
    }
  }

  @Test func whatIsCachedForOneTenantIsNotServedToAnother() async throws {
    let keyed = try KeyedBench()
    let ours = try await Self.things(keyed)
    let id = try #require(RecordingID(ours.recording))
    let recording = try #require(try keyed.bench.catalog.recording(id))
    try keyed.bench.makeWaveform(of: recording)
    let path = "/v1/recordings/\(ours.recording)"
    for target in [path, path + "/waveform?width=100", "/v1/jobs/\(ours.job)", path + "/peaks.json?width=9"] {
      for _ in 0..<4 { #expect(try await keyed.status(.get, target) == 200) }
      #expect(try await keyed.status(.get, target, key: "theirs") == 404)
      let tag = try #require(try await keyed.respond(.get, target).fields["ETag"])
      #expect(try await keyed.status(.get, target, fields: ["If-None-Match": tag]) == 304)
      #expect(try await keyed.status(.get, target, key: "theirs", fields: ["If-None-Match": tag]) == 404)
    }
  }

  @Test func twoTenantsMayUseTheSameIdempotencyKey() async throws {
    let keyed = try KeyedBench()
    let fields: HTTPFields = ["Idempotency-Key": "k"]
    let first = try await keyed.respond(.post, "/v1/recordings", fields: fields, body: "RIFF")
    let second = try await keyed.respond(.post, "/v1/recordings", key: "theirs", fields: fields, body: "RIFX")
    #expect(first.status == .created && second.status == .created)
    #expect(second.fields["Idempotency-Replayed"] == nil && first.fields["Location"] != second.fields["Location"])
    let again = try await keyed.respond(.post, "/v1/recordings", key: "writer", fields: fields, body: "RIFF")
    #expect(again.fields["Location"] == first.fields["Location"])
  }

  @Test func nobodyWithoutAKeyLearnsWhichPathsExist() async throws {
    let keyed = try KeyedBench()
    #expect(try await keyed.status(.get, "/v1/nothing", key: nil) == 401)
    #expect(try await keyed.status(.put, "/v1/recordings", key: nil) == 401)
    #expect(try await keyed.status(.get, "/v1/nothing") == 404)
    #expect(try await keyed.status(.put, "/v1/recordings") == 405)
    #expect(try await keyed.status(.get, "/nothing", key: nil) == 404)
    // Preflights have no credentials.
    #expect(try await keyed.status(.options, "/v1/recordings", key: nil) == 204)
  }

  @Test func aRefusalSaysHowToAuthenticate() async throws {
    let keyed = try KeyedBench()
    let none = try await keyed.respond(.get, "/v1/recordings", key: nil)
    #expect(none.fields["WWW-Authenticate"] == "Bearer realm=\"stillwave\"")
    for field in ["Basic dTpw", "Bearer", "Bearer ", "bearer x", "\(KeyedBench.secrets["ours"] ?? "")"] {
      let wrong = try await keyed.respond(.get, "/v1/recordings", key: nil, fields: ["Authorization": field])
      #expect(wrong.status == .unauthorized && wrong.fields["WWW-Authenticate"]?.contains("invalid_token") == true)
    }
    let secret = KeyedBench.secrets["ours"] ?? ""
    // The scheme's case doesn't matter, and a key is never taken from the query.
    let fields: HTTPFields = ["Authorization": "bEARER  \(secret)"]
    #expect(try await keyed.status(.get, "/v1/recordings", key: nil, fields: fields) == 200)
    #expect(try await keyed.status(.get, "/v1/recordings?token=\(secret)", key: nil) == 401)
    #expect(try await keyed.status(.get, "/v1/recordings", key: String(repeating: "x", count: 100_000)) == 401)
  }

  @Test func keysAreReadAgainWhenTheFileChanges() async throws {
    let keyed = try KeyedBench()
    let more = KeyedBench.lines() + KeyedBench.line("ours2", tenant: "ours", ["read"])
    try more.write(toFile: keyed.keysPath, atomically: true, encoding: .utf8)
    // An unknown key makes the service look. Of several requests, one reads the file and the others wait for it.
    let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<8 { group.addTask { try await keyed.status(.get, "/v1/recordings", key: "ours2") } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses == [Int](repeating: 200, count: 8))
    try keyed.replaceKeys(KeyedBench.line("theirs", tenant: "theirs", ["read"]))
    #expect(try await keyed.status(.get, "/v1/recordings", key: "ours") == 401)
    #expect(try await keyed.status(.get, "/v1/recordings", key: "theirs") == 200)
  }

  @Test func afterAnInvalidChangeTheEarlierKeysStayAndTheLogSaysSo() async throws {
    let keyed = try KeyedBench()
    try keyed.replaceKeys(KeyedBench.line("ours2", tenant: "ours", ["read"]) + "nonsense\n")
    #expect(try await keyed.status(.get, "/v1/recordings", key: "ours") == 200)
    #expect(try await keyed.status(.get, "/v1/recordings", key: "ours2") == 401)
    #expect(keyed.bench.logged.all.contains { $0.contains("line 2 is not a JSON object") })
    try FileManager.default.removeItem(atPath: keyed.keysPath)
    keyed.bench.context.reloadAccess()
    #expect(try await keyed.status(.get, "/v1/recordings", key: "ours") == 200)
  }

  @Test func anInvalidFileOfKeysIsRefusedAtTheStart() throws {
    #expect(performing: { try KeyedBench("{}\n") }, throws: { "\($0)".contains("line 1 has no “id”") })
  }

  @Test func wrongKeysOfOneClientDoNotSlowAnother() async throws {
    let keyed = try KeyedBench {
      $0.trustedProxies = [Network("10.0.0.1/32")!]
      $0.clock = ManualClock().clock
    }
    let context = keyed.bench.context
    let guesser = Client(key: "c0000201")
    for _ in 0..<1000 { _ = context.access.wait(afterFailureOf: guesser) }
    let refused = try await keyed.respond(.get, "/v1/recordings", key: "x", from: "192.0.2.1:5")
    #expect(refused.status == .tooManyRequests && refused.fields["Retry-After"] != nil)
    #expect(try await keyed.respond(.get, "/v1/recordings", key: "x", from: "192.0.2.2:5").status == .unauthorized)
    // Paths without a route tell no more, and not faster.
    for (method, path) in [(HTTPMethod.get, "/v1/nothing"), (.patch, "/v1/recordings")] {
      #expect(try await keyed.status(method, path, key: "x", from: "192.0.2.1:5") == 429)
      #expect(try await keyed.status(method, path, key: "x", from: "192.0.2.2:5") == 401)
      #expect([404, 405].contains(try await keyed.status(method, path, from: "192.0.2.1:5")))
    }
    // A valid key isn't slowed, and behind a proxy only the client that it names.
    #expect(try await keyed.respond(.get, "/v1/recordings", from: "192.0.2.1:5").status == .ok)
    let proxied: HTTPFields = ["X-Forwarded-For": "192.0.2.3"]
    for _ in 0..<100 {
      let answer = try await keyed.respond(.get, "/v1/recordings", key: "x", from: "10.0.0.1:5")
      #expect(answer.status == .unauthorized)
    }
    let through = try await keyed.respond(.get, "/v1/recordings", key: "x", fields: proxied, from: "10.0.0.1:5")
    #expect(through.status == .unauthorized)
  }

  @Test func withKeysAnyHostIsServedButForeignPagesStillChangeNothing() async throws {
    let keyed = try KeyedBench()
    #expect(try await keyed.status(.get, "/v1/recordings", fields: ["Host": "audio.example"]) == 200)
    let forged: HTTPFields = ["Host": "audio.example", "Origin": "https://evil.example"]
    #expect(try await keyed.status(.post, "/v1/recordings", fields: forged, body: "RIFF") == 403)
  }
}
