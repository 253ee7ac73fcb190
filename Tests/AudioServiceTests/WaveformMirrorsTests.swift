import Foundation
import HTTP
import PresentRows
import Processing
import S3Storage
import Synchronization
import Testing
import Waveform

@testable import AudioService
@testable import Jobs
@testable import Storage

/// A waveform that one node builds and another one shows. Both have the same catalog; the other one's table of jobs is
/// `elsewhere`.
@Suite struct WaveformMirrorsTests {
  private static let secret = "an example of thirty-two bytes.."
  private static let block = Int(PyramidMirror.blockFrames)
  private let bench: TestBench
  private let job = JobID()
  private let recording: Recording
  private let elsewhere = LiveJobs()

  init() throws {
    bench = try TestBench()
    recording = try bench.recording(state: .building, job: job)
    try bench.store.makeWorkFolder(of: job)
  }

  /// The node that builds the waveform, with its port for others.
  private final class Builder {
    let server: HTTPServer
    let address: String

    init(_ responder: any HTTPResponder) throws {
      var http = HTTPServerConfiguration()
      (http.port, http.loopCount) = (0, 1)
      server = HTTPServer(http, responder: responder)
      address = "\(try server.start())"
    }
  }

  /// A pyramid that an attempt writes.
  private struct Writing: ~Copyable {
    let token: AttemptToken
    var writer: PyramidWriter
    private var seed: Int16

    init(_ bench: TestBench, _ job: JobID, attempt: Int) throws {
      token = AttemptToken(job: job, attempt: attempt, nonce: "0123456789abcde\(attempt)")
      writer = try PyramidWriter(creating: bench.growingPath(of: token), sampleRate: 1000, channels: 2)
      seed = Int16(attempt)
    }

    mutating func append(frames: Int) throws {
      seed &+= 1
      let samples = (0..<frames * 2).map { [seed] in Int16(truncatingIfNeeded: $0 &* 7919) ^ seed }
      try writer.append(samples.span)
      try writer.publish()
    }
  }

  private func secret(_ text: String = secret) throws -> NodeSecret {
    try #require(NodeSecret(Array(text.utf8)))
  }

  private func builder() throws -> Builder {
    try Builder(GrowingFiles(secret: try secret(), context: bench.context))
  }

  private func mirrors(
    _ text: String = secret, checkRoom: @escaping @Sendable () throws -> Void = {}
  ) throws -> WaveformMirrors {
    let bench = bench
    return WaveformMirrors(
      secret: try secret(text),
      // On a busy machine, a test may take more than a minute.
      .init(
        live: elsewhere, log: ServiceLog(bench.logged.logger), time: { bench.catalog.time }, complaintSeconds: .infinity
      ) {
        try checkRoom()
        return bench.store.temporaryPath()
      })
  }

  /// The other node's waveforms.
  private func table(_ mirrors: WaveformMirrors) -> WaveformTable {
    WaveformTable(
      catalog: bench.catalog, blobs: bench.store, growingWaveforms: bench.store, live: elsewhere,
      work: StoreQueue(on: WorkQueue(label: "table")), localWork: WorkQueue(label: "disk"),
      repairs: WaveformRepairs(
        catalog: bench.catalog, blobs: bench.store, runner: bench.runner, log: ServiceLog(bench.logged.logger)),
      readers: bench.context.readers, mirrors: mirrors)
  }

  /// Reports to both nodes how far an attempt has come.
  private func report(_ writing: borrowing Writing, from address: String, total: Int64? = nil) {
    for (live, address) in [(bench.runner.live, nil), (elsewhere, address)] {
      var known = LiveJob(
        isRunning: true, attempts: writing.token.attempt, tenant: .none, recording: recording.id,
        writer: writing.token, address: address)
      known.progress = WorkerProgress(
        fraction: 0.5, readyFrames: writing.writer.readyFrames, totalFrames: total, estimatedFrames: nil)
      live.insert(job, known)
    }
  }

  private func slice(_ waveform: OpenWaveform, of frames: Int64, scale: Int) throws -> WaveformSlice {
    let extent = WaveformExtent(
      sampleRate: 1000, channels: 2, availableFrames: frames, totalFrames: nil, estimatedFrames: 1 << 30,
      isComplete: false)
    let query = WaveformQuery(
      resolution: .scale(scale), channels: .split, measures: [.peak, .rms, .average])
    return try waveform.slice(try WaveformWindow(query, of: extent))
  }

  /// Waits until the other node shows this many frames, and expects that they are the ones that the first one shows.
  private func expectShown(_ frames: Int64, in table: WaveformTable) async throws {
    var shown: OpenWaveform?
    // Each look may be the one that begins a fetch.
    try await bench.eventually {
      let waveform = try await table.open(recording.id)
      #expect(waveform.extent.availableFrames <= frames)
      if waveform.extent.availableFrames == frames { shown = waveform }
      return shown != nil
    }
    let other = try #require(shown)
    let own = try await bench.context.waveforms.open(recording.id)
    #expect(!other.extent.isComplete && own.extent.availableFrames >= frames)
    for scale in [256, 1000, 65_536] {
      let (left, right) = (try slice(other, of: frames, scale: scale), try slice(own, of: frames, scale: scale))
      #expect(left.length == Int(frames) / scale)
      #expect(left.data == right.data && left.rms == right.rms && left.average == right.average)
    }
  }

  @Test func theWaveformOfAnotherNodeGrowsToItsEndAndIsThenForgotten() async throws {
    let (builder, mirrors) = (try builder(), try mirrors())
    let table = table(mirrors)
    var writing = try Writing(bench, job, attempt: 1)
    try writing.append(frames: 3 * Self.block + 300)
    report(writing, from: builder.address)
    #expect(builder.server.statistics.requests == 0, "nobody has looked")
    #expect(try await table.open(recording.id).extent.availableFrames == 0)
    try await expectShown(Int64(3 * Self.block), in: table)
    try writing.append(frames: 20 * Self.block)
    report(writing, from: builder.address)
    try await expectShown(Int64(23 * Self.block), in: table)
    let requests = builder.server.statistics.requests
    #expect(requests == 5, "the header twice, three blocks with the upper one, then both apart")
    #expect(mirrors.bytes.value == 2 * 48 + (4 + 1 + 20) * 3 * 4096)
    try writing.append(frames: 100)
    try writing.writer.finish()
    report(writing, from: builder.address, total: writing.writer.readyFrames)
    try await expectShown(Int64(23 * Self.block + 400), in: table)
    #expect(mirrors.count == 1 && mirrors.failures.value == 0 && bench.logged.failures == [])
    #expect(try FileManager.default.contentsOfDirectory(atPath: bench.store.incoming) == [])
    mirrors.drop(job)
    #expect(mirrors.count == 0)
  }

  @Test func anotherAttemptStartsOver() async throws {
    let (builder, mirrors) = (try builder(), try mirrors())
    let table = table(mirrors)
    var first = try Writing(bench, job, attempt: 1)
    try first.append(frames: 2 * Self.block)
    report(first, from: builder.address)
    try await expectShown(Int64(2 * Self.block), in: table)
    let before = try #require(elsewhere[job])
    var second = try Writing(bench, job, attempt: 2)
    report(second, from: builder.address)
    #expect(try await table.open(recording.id).extent.availableFrames == 0)
    #expect(mirrors.mirror(of: before) == nil, "a request that has seen the first attempt")
    try second.append(frames: 3 * Self.block)
    report(second, from: builder.address)
    try await expectShown(Int64(3 * Self.block), in: table)
    #expect(mirrors.count == 1)
  }

  /// The number of open files without a name that are copies.
  private func openCopies() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
      let target = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)) ?? ""
      return target.hasPrefix(bench.store.incoming + "/") && target.hasSuffix(" (deleted)")
    }
  }

  @Test func theCopyOfADeadAttemptGoesOnceTheNextIsKnownWithoutAnotherLook() async throws {
    let (builder, mirrors) = (try builder(), try mirrors())
    elsewhere.whenChanged { mirrors.jobChanged($0.id) }
    var first = try Writing(bench, job, attempt: 1)
    try first.append(frames: 2 * Self.block)
    report(first, from: builder.address)
    try await expectShown(Int64(2 * Self.block), in: table(mirrors))
    elsewhere.update(job) { $0.progress?.fraction = 0.9 }
    #expect(try mirrors.count == 1 && openCopies() == 2)
    // An attempt of a node without --cluster-listen, which names no address.
    let second = AttemptToken(job: job, attempt: 2, nonce: "0123456789abcdef")
    elsewhere.update(job) { ($0.writer, $0.address, $0.attempts, $0.startedAt) = (second, nil, 2, .now) }
    #expect(mirrors.count == 0)
    try await bench.eventually { try openCopies() == 0 }
  }

  @Test func theCopyOfALostNodeStaysForThoseWhoLookAndThenGoes() async throws {
    let (builder, mirrors) = (try builder(), try mirrors())
    elsewhere.whenChanged { mirrors.jobChanged($0.id) }
    let table = table(mirrors)
    var writing = try Writing(bench, job, attempt: 1)
    try writing.append(frames: 2 * Self.block)
    report(writing, from: builder.address)
    try await expectShown(Int64(2 * Self.block), in: table)
    try writing.append(frames: 20 * Self.block)
    let (requests, ready) = (builder.server.statistics.requests, writing.writer.readyFrames)
    elsewhere.update(job) {
      $0.isRunning = false
      $0.progress?.readyFrames = ready
    }
    let shown = try await table.open(recording.id).extent.availableFrames
    // On a busy machine, more time may have passed since the last look than a copy stays.
    #expect(shown == Int64(2 * Self.block) || mirrors.count == 0)
    try await bench.eventually { mirrors.count == 0 }
    #expect(builder.server.statistics.requests == requests, "a node that is lost is not asked")
    try await bench.eventually { try openCopies() == 0 }
  }

  @Test func aCopyStopsGrowingInTheMiddleOfAFetchIfTheDiskBecomesFull() async throws {
    let checks = Mutex(0)
    let mirrors = try mirrors {
      let count = checks.withLock { count in
        count += 1
        return count
      }
      if count > 1 { throw StorageError.diskFull }
    }
    let builder = try builder()
    var writing = try Writing(bench, job, attempt: 1)
    // A step has 170 blocks of two channels and their mix.
    let silence = [Int16](repeating: 0, count: 2 * Self.block)
    for _ in 0..<200 { try writing.writer.append(silence.span) }
    try writing.writer.publish()
    report(writing, from: builder.address)
    try await expectShown(Int64(170 * Self.block), in: table(mirrors))
    try await bench.eventually { bench.logged.failures.count == 1 }
    #expect(try await table(mirrors).open(recording.id).extent.availableFrames == Int64(170 * Self.block))
  }

  @Test("a node that gives no file or a wrong one is noted, and only the progress is shown")
  func faults() async throws {
    struct Answering: HTTPResponder {
      let answer: @Sendable (HTTPRequest) -> HTTPResponse
      func respond(to request: HTTPRequest) -> HTTPAnswer { .now(answer(request)) }
    }
    let zeros = [UInt8](repeating: 0, count: 48)
    let answers: [HTTPResponse] = [
      HTTPResponse(.ok, body: .bytes(zeros)), HTTPResponse(.internalServerError), HTTPResponse(.forbidden),
      HTTPResponse(.found, fields: ["Location": "/elsewhere"]),
      HTTPResponse(.partialContent, fields: ["Content-Range": "bytes 1-48/100"], body: .bytes(zeros)),
      HTTPResponse(.partialContent, fields: ["Content-Range": "bytes 0-47/100"], body: .bytes(zeros + [0])),
      HTTPResponse(.partialContent, fields: ["Content-Range": "bytes 0-47/100"], body: .bytes(Array(zeros.dropLast()))),
      HTTPResponse(.partialContent, body: .bytes(zeros)),
      HTTPResponse(.partialContent, fields: ["Content-Range": "bytes 0-47/100"], body: .bytes(zeros)),
    ]
    var writing = try Writing(bench, job, attempt: 1)
    try writing.append(frames: Self.block)
    for (index, answer) in answers.enumerated() {
      let secret = try secret()
      let proven = Answering { request in
        guard let content = answer.body.bytesAtHand else { return answer }
        var proven = answer
        proven.fields[NodeSecret.answerField] = secret.proof(
          ofAnswer: content, range: answer.fields["Content-Range"] ?? "", to: request.target.path,
          request.fields["Authorization"] ?? "")
        return proven
      }
      let (builder, mirrors) = (try Builder(proven), try mirrors())
      report(writing, from: builder.address)
      let table = table(mirrors)
      let noted = bench.logged.failures.count
      #expect(try await table.open(recording.id).extent.availableFrames == 0)
      try await bench.eventually { mirrors.failures.value > 0 && bench.logged.failures.count > noted }
      #expect(try await table.open(recording.id).extent.availableFrames == 0, "answer \(index)")
      #expect(mirrors.successes.value == 0 && mirrors.count == 0)
      #expect(bench.logged.failures.count == noted + 1)
      await builder.server.stop(within: 1)
    }
  }

  @Test("an answer that somebody else has given or changed is noted, and only the progress is shown", arguments: 0..<3)
  func forgeries(kind: Int) async throws {
    /// Stands between two nodes.
    struct Between: HTTPResponder {
      let node: GrowingFiles
      let change: @Sendable (inout HTTPResponse) async throws -> Void
      func respond(to request: HTTPRequest) -> HTTPAnswer {
        .later {
          var response = try await node.respond(to: request).response
          try await change(&response)
          return response
        }
      }
    }
    let (mirrors, other) = (try mirrors(), try secret(Self.secret + "x"))
    let between = Between(node: GrowingFiles(secret: try secret(), context: bench.context)) { response in
      let content = try await response.body.collect()
      switch kind {
      case 0: response.fields[NodeSecret.answerField] = nil
      case 1: response.body = .bytes(content.dropLast() + [content.last.map { $0 ^ 1 } ?? 0])
      default:
        response.fields[NodeSecret.answerField] = other.proof(
          ofAnswer: content, range: response.fields["Content-Range"] ?? "", to: "", "")
      }
    }
    let builder = try Builder(between)
    var writing = try Writing(bench, job, attempt: 1)
    try writing.append(frames: Self.block)
    report(writing, from: builder.address)
    let table = table(mirrors)
    #expect(try await table.open(recording.id).extent.availableFrames == 0)
    try await bench.eventually { bench.logged.failures.count == 1 }
    #expect(try await table.open(recording.id).extent.availableFrames == 0)
    #expect(mirrors.bytes.value == 0 && mirrors.count == 0)
  }

  @Test("a node that can't be reached, has another secret, or names no address is noted", arguments: 0..<3)
  func strangers(kind: Int) async throws {
    let (builder, mirrors) = (try builder(), try mirrors(kind == 1 ? Self.secret + "x" : Self.secret))
    var writing = try Writing(bench, job, attempt: 1)
    try writing.append(frames: Self.block)
    if kind == 0 { await builder.server.stop(within: 1) }
    report(writing, from: kind == 2 ? "evil.example/path:1" : builder.address)
    let table = table(mirrors)
    #expect(try await table.open(recording.id).extent.availableFrames == 0)
    try await bench.eventually { bench.logged.failures.count == 1 }
    #expect(try await table.open(recording.id).extent.availableFrames == 0)
    #expect(mirrors.failures.value > 0 && mirrors.bytes.value == 0 && bench.logged.failures.count == 1)
  }

  // MARK: The port of other nodes

  @Test func thePortOfOtherNodesServesNothingButGrowingWaveformsToThoseWhoHaveTheSecret() async throws {
    var writing = try Writing(bench, job, attempt: 1)
    try writing.append(frames: Self.block)
    report(writing, from: "")
    let port = GrowingFiles(secret: try secret(), context: bench.context)
    let path = GrowingFiles.path(of: writing.token)
    func answer(
      _ target: String, _ method: HTTPMethod = .get, range: String? = "bytes=0-47", signs: Bool = true
    ) async throws -> HTTPResponse {
      var fields: HTTPFields = [:]
      fields["Range"] = range
      if signs {
        fields["Authorization"] = try secret().authorization(method, target, range: range, at: bench.catalog.time)
      }
      return try await port.respond(to: try HTTPRequest(method: method, target: target, fields: fields)).response
    }
    let file = try Data(contentsOf: URL(filePath: bench.growingPath(of: writing.token)))
    let start = try await answer(path)
    #expect(start.status == .partialContent && start.fields["Content-Range"] == "bytes 0-47/\(file.count)")
    #expect(try await start.body.collect() == Array(file.prefix(48)))
    #expect(try await answer(path, range: nil).body.collect() == Array(file))
    #expect(try await answer(path, range: "bytes=\(file.count)-").status.code == 416)
    for target in [path, "/", "/healthz", "/metrics", "/v1/recordings", "/internal"] {
      let refused = try await answer(target, signs: false)
      #expect(refused.status == .forbidden && refused.body.length == 0 && refused.fields.isEmpty)
    }
    let other = AttemptToken(job: job, attempt: 1, nonce: "0123456789abcdef")
    let unknown = AttemptToken(job: JobID(), attempt: 1, nonce: writing.token.nonce)
    for target in [
      "/", "/healthz", "/v1/recordings", GrowingFiles.path(of: other), GrowingFiles.path(of: unknown), path + "/",
      path.replacing("/pyramid", with: "/%70yramid"), "/internal/jobs/\(job)/../\(job)/pyramid",
    ] {
      let missing = try await answer(target)
      #expect(missing.status == .notFound && missing.body.length == 0, "\(target)")
    }
    for method in [HTTPMethod.head, .post, .delete] { #expect(try await answer(path, method).status == .notFound) }
    // An attempt of another node.
    report(writing, from: "10.0.0.1:1")
    bench.runner.live.update(job) { $0.address = "10.0.0.1:1" }
    #expect(try await answer(path).status == .notFound)
    #expect(try await bench.respond(.get, path).status == .notFound, "the public port")
  }
}
