import Foundation
import Synchronization
import Testing

@testable import Sounds

/// Texts that take long to normalize, beside another client's renames, and a flood of bodies that never end. The rows
/// record how long a rename took, and how much memory is given back.
@Suite(.serialized) struct CrowdFaultTests {
  /// The number of requests of a crowd: `FAULT_CROWD`, at most `most`, or fewer in a short run.
  private static func size(_ short: Int, most: Int = .max) -> Int {
    ProcessInfo.processInfo.environment["FAULT_CROWD"].flatMap { Int($0) }.map { min($0, most) } ?? short
  }

  private static let wave = WAVFile.noise(seconds: 5, seed: 1)

  /// One client that sends request after request.
  private final class Crowd: Sendable {
    private let statuses = Mutex<[String: Int]>([:])
    private let group = DispatchGroup()

    init(_ count: Int, port: UInt16, _ send: @escaping @Sendable (HTTPClient) throws -> Answer) {
      group.enter()
      Thread { [self] in
        let client = HTTPClient(port: port)
        for _ in 0..<count {
          let key = (try? send(client)).map(Self.words) ?? "no answer"
          statuses.withLock { $0[key, default: 0] += 1 }
        }
        group.leave()
      }.start()
    }

    private static func words(_ answer: Answer) -> String {
      answer.status < 400 ? "\(answer.status)" : "\(answer.status) \(answer.json["code"].string ?? "")"
    }

    /// Whether requests are left to send.
    var isBusy: Bool { group.wait(timeout: .now()) == .timedOut }

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

  private static func shown(_ seconds: Double) -> String { "\((seconds * 100).rounded() / 100)" }

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

  /// Changes labels of a track of the recording, which gets one of 250 long ones first.
  private static func edit(
    _ recording: String, _ key: [String: String], _ body: [UInt8], _ client: HTTPClient
  ) throws -> Answer {
    let json = key.merging(["Content-Type": "application/json"]) { $1 }
    let made = try client.send(
      "POST", recording + "/labels", json, .bytes(Self.json(Array(repeating: marks(60_000), count: 250))))
    let track = try #require(made["location"], "\(made.text)")
    let tag = try #require(made["etag"])
    let answer = try client.send("PATCH", track, json.merging(["If-Match": tag]) { $1 }, .bytes(body))
    _ = try client.send("DELETE", track, key.merging(["If-Match": "*"]) { $1 })
    return answer
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
      guard try keys.finish().status == 0 else { return ["no key was made"] }
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
      let crowd = Crowd(Self.size(3, most: 20), port: server.client.port) { client in
        if path == "edit" { return try Self.edit(recording, key, body, client) }
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

  @Test(.secondTier) func changesOfLabels() throws {
    try attemptText("changes of one of 250 long labels", "edit", Array(#"{"remove":["1"]}"#.utf8), expected: "200")
    let labels = Array(repeating: #"{"start":1,"end":2,"text":""}"#, count: 33_000).joined(separator: ",")
    try attemptText("33,000 new labels at one time", "edit", Array(#"{"set":[\#(labels)]}"#.utf8), expected: "200")
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
      let server = try TestServer(
        "--max-queued-jobs-per-client", "1000", "--max-queued-jobs", "1000", "--max-connections-per-client", "1000")
      defer { server.kill() }
      // One-time allocations of the first upload aren't counted.
      _ = try server.client.uploadReady(Self.wave)
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
