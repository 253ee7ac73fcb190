import Foundation
import Synchronization
import Testing

@testable import Sounds

/// One client's crowd of requests and another client's upload: it's accepted and waits for none of the crowd's waiting
/// requests. The rows record how long it took, and how long on an idle service.
@Suite(.serialized) struct CrowdFaultTests {
  /// The number of requests of a crowd: `FAULT_CROWD`, at most `most`, or fewer in a short run.
  private static func size(_ short: Int, most: Int = .max) -> Int {
    ProcessInfo.processInfo.environment["FAULT_CROWD"].flatMap { Int($0) }.map { min($0, most) } ?? short
  }

  private static let wave = WAVFile.noise(seconds: 5, seed: 1)

  /// Many simultaneous connections of one client, each sending request after request until all are sent.
  private final class Crowd: Sendable {
    private let statuses = Mutex<[String: Int]>([:])
    private let left: Atomic<Int>
    private let group = DispatchGroup()

    init(_ count: Int, connections: Int, port: UInt16, _ send: @escaping @Sendable (HTTPClient, Int) throws -> Answer) {
      left = Atomic(count)
      for _ in 0..<connections {
        group.enter()
        Thread { [self] in
          let client = HTTPClient(port: port)
          while case let number = left.wrappingSubtract(1, ordering: .relaxed).newValue, number >= 0 {
            let result = Result { try send(client, number) }
            let key = (try? result.get()).map(Self.words) ?? "no answer"
            statuses.withLock { $0[key, default: 0] += 1 }
          }
          group.leave()
        }.start()
      }
    }

    private static func words(_ answer: Answer) -> String {
      answer.status < 400 ? "\(answer.status)" : "\(answer.status) \(answer.json["code"].string ?? "")"
    }

    /// Whether requests are left to send.
    var isBusy: Bool { left.load(ordering: .relaxed) > 0 || group.wait(timeout: .now()) == .timedOut }

    /// The number of each kind of answer.
    var answers: [String: Int] { statuses.withLock { $0 } }

    /// Returns once all have been answered, with the answers whose status isn't one of these.
    func losses(_ expected: [String]) -> [String] {
      group.wait()
      return answers.filter { answer in !expected.contains { answer.key.hasPrefix($0) } }
        .map { "\($0.value) of the crowd were answered \($0.key)" }
    }
  }

  private func seconds(_ body: () throws -> Void) rethrows -> Double {
    try ContinuousClock().measure(body) / .seconds(1)
  }

  /// A warmed-up service, and the time of an upload while it's idle.
  private func idleServer(_ server: TestServer) throws -> (server: TestServer, idle: Double) {
    let client = HTTPClient(port: server.client.port, source: 2)
    let times = try (0..<4).map { number in
      try seconds { _ = try client.upload(Self.wave, name: "idle \(number).wav") }
    }
    return (server, times.dropFirst().sorted()[1])
  }

  /// Tries one crowd. `begin` starts it and returns when the second client may begin. The crowd's answers must be among
  /// `expected`.
  private func attempt(
    _ name: String, expected: [String], on makeServer: () throws -> TestServer = { try TestServer() },
    begin: (TestServer) throws -> Crowd, alsoAsking more: (HTTPClient, TestServer) throws -> [String] = { _, _ in [] }
  ) throws {
    var record = FaultRecord("crowd of \(name)")
    var note = ""
    record.attempt {
      let (server, idle) = try idleServer(makeServer())
      defer { server.kill() }
      let crowd = try begin(server)
      let second = HTTPClient(port: server.client.port, source: 2)
      var slowest = 0.0
      for number in 0..<3 {
        slowest = max(slowest, try seconds { _ = try second.upload(Self.wave, name: "second \(number).wav") })
      }
      var losses = try more(second, server)
      note = "an upload: \(Self.shown(idle)) s idle, at most \(Self.shown(slowest)) s meanwhile"
      losses += crowd.losses(expected)
      let answers = crowd.answers.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key)" }
      note += "; crowd: " + answers.joined(separator: ", ")
      return losses
    }
    record.write(note)
  }

  private static func shown(_ seconds: Double) -> String { "\((seconds * 100).rounded() / 100)" }

  // MARK: The crowds

  @Test(.secondTier) func filesThatKeepFFmpegBusy() throws {
    let file = TaggedMatroska.bytes(tags: 200_000)
    #expect(file.count > 7_000_000)
    // If they don't even get the processor time they're allowed, the machine is at fault: 503.
    let expected = ["422 probe_too_slow", "429 limit_waiting_probes", "503 unavailable"]
    try attempt("files of 200,000 tags", expected: expected) { server in
      let crowd = Crowd(Self.size(12, most: 60), connections: 6, port: server.client.port) { client, _ in
        try client.send("POST", "/v1/recordings?name=a.mkv", [:], .bytes(file))
      }
      // One of them is being probed.
      _ = eventually { !server.workers().isEmpty || !crowd.answers.isEmpty }
      return crowd
    } alsoAsking: { second, server in
      // Another client's files for ffmpeg don't wait for the crowd's either.
      let small = TaggedMatroska.bytes(tags: 10)
      let answer = try second.send("POST", "/v1/recordings?name=b.mkv", [:], .bytes(small))
      return answer.status == 201 ? [] : ["a small Matroska file: \(answer.status) \(answer.text)"]
    }
  }

  @Test func denoiseRequests() throws {
    try attempt("denoise requests", expected: ["202", "429 limit_queued_jobs"]) { server in
      let recording = try server.client.uploadReady(LongClip.wave(), name: "long.wav")
      let id = try #require(recording["id"].string)
      let crowd = Crowd(Self.size(300), connections: 16, port: server.client.port) { client, _ in
        try client.post("/v1/recordings/\(id)/denoise", json: "{}")
      }
      _ = eventually { crowd.answers.keys.contains { $0.hasPrefix("429") } }
      return crowd
    } alsoAsking: { second, server in
      // Its job runs before all waiting ones.
      let uploaded = try second.upload(Self.wave, name: "last.wav")
      try second.succeed(try #require(uploaded["waveform"]["job"].string))
      let waiting = try second.get("/v1/jobs?state=queued&limit=1000").json["jobs"].array?.count ?? 0
      return waiting > 50 ? [] : ["only \(waiting) of the crowd's jobs waited longer"]
    }
  }

  @Test func emptyUploads() throws {
    try attempt("empty resumable uploads", expected: ["201", "429 limit_open_uploads"]) { server in
      let crowd = Crowd(Self.size(1000), connections: 8, port: server.client.port) { client, _ in
        try client.send("POST", "/v1/uploads", ["Tus-Resumable": "1.0.0", "Upload-Length": "1000000"])
      }
      _ = eventually { crowd.answers.keys.contains { $0.hasPrefix("429") } }
      // Others fill the rest: about twenty clients with fifty uploads each.
      for source in 10..<29 as Range<UInt32> {
        let client = HTTPClient(port: server.client.port, source: source)
        for _ in 0..<50 {
          _ = try client.send("POST", "/v1/uploads", ["Tus-Resumable": "1.0.0", "Upload-Length": "1000000"])
        }
      }
      return crowd
    } alsoAsking: { second, _ in
      let bytes = BadUploadTests.tone.bytes
      let fields = ["Tus-Resumable": "1.0.0", "Upload-Length": "\(bytes.count)"]
      let created = try second.send("POST", "/v1/uploads", fields)
      guard created.status == 201, let upload = created["location"] else {
        return ["\(created.status) \(created.text)"]
      }
      let sent = try second.send(
        "PATCH", upload,
        ["Tus-Resumable": "1.0.0", "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"],
        .bytes(bytes))
      return sent["stillwave-recording"] != nil ? [] : ["its resumable upload: \(sent.status) \(sent.text)"]
    }
  }

  @Test func previews() throws {
    try attempt("previews", expected: ["200", "429 limit_waiting_previews"]) { server in
      let recording = try server.client.uploadReady(LongClip.wave(), name: "long.wav")
      let id = try #require(recording["id"].string)
      let crowd = Crowd(Self.size(30, most: 300), connections: 16, port: server.client.port) { client, _ in
        try client.post("/v1/recordings/\(id)/denoise/preview", json: #"{"window":{"start":1,"end":11}}"#)
      }
      _ = eventually { crowd.answers.keys.contains { $0.hasPrefix("429") } }
      return crowd
    } alsoAsking: { second, server in
      let id = try #require(try second.get("/v1/recordings?q=second").json["recordings"].array?.first?["id"].string)
      let preview = try second.post("/v1/recordings/\(id)/denoise/preview", json: #"{"window":{"start":0,"end":1}}"#)
      return preview.status == 200 ? [] : ["its preview: \(preview.status) \(preview.text)"]
    }
  }

  @Test func conversions() throws {
    try attempt("conversions", expected: ["200", "503 converting", "429 limit_queued_jobs"]) { server in
      let clip = Self.wave
      let ids = try (0..<10).map { number in
        try #require(try server.client.upload(clip, name: "clip \(number).wav")["id"].string)
      }
      let crowd = Crowd(Self.size(40), connections: 16, port: server.client.port) { client, number in
        let format = ["flac", "mp3", "ogg", "opus"][number / ids.count % 4]
        return try client.get("/v1/recordings/\(ids[number % ids.count])/audio?format=\(format)")
      }
      _ = eventually { !crowd.answers.isEmpty }
      return crowd
    }
  }

  @Test func pictures() throws {
    try attempt("large pictures", expected: ["200", "429 limit_waiting_pictures"]) { server in
      let recording = try server.client.uploadReady(LongClip.wave(), name: "long.wav")
      let id = try #require(recording["id"].string)
      let crowd = Crowd(Self.size(80, most: 1000), connections: 80, port: server.client.port) { client, number in
        try client.get("/v1/recordings/\(id)/waveform.png?width=8000&height=1000&start=\(Double(number) / 1000)")
      }
      _ = eventually { !crowd.answers.isEmpty }
      return crowd
    } alsoAsking: { second, _ in
      let id = try #require(try second.get("/v1/recordings?q=second").json["recordings"].array?.first?["id"].string)
      let picture = try second.get("/v1/recordings/\(id)/waveform.png?width=200")
      return picture.status == 200 ? [] : ["its picture: \(picture.status) \(picture.text)"]
    }
  }

  @Test func uploadsThatEndTogether() throws {
    try attempt(
      "uploads that end together", expected: ["201", "429 limit_queued_jobs"],
      on: { try TestServer("--max-queued-jobs", "20", "--max-queued-jobs-per-client", "8") }
    ) { server in
      let file = LongClip.wave()
      let count = Self.size(30, most: 300)
      let crowd = Crowd(count, connections: min(count, 60), port: server.client.port) { client, _ in
        try client.send("POST", "/v1/recordings?name=a.wav", [:], .bytes(file))
      }
      _ = eventually { crowd.answers.keys.contains { $0.hasPrefix("429") } }
      return crowd
    }
  }

  @Test func connections() throws {
    var record = FaultRecord("crowd of connections")
    var note = ""
    record.attempt {
      let most = Self.size(100, most: 400)
      let (server, idle) = try idleServer(TestServer("--max-connections", "\(most)"))
      defer { server.kill() }
      // A quarter of them stay open; the rest are rejected and try again.
      var statuses: [Int: Int] = [:]
      var held: [Wire] = []
      for _ in 0..<most * 2 {
        let wire = try Wire(port: server.client.port)
        wire.send("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        let status = (try? wire.answer(to: "GET").status) ?? 0
        statuses[status, default: 0] += 1
        if status == 200 { held.append(wire) }
      }
      let second = HTTPClient(port: server.client.port, source: 2)
      var slowest = 0.0
      for number in 0..<3 {
        slowest = max(slowest, try seconds { _ = try second.upload(Self.wave, name: "second \(number).wav") })
      }
      note = "an upload: \(Self.shown(idle)) s idle, at most \(Self.shown(slowest)) s meanwhile; crowd: "
      note += statuses.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key == 0 ? "hung up on" : "\($0.key)")" }
        .joined(separator: ", ")
      var losses: [String] = []
      // The client of the idle uploads may hold one connection, which isn't the crowd's.
      if held.count > most / 4 { losses.append("the crowd has \(held.count) connections") }
      if statuses.keys.contains(where: { ![0, 200, 429].contains($0) }) { losses.append("\(statuses)") }
      for wire in held { wire.close() }
      let isServedAgain = eventually { (try? HTTPClient(port: server.client.port).get("/healthz").status) == 200 }
      if !isServedAgain { losses.append("the crowd's client is not served when its connections are gone") }
      return losses
    }
    record.write(note)
  }

  // MARK: Texts that take long

  /// A letter and alternating combining marks, whose normalization takes time that grows with the square of its length.
  private static func marks(_ bytes: Int) -> String { "a" + String(repeating: "\u{316}\u{301}", count: bytes / 4) }

  private static func json(_ texts: [String]) -> [UInt8] {
    let labels = texts.map { #"{"start":1,"end":2,"text":"\#($0)"}"# }.joined(separator: ",")
    return Array(#"{"labels":[\#(labels)]}"#.utf8)
  }

  /// An MP3 of five seconds of silence with a text of lyrics.
  private static func lyrics(_ bytes: Int) -> [UInt8] {
    func safe(_ number: Int) -> [UInt8] { [21, 14, 7, 0].map { UInt8(number >> $0 & 0x7F) } }
    let text = [3] + Array("eng\0".utf8) + Array(marks(bytes).utf8)
    let frame = Array("USLT".utf8) + safe(text.count) + [0, 0] + text
    let silence = [0xFF, 0xFB, 0x90, 0] + [UInt8](repeating: 0, count: 413)
    let header = Array("ID3".utf8) + [4, 0, 0] + safe(frame.count)
    return header + frame + (0..<200).flatMap { _ in silence }
  }

  /// Sends a request again and again, and meanwhile another client's renames. None of the first client's writes may
  /// hold the catalog for a second.
  private func attemptText(_ name: String, _ path: String, _ body: [UInt8], expected: String) throws {
    var record = FaultRecord("crowd of \(name)")
    var note = ""
    record.attempt {
      let folder = try TemporaryFolder()
      let keys = try Command(
        Program.path(), ["keys", "add", "app", "--scopes", "read,write", "--keys", folder.file("keys.jsonl")])
      guard try keys.finish(withinSeconds: 60).status == 0 else { return ["no key was made"] }
      let key = ["Authorization": "Bearer " + (try keys.output().trimmingCharacters(in: .newlines))]
      let server = try TestServer("--keys", folder.file("keys.jsonl"), "--admin-listen", "127.0.0.1:0")
      defer { server.kill() }
      let made = try server.client.send("POST", "/v1/recordings?name=a.wav", key, .bytes(Self.wave))
      let recording = try #require(made["location"])
      let second = HTTPClient(port: server.client.port, source: 2)
      func rename(_ number: Int) throws -> Double {
        try seconds {
          let answer = try second.send(
            "PATCH", recording, key.merging(["Content-Type": "application/json"]) { $1 },
            .bytes(Array(#"{"name":"\#(number)"}"#.utf8)))
          try #require(answer.status == 200, "\(answer.text)")
        }
      }
      let idle = try (0..<9).map(rename).sorted()[4]
      let crowd = Crowd(Self.size(3, most: 20), connections: 1, port: server.client.port) { client, _ in
        guard path == "token" else { return try client.send("POST", recording + path, key, .bytes(body)) }
        let minted = try client.post("/v1/tokens", json: #"{"upload":true,"max_bytes":2000000,"expires_in":60}"#, key)
        let token = try #require(minted.json["token"].string, "\(minted.text)")
        return try client.send("POST", "/v1/recordings?name=b.mp3&token=\(token)", [:], .bytes(body))
      }
      var (slowest, number) = (0.0, 0)
      while crowd.isBusy || number < 10 {
        slowest = max(slowest, try rename(number))
        number += 1
      }
      var losses = crowd.losses([expected])
      let log = String(decoding: try contents(server.command.folder.file("errors")), as: UTF8.self)
      if log.contains("a write held the catalog") || log.contains("a write holds the catalog") {
        losses.append("a write held the catalog for more than a second")
      }
      note = "a rename: \(Self.shown(idle)) s idle, at most \(Self.shown(slowest)) s of \(number) meanwhile; crowd: "
      note += crowd.answers.map { "\($0.value) × \($0.key)" }.joined(separator: ", ")
      return losses
    }
    record.write(note)
  }

  @Test func combiningMarks() throws {
    try attemptText("1.2 MB of labels: one text", "/labels", Self.json([Self.marks(1_200_000)]), expected: "400")
    try attemptText(
      "1.2 MB of labels: 18 texts", "/labels", Self.json(Array(repeating: Self.marks(65_000), count: 18)),
      expected: "201")
    try attemptText("640 KB uploads with a token", "token", Self.lyrics(630_000), expected: "201")
    try attemptText("1.7 MB MP3 files with lyrics", "token", Self.lyrics(1_700_000), expected: "201")
  }

  @Test(.secondTier) func memoryIsReturnedAfterAFlood() throws {
    var record = FaultRecord("memory after a flood")
    var note = ""
    record.attempt {
      // With room for a job of each; otherwise most would be rejected at once.
      let (server, _) = try idleServer(
        TestServer(
          "--max-queued-jobs-per-client", "1000", "--max-queued-jobs", "1000", "--max-connections-per-client", "1000"))
      defer { server.kill() }
      let before = Processes.anonymousKilobytes(of: server.processID)
      // Clients that all stop in the middle of a body.
      let body = [UInt8](repeating: 0, count: 200_000)
      var flood: [Wire] = []
      for _ in 0..<Self.size(400, most: 800) {
        let wire = try Wire(port: server.client.port)
        wire.send("POST /v1/recordings HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 300000\r\n\r\n")
        wire.send(body)
        flood.append(wire)
      }
      var during = before
      let isFlooded = eventually {
        during = max(during, Processes.anonymousKilobytes(of: server.processID))
        return during - before > 14_000
      }
      for wire in flood { wire.close() }
      guard isFlooded else { return ["the flood took \(during - before) KB only: nothing is shown"] }
      var settled = during
      let isGivenBack = eventually {
        settled = Processes.anonymousKilobytes(of: server.processID)
        return settled - before < (during - before) / 2
      }
      note = "\(before >> 10) MB before, \(during >> 10) MB at the height of it, \(settled >> 10) MB when idle"
      return isGivenBack ? [] : ["the service keeps \(settled - before) KB"]
    }
    record.write(note)
  }
}
