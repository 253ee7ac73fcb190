import Dispatch
import Foundation
import Randomness
import Testing

@testable import Sounds

/// The service is killed at a random moment and started again: its promises must be kept. The table shows how long the
/// starts took.
@Suite(.serialized) struct KillTests {
  /// The activity during which the service is killed.
  enum Moment: String, CaseIterable, CustomTestStringConvertible {
    case upload, waveform, denoise, delete
    case start = "start-up"

    var testDescription: String { rawValue }

    /// The kill comes within this many milliseconds of its beginning.
    var milliseconds: Int {
      switch self {
      case .upload: 250
      case .waveform: 1500
      case .denoise: 2000
      case .delete: 60
      case .start: 250
      }
    }
  }

  @Test("a service that is killed keeps what it promised", .secondTier, arguments: Moment.allCases)
  func kill(during moment: Moment) throws {
    var record = FaultRecord("kill -9 during \(moment.rawValue)")
    var slowest = Duration.zero
    defer { record.write("started again within \((slowest / .milliseconds(1)).rounded()) ms") }
    let server = try TestServer()
    let promises = KeptPromises()
    var random = NoiseGenerator(seed: Int(truncatingIfNeeded: TestSeed.of(moment.milliseconds)))
    // A recording that stays untouched.
    try upload(WAVFile.noise(seconds: 2, seed: 1), to: server.client, promises)
    for round in 0..<max(FaultRecord.rounds / Moment.allCases.count, 1) {
      let share = min(abs(random.next()), 1)
      record.attempt("round \(round)") {
        try prepare(moment, round, server, promises)
        let activity = Activity(port: server.client.port) { try act(moment, round, $0, promises) }
        wait(milliseconds: Int(share * Double(moment.milliseconds)))
        try server.crash()
        activity.join()
        if moment == .start { try killWhileStarting(server, afterMilliseconds: Int(share * 250)) }
        let began = ContinuousClock.now
        try server.restart()
        slowest = max(slowest, ContinuousClock.now - began)
        let losses = try promises.losses(server)
        try tidy(server, promises)
        return losses
      }
    }
  }

  private func wait(milliseconds: Int) { _ = poll(nil, 0, Int32(milliseconds)) }

  // MARK: Activities

  /// Prepares the activity, undisturbed.
  private func prepare(_ moment: Moment, _ round: Int, _ server: TestServer, _ promises: KeptPromises) throws {
    guard moment != .upload else { return }
    for number in 0..<4 {
      let seconds = moment == .denoise || moment == .start ? 8 : 1
      let id = try upload(WAVFile.noise(seconds: seconds, seed: round * 4 + number), to: server.client, promises)
      if moment == .denoise || moment == .delete {
        let job = try #require(try server.client.recording(id)["waveform"]["job"].string)
        try server.client.succeed(job)
      }
      if moment == .start { _ = try server.client.denoise(id) }
    }
  }

  /// Performs the activity until the service is gone; each answer is a promise.
  private func act(_ moment: Moment, _ round: Int, _ client: HTTPClient, _ promises: KeptPromises) throws {
    switch moment {
    case .upload:
      for number in 0..<100 {
        let bytes = WAVFile.noise(seconds: 1, seed: round * 100 + number)
        if number % 2 == 0 {
          try upload(bytes, to: client, promises)
        } else {
          try uploadInPieces(bytes, to: client, promises)
        }
      }
    case .waveform: try upload(LongClip.wave(), to: client, promises)
    case .denoise: for id in promises.uploads { _ = try client.post("/v1/recordings/\(id)/denoise", json: "{}") }
    case .delete:
      for id in promises.uploads {
        promises.deleting(id)
        if try client.delete("/v1/recordings/\(id)").status == 204 { promises.deleted(id) }
      }
    case .start: break
    }
  }

  @discardableResult
  private func upload(_ bytes: [UInt8], to client: HTTPClient, _ promises: KeptPromises) throws -> String {
    let answer = try client.send("POST", "/v1/recordings?name=a.wav", [:], .bytes(bytes))
    guard answer.status == 201, let id = answer.json["id"].string else {
      throw ToolFailure(description: "\(answer.status) \(answer.text)")
    }
    promises.uploaded(id, bytes)
    return id
  }

  private func uploadInPieces(_ bytes: [UInt8], to client: HTTPClient, _ promises: KeptPromises) throws {
    let made = try client.send(
      "POST", "/v1/uploads", ["Tus-Resumable": "1.0.0", "Upload-Length": "\(bytes.count)"])
    guard made.status == 201, let upload = made["Location"] else { throw ToolFailure(description: made.text) }
    promises.told(upload, at: 0)
    for start in stride(from: 0, to: bytes.count, by: 10_000) {
      let end = min(start + 10_000, bytes.count)
      let answer = try client.send(
        "PATCH", upload,
        ["Tus-Resumable": "1.0.0", "Upload-Offset": "\(start)", "Content-Type": "application/offset+octet-stream"],
        .bytes(Array(bytes[start..<end])))
      guard answer.status == 204 else { throw ToolFailure(description: "\(answer.status) \(answer.text)") }
      promises.told(upload, at: end)
      if let id = answer["Stillwave-Recording"] { promises.uploaded(id, bytes) }
    }
  }

  /// Kills the service during a start, with jobs to be restarted.
  private func killWhileStarting(_ server: TestServer, afterMilliseconds milliseconds: Int) throws {
    let start = try Command(try Program.path(), ["serve", "--listen", "127.0.0.1:0", "--data", server.data])
    wait(milliseconds: milliseconds)
    start.signal(SIGKILL)
    _ = try start.finish()
  }

  /// Deletes all but the untouched recording, so that later rounds don't take longer.
  private func tidy(_ server: TestServer, _ promises: KeptPromises) throws {
    let listed = try server.client.get("/v1/recordings?limit=1000").json["recordings"].array ?? []
    for id in listed.compactMap({ $0["id"].string }).sorted().dropFirst() {
      promises.deleting(id)
      if try server.client.delete("/v1/recordings/\(id)").status == 204 { promises.deleted(id) }
    }
  }
}

/// Runs work on its own connection and thread; its failures are those of the service's end.
private final class Activity: Sendable {
  private let ended = DispatchSemaphore(value: 0)

  init(port: UInt16, _ work: @escaping @Sendable (HTTPClient) throws -> Void) {
    DispatchQueue(label: "activity").async { [ended] in
      let client = HTTPClient(port: port)
      client.followsContract = false
      try? work(client)
      ended.signal()
    }
  }

  func join() { ended.wait() }
}

extension WAVFile {
  /// Mono noise at 22,050 Hz; each seed makes a different file.
  static func noise(seconds: Int, seed: Int) -> [UInt8] {
    var noise = NoiseGenerator(seed: seed + 1)
    var file = WAVFile()
    file.rate = 22_050
    file.data = (0..<seconds * file.rate).flatMap { _ in littleEndian(Int16(noise.next() * 1000)) }
    return file.bytes
  }
}
