import Foundation
import PostgresServer
import Testing

@testable import Sounds

/// Nodes that share a catalog in PostgreSQL and a folder with the media.
@Suite(.enabled(if: PostgresServer.TestServer.isInstalled, "PostgreSQL isn't installed: deploy/install postgres"))
struct ClusterTests {
  /// The folder and the database that nodes share.
  private struct Cluster {
    let folder: TemporaryFolder
    let url: String
    private let server: PostgresServer.TestServer
    private let database: String

    init(_ server: PostgresServer.TestServer? = nil) throws {
      folder = try TemporaryFolder()
      self.server = try #require(server ?? PostgresServer.TestServer.shared)
      database = try self.server.newDatabase()
      url = self.server.url(database: database)
    }

    /// The server's processes to which the nodes listen. Every second, each is asked for a sign of life.
    func feeds() throws -> [pid_t] {
      try rows(
        """
        SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND (query LIKE 'LISTEN%' OR query = 'SELECT 1')
        """
      ).compactMap { pid_t($0) }
    }

    /// Returns the rows of the catalog that a query finds, with their columns separated by `|`.
    func rows(_ query: String) throws -> [String] {
      try server.run(query, database: database).split(separator: "\n").map(String.init)
    }

    /// The server's process that accepts connections.
    func acceptor() throws -> pid_t {
      let first = try rows("SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)").first
      return try #require(first.flatMap { pid_t($0) })
    }

    /// Starts a node whose leases last `lease` seconds.
    func node(_ name: String, lease: Int = 3, _ arguments: String...) throws -> TestServer {
      try TestServer(
        with: ["--catalog", url, "--media", "file://" + folder.file("media"), "--node", name, "--lease", "\(lease)"]
          + arguments,
        dataDirectory: folder.file(name))
    }
  }

  private let cluster: Cluster
  private let one, two: TestServer

  init() throws {
    cluster = try Cluster()
    (one, two) = (try cluster.node("one"), try cluster.node("two"))
  }

  /// A recording whose waveform takes long enough to be seen while it is built.
  private func upload(
    to server: TestServer, seconds: Int = LongClip.seconds
  ) throws -> (id: String, job: String) {
    let recording = try server.client.upload(try LongClip.flac(cluster.folder, seconds: seconds), name: "long.flac")
    return (try #require(recording["id"].string), try #require(recording["waveform"]["job"].string))
  }

  /// Whether all nodes come to answer a request with a status.
  private func allAnswer(_ path: String, _ status: Int) throws -> Bool {
    try eventually { try [one, two].allSatisfy { try $0.client.get(path).status == status } }
  }

  @Test func whatOneNodeTakesInIsThereOnTheOthers() throws {
    let (id, job) = try upload(to: one)
    try two.client.succeed(job)
    let path = "/v1/recordings/\(id)/waveform?width=500"
    #expect(try one.client.get(path).json["complete"] == .bool(true))
    #expect(try one.client.get(path).json["data"].integers == two.client.get(path).json["data"].integers)
    let audio = "/v1/recordings/\(id)/audio"
    #expect(try one.client.get(audio).body == two.client.get(audio).body)
    let denoise = try two.client.denoise(id)
    try one.client.succeed(try #require(denoise["id"].string))
    #expect(try one.client.get("/v1/recordings").text == two.client.get("/v1/recordings").text)
    let renamed = try two.client.send(
      "PATCH", "/v1/recordings/\(id)", ["Content-Type": "application/merge-patch+json"],
      .bytes(Array(#"{"name":"other"}"#.utf8)))
    #expect(renamed.status == 200)
    #expect(try eventually { try one.client.recording(id)["name"].string == "other" })
    try one.stop()
    try two.stop()
  }

  @Test func whatIsDeletedOrRenamedIsNotServedAsItWasAlthoughNoNodeHearsOfIt() throws {
    let (id, job) = try upload(to: one)
    try one.client.succeed(job)
    let paths = ["/v1/recordings/\(id)", "/v1/recordings/\(id)/audio", "/v1/recordings/\(id)/waveform?width=9"]
    for path in paths { #expect(try two.client.get(path).status == 200) }
    let feeds = try cluster.feeds()
    #expect(feeds.count == 2)
    for feed in feeds { kill(feed, SIGSTOP) }
    defer { for feed in feeds { kill(feed, SIGCONT) } }
    let renamed = try one.client.send(
      "PATCH", paths[0], ["Content-Type": "application/json"], .bytes(Array(#"{"name":"new"}"#.utf8)))
    #expect(renamed.status == 200)
    #expect(try eventually { try two.client.recording(id)["name"].string == "new" })
    #expect(try one.client.send("DELETE", paths[0]).status == 204)
    for path in paths { #expect(try allAnswer(path, 404), "\(path)") }
  }

  @Test func aSilentFeedIsInTheMetricsAndAWarning() throws {
    // A server of its own, because it is stopped: otherwise the node would soon listen to it again.
    let cluster = try Cluster(PostgresServer.TestServer.separate())
    let node = try cluster.node("alone")
    func age() throws -> Double? {
      let name = "stillwave_feed_age_seconds "
      let line = try node.client.get("/metrics").text.split(separator: "\n").first { $0.hasPrefix(name) }
      return line.flatMap { Double($0.dropFirst(name.count)) }
    }
    /// Whether a node that is ready warns. On a busy machine, a check may take too long to say anything of the feed.
    func warns() throws -> Bool? {
      let ready = try node.client.get("/readyz")
      return ready.status == 200 ? ready.text.contains("\"feed_interrupted\"") : nil
    }
    #expect(try eventually { try age() ?? 9 < 5 && warns() == false })
    let stopped = try [cluster.acceptor()] + cluster.feeds()
    #expect(stopped.count == 2)
    for process in stopped { kill(process, SIGSTOP) }
    defer { for process in stopped { kill(process, SIGCONT) } }
    #expect(try eventually { try warns() == true }, "and works on")
    #expect(try age() ?? 0 > 5)
    for process in stopped { kill(process, SIGCONT) }
    #expect(try eventually { try age() ?? 9 < 5 && warns() == false })
  }

  @Test func theJobsOfANodeThatDiesAreFinishedByAnother() throws {
    let (id, job) = try upload(to: one)
    try one.client.succeed(job)
    let denoise = try #require(try one.client.denoise(id)["id"].string)
    var dying = one
    let isRunning = eventually {
      guard let busy = [one, two].first(where: { !$0.workers().isEmpty }) else { return false }
      dying = busy
      return true
    }
    #expect(isRunning)
    try dying.crash()
    let survivor = dying === one ? two : one
    let document = try survivor.client.succeed(denoise)
    #expect(document["attempts"].int == 2)
    try dying.restart()
    let derived = try #require(document["result"]["recording"].string)
    #expect(try dying.client.recording(derived)["waveform"]["state"].string == "ready")
  }

  @Test(.secondTier) func jobsOfDrainedNodesAreGivenBackAndNoAttemptCountsAsFailedOrLost() throws {
    try one.stop()
    try two.stop()
    // Leases that don't end meanwhile.
    let (one, two) = (try cluster.node("left", lease: 600), try cluster.node("right", lease: 600))
    let (id, job) = try upload(to: one, seconds: 300)
    try one.client.succeed(job)
    let denoise = try #require(try one.client.denoise(id)["id"].string)
    let path = "/v1/jobs/\(denoise)"
    // Freezes the worker as soon as it is there, so that the job stays in its middle.
    func freeze(_ nodes: TestServer...) throws {
      let isThere = eventually { nodes.contains { !$0.workers().isEmpty } }
      let document = try nodes[0].client.get(path).text
      try #require(isThere, "\(document)")
      for worker in nodes.flatMap({ $0.workers() }) { kill(worker, SIGSTOP) }
    }
    try freeze(one, two)
    var (busy, idle) = one.workers().isEmpty ? (two, one) : (one, two)
    // Once more than attempts may fail.
    for drained in 1...4 {
      let isShown = try eventually { try idle.client.get(path).json["attempts"].int == drained }
      let document = try idle.client.get(path).text
      try #require(isShown, "\(document)")
      busy.command.signal(SIGTERM)
      try freeze(idle)
      let stopped = try busy.command.finish()
      #expect(stopped.status == 0, "\(stopped.errors)")
      #expect(try idle.client.get("/metrics").text.contains("\nstillwave_lost_attempts_total 0\n"))
      try busy.restart()
      (busy, idle) = (idle, busy)
    }
    for worker in busy.workers() { kill(worker, SIGCONT) }
    #expect(try idle.client.succeed(denoise)["attempts"].int == 5)
    #expect(
      try cluster.rows("SELECT attempts, interruptions, postponements FROM jobs WHERE id = '\(denoise)'") == ["5|4|0"])
  }

  @Test func aNodeThatIsGivenTimeFinishesItsJobsBeforeItStops() throws {
    let patient = try cluster.node("patient", "--drain", "60")
    // Only this node is left to begin the job.
    try one.stop()
    try two.stop()
    let recording = try patient.client.upload(try LongClip.flac(cluster.folder), name: "long.flac")
    let job = try #require(recording["waveform"]["job"].string)
    #expect(eventually { !patient.workers().isEmpty })
    patient.command.signal(SIGTERM)
    #expect(try eventually { try patient.client.get("/readyz").json["code"].string == "draining" })
    let finished = try patient.command.finish()
    #expect(finished.status == 0, "\(finished.errors)")
    try one.restart()
    #expect(try one.client.succeed(job)["attempts"].int == 1)
  }

  private static let fields = ["Tus-Resumable": "1.0.0", "Content-Type": "application/offset+octet-stream"]

  private func newUpload(_ length: Int) throws -> String {
    let created = try one.client.send("POST", "/v1/uploads", ["Tus-Resumable": "1.0.0", "Upload-Length": "\(length)"])
    return try #require(created["location"])
  }

  private func offset(of upload: String, at node: TestServer) throws -> Int? {
    try node.client.send("HEAD", upload, ["Tus-Resumable": "1.0.0"])["upload-offset"].flatMap { Int($0) }
  }

  @Test func checkComparesTheSharedFolderWithItsCatalog() throws {
    let bytes = Clip.tone.bytes
    let (id, job) = try upload(to: one)
    try two.client.succeed(job)
    // An upload that two nodes have written.
    let upload = try newUpload(bytes.count)
    for (node, range) in [(one, 0..<9000), (two, 9000..<12_000)] {
      let offset = ["Upload-Offset": "\(range.lowerBound)"]
      let answer = try node.client.send(
        "PATCH", upload, Self.fields.merging(offset) { $1 }, .bytes(Array(bytes[range])))
      #expect(answer.status == 204, "\(answer.text)")
    }
    let media = cluster.folder.file("media")
    let shared = ["--catalog", cluster.url, "--media", "file://" + media]
    let sound = try check(shared)
    #expect(sound.status == 0 && sound.text.contains("1 recordings"), "\(sound.text)\(sound.errors)")
    let audio = try #require(
      try FileManager.default.contentsOfDirectory(atPath: "\(media)/recordings/\(id)").first {
        $0.hasPrefix("audio")
      })
    try FileManager.default.removeItem(atPath: "\(media)/recordings/\(id)/\(audio)")
    for name in try FileManager.default.contentsOfDirectory(atPath: media + "/uploads") where name.contains("-") {
      try FileManager.default.removeItem(atPath: "\(media)/uploads/\(name)")
    }
    let damaged = try check(shared)
    #expect(damaged.status == 1)
    for text in ["The audio is missing.", "The upload was acknowledged up to byte 12000.", "2 problems"] {
      #expect(damaged.text.contains(text), "\(damaged.text)")
    }
    for (arguments, reason) in [
      (shared + ["--repair"], "--repair is for the data folder of one machine"),
      (shared + ["--data", cluster.folder.file("one")], "not both"),
      (["--catalog", cluster.url], "--catalog needs --media"),
      (["--catalog", cluster.url, "--media", "file://" + cluster.folder.file("one")], "isn't a folder that several"),
      (["--catalog", "postgres://x@%2Fnowhere/x", "--media", "file://" + media], "can't be reached"),
      (["--data", media], "has the media of several machines"),
    ] {
      let refused = try check(arguments)
      #expect(refused.status != 0 && refused.errors.contains(reason), "\(arguments): \(refused.errors)")
    }
  }

  private func check(_ arguments: [String]) throws -> Command.Finished {
    try Command(Program.path(), ["check"] + arguments).finish()
  }

  @Test func aNodeThatFindsAnotherFolderDoesNotStart() throws {
    let (_, job) = try upload(to: one)
    try one.client.succeed(job)
    let other = try #require(PostgresServer.TestServer.shared)
    let media = "file://" + cluster.folder.file("media")
    for (url, folder) in [
      (cluster.url, "file://" + cluster.folder.file("not mounted")),
      (other.url(database: try other.newDatabase()), media),
    ] {
      let command = try Command(
        Program.path(),
        [
          "serve", "--listen", "127.0.0.1:0", "--data", cluster.folder.file("x"), "--catalog", url, "--media", folder,
          "--node", "x",
        ])
      let finished = try command.finish()
      #expect(finished.status != 0)
      #expect(finished.errors.contains("isn't the folder whose recordings the catalog describes"), "\(finished.errors)")
    }
  }

  @Test func rolesDivideTheWork() throws {
    try one.stop()
    try two.stop()
    let api = try cluster.node("api", "--role", "api")
    let recording = try api.client.upload(try LongClip.flac(cluster.folder), name: "long.flac")
    let job = try #require(recording["waveform"]["job"].string)
    #expect(try api.client.get("/v1/jobs/\(job)?wait=1").json["state"].string == "queued")
    let worker = try cluster.node("worker", "--role", "work")
    #expect(try worker.client.get("/v1/jobs/\(job)").status == 404)
    let node = try worker.client.get("/readyz").json["node"]
    #expect(node["role"].string == "work")
    #expect(try #require(node["name"].string).hasPrefix("worker/"))
    #expect(try #require(node["catalog_seconds"].double) > 0)
    // The feed connects beside the start.
    let hears = try eventually { try worker.client.get("/readyz").json["node"]["feed_age_seconds"].double != nil }
    #expect(hears, "the feed never delivered")
    try api.client.succeed(job)
    #expect(api.workers().isEmpty)
    let metrics = try worker.client.get("/metrics").text
    #expect(metrics.firstMatch(of: #/\nstillwave_node_info\{node="worker/[0-9a-f]+",role="work"\} 1\n/#) != nil)
    for operation in ["read", "write"] {
      let (count, sum) = ("stillwave_catalog_seconds_count", "stillwave_catalog_seconds_sum")
      for name in [count, sum] {
        let start = "\n\(name){operation=\"\(operation)\"} "
        let value = metrics.firstRange(of: start).flatMap {
          Double(metrics[$0.upperBound...].prefix { $0 != "\n" })
        }
        #expect(value ?? 0 > 0, "\(start)")
      }
    }
  }

  @Test("a node waits for a database that isn't there, and serves when it is, or stops when it is told to")
  func awayAtStart() throws {
    let server = try #require(PostgresServer.TestServer.shared)
    let database = try server.newDatabase() + "later"
    let nodes = try ["told", "served"].map { name in
      try Command(
        Program.path(),
        [
          "serve", "--listen", "127.0.0.1:0", "--data", cluster.folder.file(name), "--catalog",
          server.url(database: database), "--media", "file://" + cluster.folder.file("later"), "--node", name,
        ])
    }
    for node in nodes {
      #expect(
        try eventually {
          String(decoding: try contents(node.folder.file("errors")), as: UTF8.self).contains("the start waits for it")
        })
    }
    nodes[0].signal(SIGTERM)
    #expect(try nodes[0].finish().status == 0)
    try server.run("CREATE DATABASE \(database)")
    #expect(try eventually { try nodes[1].output().contains("Stillwave listens") })
    nodes[1].signal(SIGTERM)
    #expect(try nodes[1].finish().status == 0)
  }
}
