import Foundation
import PostgresServer
import Testing

/// Waveforms that one node builds and other nodes show. The nodes share no disk.
@Suite(.enabled(if: PostgresServer.TestServer.isInstalled, "PostgreSQL isn't installed: deploy/install postgres"))
struct BucketGrowthTests {
  private let cluster: BucketCluster
  /// Answers clients and runs no jobs.
  private let api: TestServer

  init() throws {
    cluster = try BucketCluster()
    try write(Array("a secret of at least 32 bytes, for tests\n".utf8), to: cluster.folder.file("secret"))
    try write(Array("another secret of at least 32 bytes\n".utf8), to: cluster.folder.file("other"))
    api = try cluster.node("api", "--role", "api", "--cluster-secret-file", cluster.folder.file("secret"))
  }

  /// Starts a node that runs jobs.
  private func worker(_ name: String, secret: String = "secret") throws -> TestServer {
    try cluster.node(
      name, "--cluster-listen", "127.0.0.1:0", "--cluster-secret-file", cluster.folder.file(secret))
  }

  /// Uploads a recording whose waveform no node builds yet.
  private func upload() throws -> (id: String, job: String, total: Int) {
    let bytes = try LongClip.flac(cluster.folder, seconds: max(300, LongClip.seconds))
    let recording = try api.client.upload(bytes, name: "long.flac")
    return (
      try #require(recording["id"].string), try #require(recording["waveform"]["job"].string),
      try #require(recording["format"]["frames"].int)
    )
  }

  private func fetches(_ outcome: String, of node: TestServer) throws -> Int? {
    try node.client.metric("stillwave_forwarded_waveforms_total{outcome=\"\(outcome)\"}")
  }

  /// How many waveforms a test has built to see one of them grow: on a busy machine, it may be woken too late.
  private static let mostUploads = 5

  private static let forms = [
    "waveform.dat?scale=1024&channels=split", "waveform?scale=8192&channels=split&measures=peak,rms,average",
    "waveform?scale=65536&measures=peak,rms,average", "waveform.json?scale=8192&channels=1",
  ]

  /// One form of a waveform: its lists of values, and how many frames they stand for.
  private struct Look {
    let form: String
    let lists: [[Int]]
    let frames: Int
    let isWhole: Bool
  }

  private func look(_ id: String, _ form: String = forms[0], at node: TestServer) throws -> Look {
    let answer = try node.client.get("/v1/recordings/\(id)/\(form)")
    try #require(answer.status == 200, "\(answer.text)")
    let isWhole = answer["stillwave-complete"] == "true"
    if !isWhole { #expect(answer["etag"] == nil && answer["cache-control"] == "no-store") }
    let frames = try #require(answer["stillwave-available-frames"].flatMap { Int($0) })
    let lists =
      form.hasPrefix("waveform.dat")
      ? [answer.body.dropFirst(24).map { Int($0) }]
      : ["data", "rms", "average"].compactMap { answer.json[$0].integers }
    return Look(form: form, lists: lists, frames: frames, isWhole: isWhole)
  }

  /// The number of frames that a node shows, and whether these are all. Takes less time than a step of a worker.
  private func extent(_ id: String, at node: TestServer) throws -> Look {
    try look(id, "waveform.dat?width=1", at: node)
  }

  /// Expects that what was seen of a growing waveform is the beginning of what is seen elsewhere or later.
  private func expect(_ seen: Look, isTheBeginningOf more: Look) {
    #expect(seen.lists.count == more.lists.count && seen.frames <= more.frames)
    for (part, whole) in zip(seen.lists, more.lists) {
      let isSame = whole.starts(with: part)
      #expect(isSame, "\(seen.form): \(part.count) of \(whole.count) values")
    }
  }

  /// Lets a node work in steps, between which its workers are held for the time that others need to hear of it. Returns
  /// what `body` returns, which is called with the workers held once the other node shows more than `frames`; nil if
  /// the waveform is whole before.
  private func afterStep<R>(of builder: TestServer, _ id: String, beyond frames: Int, _ body: () throws -> R) throws
    -> R?
  {
    let hasBegun = try eventually { try !builder.workers().isEmpty || extent(id, at: api).isWhole }
    try #require(hasBegun)
    while true {
      let result = try builder.holdingWorkers { () -> R? in
        let isSeen = try eventually(withinSeconds: 3) { try extent(id, at: api).frames > frames }
        guard isSeen, try !extent(id, at: api).isWhole, try !extent(id, at: builder).isWhole else { return nil }
        return try body()
      }
      if let result { return result }
      let before = try extent(id, at: builder)
      if before.isWhole { return nil }
      _ = try eventually(withinSeconds: 1) { try extent(id, at: builder).frames > before.frames }
    }
  }

  @Test(.secondTier) func aWaveformGrowsOnANodeThatDoesNotBuildIt() throws {
    var uploaded = try upload()
    let builder = try worker("builder")
    var (seen, count): ([Look], Int) = ([], 0)
    repeat {
      if count > 0 { uploaded = try upload() }
      count += 1
      seen = try watch(uploaded.id, at: builder)
    } while seen.isEmpty && count < Self.mostUploads
    let (id, job, total) = uploaded
    #expect(!seen.isEmpty)
    try api.client.succeed(job)
    for look in seen {
      let whole = try self.look(id, look.form, at: api)
      #expect(whole.isWhole && whole.frames == total)
      expect(look, isTheBeginningOf: whole)
    }
    #expect(try fetches("failed", of: api) == 0)
    try api.stop()
    try builder.stop()
    let log = try String(contentsOfFile: builder.command.folder.file("errors"), encoding: .utf8)
    #expect(log.contains("nodes on other machines can't reach"), "it names the others 127.0.0.1: \(log)")
  }

  /// Compares what both nodes show of a growing waveform a few times. Returns what was seen.
  private func watch(_ id: String, at builder: TestServer) throws -> [Look] {
    var seen: [Look] = []
    for _ in 0..<4 {
      let looks = try afterStep(of: builder, id, beyond: seen.last?.frames ?? 0) {
        try Self.forms.map { form in
          let (here, there) = (try look(id, form, at: api), try look(id, form, at: builder))
          #expect(here.frames > 0)
          expect(here, isTheBeginningOf: there)
          return here
        }
      }
      guard let looks else { break }
      seen += looks
      let picture = try api.client.get("/v1/recordings/\(id)/waveform.png?width=200")
      #expect(picture.status == 200)
    }
    return seen
  }

  @Test func whileNobodyLooksNothingIsForwarded() throws {
    let builder = try worker("builder")
    let (_, job, _) = try upload()
    var progress = 0.0
    try api.client.succeed(job) { progress = max(progress, $0["progress"].double ?? 0) }
    #expect(progress > 0)
    #expect(try fetches("succeeded", of: api) == 0 && fetches("failed", of: api) == 0)
    withExtendedLifetime(builder) {}
  }

  @Test func afterANodeIsLostTheWaveformStartsOver() throws {
    var (uploaded, first) = (try upload(), Look?.none)
    let lost = try worker("first")
    for count in 0..<Self.mostUploads where first == nil {
      if count > 0 { uploaded = try upload() }
      first = try afterStep(of: lost, uploaded.id, beyond: 0) {
        let look = try look(uploaded.id, at: api)
        lost.kill()
        return look
      }
    }
    let (id, job, total) = uploaded
    let before = try #require(first)
    let successor = try worker("second")
    #expect(before.frames > 0 && before.frames < total)
    // Nothing is shown until another attempt has begun.
    let isWhole = try eventually {
      let now = try look(id, at: api)
      expect(now.frames < before.frames ? now : before, isTheBeginningOf: now.frames < before.frames ? before : now)
      return now.isWhole
    }
    #expect(try isWhole && look(id, at: api).frames == total)
    #expect(try api.client.get("/v1/jobs/\(job)").json["attempts"].int == 2)
    withExtendedLifetime(successor) {}
  }

  @Test func aNodeWithAnotherSecretShowsProgressOnly() throws {
    let begun = ContinuousClock.now
    let (id, job, total) = try upload()
    let builder = try worker("builder", secret: "other")
    let isWhole = try eventually {
      let seen = try extent(id, at: api)
      #expect(seen.isWhole || seen.frames == 0)
      return seen.isWhole
    }
    #expect(isWhole)
    try api.client.succeed(job)
    #expect(try fetches("succeeded", of: api) == 0)
    #expect(try look(id, at: api).frames == total)
    let log = try String(contentsOfFile: api.command.folder.file("errors"), encoding: .utf8)
    let lines = log.split(separator: "\n").filter { $0.contains("isn't believed") }
    // The log has at most one line a minute, and a busy machine may take longer.
    let most = 1 + Int((ContinuousClock.now - begun) / .seconds(60))
    #expect((1...most).contains(lines.count) && lines[0].contains("--cluster-secret-file"), "\(log)")
    withExtendedLifetime(builder) {}
  }
}
