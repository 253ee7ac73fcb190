import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService

/// One client's crowd of requests, and another's single one. What counts is the order, not the time: all that the crowd
/// has begun stands still until the test lets it go.
@Suite struct CrowdTests {
  private let crowd = "192.0.2.1:5000"
  private let other = "192.0.2.2:5000"

  /// The child of a file with “HOLD” in it stands still.
  private static let script = """
    ! grep -q HOLD "$source" || { echo >> $folder/held; read -r line < $folder/hold; }
    [ $command != spectrum ] || echo '{"spectrum":{"frequencies":[0],"power_db":[-81.2]}}'
    finish
    """

  private func bench(
    _ script: String = Self.script, _ change: @escaping (inout Configuration) -> Void = { _ in }
  ) throws -> TestBench {
    let bench = try TestBench(script: script) { configuration in
      configuration.workerCount = 2
      change(&configuration)
    }
    try bench.holdProbe()
    return bench
  }

  /// Sends so many requests at once; the task ends with their statuses.
  private func crowd(
    _ count: Int, _ send: @escaping @Sendable (Int) async throws -> HTTPResponse
  ) -> Task<[Int], any Error> {
    Task {
      try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 0..<count { group.addTask { try await send(number).status.code } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
    }
  }

  private func code(_ response: HTTPResponse) async throws -> String {
    let text = String(decoding: try await response.body.collect(), as: UTF8.self)
    return text.split(separator: "\"code\":\"").dropFirst().first.map { String($0.prefix { $0 != "\"" }) } ?? text
  }

  private func upload(_ bench: TestBench, _ text: String, isMedia: Bool, from peer: String) async throws -> HTTPResponse
  {
    let mark: [UInt8] = isMedia ? [0x1A, 0x45, 0xDF, 0xA3] : Array("RIFF".utf8)
    let request = try HTTPRequest(
      method: .post, target: "/v1/recordings", body: mark + Array(text.utf8), peer: peer)
    return try await bench.responder.respond(to: request).response
  }

  // MARK: Probes

  @Test func filesForFFmpegHoldUpNoOtherFileAndNoOtherClient() async throws {
    let bench = try bench()
    let held = crowd(20) { [crowd] _ in try await upload(bench, "HOLD", isMedia: true, from: crowd) }
    try await bench.eventually { bench.heldCount == 1 && bench.context.probes.media.waitingCount == 19 }
    // Sound has a lane of its own, also for the crowd's client; and ffmpeg's has a place for another's file.
    for (isMedia, peer) in [(false, crowd), (false, other), (true, other)] {
      #expect(try await upload(bench, "sound", isMedia: isMedia, from: peer).status == .created)
    }
    #expect(bench.heldCount == 1 && bench.context.probes.media.waitingCount == 19)
    // A second one's crowd leaves a place to a third client as well.
    let second = crowd(9) { _ in try await upload(bench, "HOLD", isMedia: true, from: "192.0.2.7:1") }
    try await bench.eventually { bench.heldCount == 2 && bench.context.probes.media.waitingCount == 27 }
    #expect(try await upload(bench, "sound", isMedia: true, from: other).status == .created)
    try bench.releaseAll()
    #expect(try await held.value == [Int](repeating: 201, count: 20))
    #expect(try await second.value == [Int](repeating: 201, count: 9))
    await bench.runner.stop()
  }

  @Test func waitingProbesHaveAnEnd() async throws {
    let bench = try bench {
      $0.maximumWaitingProbes = 5
      $0.maximumWaitingProbesPerClient = 3
    }
    let lane = bench.context.probes.sounds
    let held = crowd(4) { [crowd] _ in try await upload(bench, "HOLD", isMedia: false, from: crowd) }
    try await bench.eventually { bench.heldCount == 1 && lane.waitingCount == 3 }
    let refused = try await upload(bench, "HOLD", isMedia: false, from: crowd)
    #expect(refused.status == .tooManyRequests && refused.fields["Retry-After"] == "5")
    #expect(try await code(refused) == "limit_waiting_probes")
    // The places that the crowd doesn't get, then two that wait; the line is full.
    let others = crowd(4) { number in try await upload(bench, "HOLD", isMedia: false, from: "192.0.2.\(number + 10):1")
    }
    try await bench.eventually { bench.heldCount == 3 && lane.waitingCount == 5 }
    let full = try await upload(bench, "sound", isMedia: false, from: other)
    #expect(full.status == .serviceUnavailable && full.fields["Retry-After"] == "5")
    try bench.releaseAll()
    #expect(try await held.value + others.value == [Int](repeating: 201, count: 8))
    // Nothing stays of those that were refused.
    #expect(try bench.catalog.recordings(limit: 99).count == 8)
    #expect(try FileManager.default.contentsOfDirectory(atPath: bench.store.directory + "/incoming").isEmpty)
    await bench.runner.stop()
  }

  @Test func aClientThatGoesAwayGivesUpItsTurn() async throws {
    let bench = try bench()
    let lane = bench.context.probes.sounds
    let held = crowd(1) { [crowd] _ in try await upload(bench, "HOLD", isMedia: false, from: crowd) }
    try await bench.eventually { bench.heldCount == 1 }
    let gone = crowd(4) { [crowd] _ in try await upload(bench, "HOLD", isMedia: false, from: crowd) }
    try await bench.eventually { lane.waitingCount == 4 }
    gone.cancel()
    #expect(try await gone.value == [503, 503, 503, 503] && lane.waitingCount == 0)
    try bench.releaseAll()
    #expect(try await held.value == [201])
    #expect(try bench.catalog.recordings(limit: 9).count == 1)
    await bench.runner.stop()
  }

  @Test(
    "a file that takes too much processor time is refused in words; one that only waited is not",
    arguments: [
      ("kill -XCPU $$", 422, "probe_too_slow"), ("failure probe_too_slow false", 422, "probe_too_slow"),
      ("failure unsupported_media false", 415, "unsupported_media"),
    ])
  func slowFile(script: String, status: Int, code expected: String) async throws {
    let bench = try TestBench(script: script)
    let response = try await upload(bench, "sound", isMedia: true, from: crowd)
    #expect(response.status.code == status)
    #expect(try await code(response) == expected)
    #expect(try bench.catalog.recordings(limit: 9).isEmpty)
  }

  @Test func aProbeThatTheClockEndsIsNotTheFilesFault() async throws {
    let bench = try bench()
    let lane = bench.context.probes.sounds
    let client = Client(key: "a")
    let ending = try await lane.run(["probe", try bench.file("HOLD")], for: client, timeoutSeconds: 0.01)
    #expect(ending.tookTooLong && ending.exit == .signal(SIGKILL))
    // The time that a caller waits for its turn doesn't count.
    let quick = try await lane.run(["probe", try bench.file("sound")], for: client, timeoutSeconds: 60)
    #expect(!quick.tookTooLong && quick.report.probe != nil)
  }

  // MARK: Previews and spectra

  @Test func previewsOfACrowdHoldUpNoOtherClients() async throws {
    let bench = try bench()
    let (source, slow) = (try bench.recording(), try bench.recording(containing: "RIFFHOLD"))
    @Sendable func spectrum(_ recording: Recording, from peer: String) async throws -> HTTPResponse {
      try await bench.respond(.get, "/v1/recordings/\(recording.id)/spectrum?start=1&end=2", from: peer)
    }
    let held = crowd(9) { [crowd] _ in try await spectrum(slow, from: crowd) }
    try await bench.eventually { bench.heldCount == 1 && bench.context.previews.waitingCount == 8 }
    let refused = try await spectrum(slow, from: crowd)
    #expect(refused.status == .tooManyRequests && refused.fields["Retry-After"] != nil)
    #expect(try await code(refused) == "limit_waiting_previews")
    #expect(try await spectrum(source, from: other).status == .ok)
    #expect(bench.heldCount == 1 && bench.context.previews.waitingCount == 8)
    try bench.releaseAll()
    #expect(try await held.value == [Int](repeating: 200, count: 9))
  }

  @Test func aPreviewsChildEndsWhenItsClientGoesAway() async throws {
    let bench = try bench()
    let slow = try bench.recording(containing: "RIFFHOLD")
    let gone = crowd(1) { [crowd] _ in
      try await bench.respond(.get, "/v1/recordings/\(slow.id)/spectrum?start=1&end=2", from: crowd)
    }
    try await bench.eventually { bench.heldCount == 1 }
    gone.cancel()
    // Nobody lets the child go.
    #expect(try await gone.value == [503])
  }

  // MARK: Pictures

  @Test func picturesOfACrowdHoldUpNoOtherClients() async throws {
    let bench = try bench {
      $0.maximumWaitingPictures = 3
      $0.maximumWaitingPicturesPerClient = 2
    }
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    let target = "/v1/recordings/\(recording.id)/waveform"
    let (lane, gate) = (bench.context.drawings, DispatchSemaphore(value: 0))
    let client = Client(peer: crowd, forwarded: nil, trusting: [])
    let held = Task { try await lane.run(for: client) { gate.wait() } }
    let another = Task { try await lane.run(for: client, isUnderWay: true) { gate.wait() } }
    let gone = Task { try await lane.run(for: client, isUnderWay: true) { gate.wait() } }
    try await bench.eventually { lane.waitingCount == 2 }
    for picture in [".png?width=100", ".svg?width=100", "?start=1&end=1.1&scale=1"] {
      let refused = try await bench.respond(.get, target + picture, from: crowd)
      #expect(refused.status == .tooManyRequests && refused.fields["Retry-After"] == "5")
      #expect(try await code(refused) == "limit_waiting_pictures")
      guard picture.hasPrefix(".") else { continue }
      #expect(try await bench.respond(.get, target + picture, from: other).status == .ok)
    }
    // A slice of usual size waits for nothing.
    #expect(try await bench.respond(.get, target + "?width=100", from: crowd).status == .ok)
    // An answer that has begun goes on, however many wait.
    let more = Task { try await lane.run(for: client, isUnderWay: true) { gate.wait() } }
    try await bench.eventually { lane.waitingCount == 3 }
    gone.cancel()
    await #expect(throws: Problem.self) { try await gone.value }
    #expect(lane.waitingCount == 2)
    for _ in 0..<3 { gate.signal() }
    for task in [held, another, more] { try await task.value }
    #expect(try await bench.respond(.get, target + ".png?width=100", from: crowd).status == .ok)
  }

  // MARK: Jobs and conversions

  private static let heldJobs = "[ $command = probe ] || read -r line < $folder/hold; finish"

  @Test func uploadsThatEndTogetherKeepToTheirClientsRoom() async throws {
    let bench = try bench(Self.heldJobs) {
      $0.maximumQueuedJobs = 20
      $0.maximumQueuedJobsPerClient = 5
    }
    let statuses = try await crowd(30) { [crowd] _ in
      try await upload(bench, "sound", isMedia: false, from: crowd)
    }.value
    #expect(statuses.filter { $0 == 201 }.count == 5 && statuses.filter { $0 == 429 }.count == 25)
    let refused = try await upload(bench, "sound", isMedia: false, from: crowd)
    #expect(try await code(refused) == "limit_queued_jobs")
    #expect(try await upload(bench, "sound", isMedia: false, from: other).status == .created)
    #expect(try bench.catalog.recordings(limit: 99).count == 6)
    await bench.runner.stop()
  }

  @Test func anUploadInPiecesThatFindsNoRoomIsKept() async throws {
    let bench = try bench(Self.heldJobs) { $0.maximumQueuedJobsPerClient = 1 }
    let uploads = [try await bench.tus.create(4), try await bench.tus.create(4)]
    #expect(try await bench.tus.patch(uploads[0], at: 0, "RIFF").status == 204)
    let refused = try await bench.tus.patch(uploads[1], at: 0, "RIFF")
    #expect(refused.status == 429 && refused.says("limit_queued_jobs") && refused.fields["Retry-After"] != nil)
    #expect(try bench.catalog.recordings(limit: 9).count == 1)
    try bench.releaseAll()
    try await bench.eventually { bench.runner.live.count == 0 }
    let taken = try await bench.tus.patch(uploads[1], at: 4, "")
    #expect(taken.status == 204 && taken.fields["Stillwave-Recording"] != nil)
    #expect(try bench.catalog.recordings(limit: 9).count == 2)
    await bench.runner.stop()
  }

  private func denoise(_ bench: TestBench, _ source: Recording, from peer: String) async throws -> HTTPResponse {
    try await bench.respond(.post, "/v1/recordings/\(source.id)/denoise", from: peer)
  }

  @Test func anotherClientsJobIsNextAndTheCrowdIsTurnedAwayInTime() async throws {
    let bench = try bench(#"[ -e $folder/go ] || read -r line < $folder/hold; finish"#) {
      $0.workerCount = 1
      $0.maximumQueuedJobsPerClient = 20
    }
    let source = try bench.recording()
    // All at once: what is counted is what comes through, not what was there when each looked.
    let statuses = try await crowd(50) { [crowd] _ in try await denoise(bench, source, from: crowd) }.value
    #expect(statuses.filter { $0 == 202 }.count == 20 && statuses.filter { $0 == 429 }.count == 30)
    let refused = try await denoise(bench, source, from: crowd)
    #expect(try await code(refused) == "limit_queued_jobs")
    #expect(refused.fields["Retry-After"] != nil)
    try await bench.eventually { bench.starts.count == 1 }
    let answer = try await denoise(bench, source, from: other)
    #expect(answer.status == .accepted)
    let job = try #require(try bench.catalog.jobs(limit: 1).first)
    try bench.releaseAll()
    _ = try await bench.finished(job.id)
    // The crowd's first was running already.
    #expect(bench.starts[1].hasPrefix(job.id.text))
    try await bench.eventually { bench.runner.live.count == 0 }
    // Its room is given back.
    #expect(try await denoise(bench, source, from: crowd).status == .accepted)
    await bench.runner.stop()
  }

  @Test func aQueueThatAllHaveFilledKeepsItsCode() async throws {
    let bench = try bench("read -r line < $folder/hold") { $0.maximumQueuedJobs = 3 }
    let source = try bench.recording()
    for number in 1...3 {
      #expect(try await denoise(bench, source, from: "192.0.2.\(number):1").status == .accepted)
    }
    let refused = try await denoise(bench, source, from: other)
    #expect(refused.status == .tooManyRequests)
    #expect(try await code(refused) == "queue_full")
    #expect(try await upload(bench, "sound", isMedia: false, from: other).status == .tooManyRequests)
    await bench.runner.stop()
  }

  @Test func aRequestThatIsRefusedTakesNoRoom() async throws {
    let bench = try bench("read -r line < $folder/hold") { $0.maximumQueuedJobsPerClient = 1 }
    let source = try bench.recording()
    // The catalogue refuses: the source has gone meanwhile.
    let room = try bench.runner.reserve(for: Client(key: "a"))
    #expect(throws: ServiceError.self) { try bench.runner.reserve(for: Client(key: "a")) }
    _ = consume room
    _ = try bench.runner.reserve(for: Client(key: "a"))
    for _ in 0..<3 {
      let bad = try await bench.respond(
        .post, "/v1/recordings/\(source.id)/denoise", body: #"{"noise":{"start":70,"end":80}}"#, from: crowd)
      #expect(bad.status == .unprocessableContent)
    }
    #expect(try await denoise(bench, source, from: crowd).status == .accepted)
    await bench.runner.stop()
  }

  @Test func whoWaitsForAnothersConversionWaitsForNoneOfItsOthers() async throws {
    let bench = try bench(
      #"echo "${output%/*}" >> $folder/order; [ -e $folder/go ] || read -r line < $folder/hold; finish"#
    ) {
      $0.workerCount = 1
      $0.conversionWaitSeconds = 1000
    }
    let sources = try (0..<10).map { _ in try bench.recording() }
    @Sendable func convert(_ number: Int, from peer: String) async throws -> HTTPResponse {
      try await bench.respond(.get, "/v1/recordings/\(sources[number].id)/audio?format=flac", from: peer)
    }
    @Sendable func order() -> [String] {
      let text = try? String(contentsOfFile: bench.folder.path + "/order", encoding: .utf8)
      return (text ?? "").split(separator: "\n").map { String($0.split(separator: "/").last ?? "") }
    }
    let asked = try await withThrowingTaskGroup(of: Void.self) { group in
      // One after the other, so that the order is known.
      for number in sources.indices {
        group.addTask { [crowd] in _ = try await convert(number, from: crowd) }
        try await bench.eventually { try bench.catalog.jobs(limit: 99).count == number + 1 }
      }
      try await bench.eventually { order().count == 1 }
      let last = try #require(try bench.catalog.jobs(limit: 1).first)
      group.addTask { [other] in _ = try await convert(9, from: other) }
      try await bench.eventually { bench.runner.live.waiterCount(of: last.id) == 2 }
      try bench.releaseAll()
      try await group.waitForAll()
      return last
    }
    // The last of the crowd's jobs is the other's first.
    #expect(order().count == 10 && order()[1] == asked.id.text)
    await bench.runner.stop()
  }

  @Test func aRestartKnowsWhoseJobsTheyAre() async throws {
    let folder = try TemporaryFolder()
    let first = try TestBench(script: "exec sleep 1000", in: folder) { $0.workerCount = 1 }
    let source = try first.recording()
    for _ in 0..<5 { #expect(try await denoise(first, source, from: crowd).status == .accepted) }
    #expect(try await denoise(first, source, from: other).status == .accepted)
    let jobs = try first.catalog.unfinishedJobs()
    #expect(Set(jobs.map(\.client)).count == 2)
    let documents = try await first.respond(.get, "/v1/jobs").body.collect()
    #expect(!String(decoding: documents, as: UTF8.self).contains("client"))
    await first.runner.stop()

    try FileManager.default.removeItem(atPath: folder.path + "/starts")
    let second = try TestBench(in: folder) { $0.workerCount = 1 }
    try second.runner.resume()
    try await second.eventually { second.runner.live.count == 0 }
    // Of the crowd's five one goes before the other client's.
    #expect(second.order(of: jobs[5].id) == 1)
    await second.runner.stop()
  }

  // MARK: Open uploads

  private func create(_ bench: TestBench, from peer: String, fields: HTTPFields = [:]) async throws -> HTTPResponse {
    var fields = fields
    fields["Tus-Resumable"] = "1.0.0"
    fields["Upload-Length"] = "8"
    return try await bench.respond(.post, "/v1/uploads", fields: fields, from: peer)
  }

  @Test func emptyUploadsOfACrowdGiveWayAndOthersDoNot() async throws {
    let bench = try bench {
      $0.maximumOpenUploads = 6
      $0.maximumOpenUploadsPerClient = 4
    }
    var uploads: [String] = []
    for _ in 0..<4 {
      uploads.append(try #require(try await create(bench, from: crowd).fields["Location"]))
    }
    let refused = try await create(bench, from: crowd)
    #expect(refused.status == .tooManyRequests && refused.fields["Retry-After"] != nil)
    #expect(try await code(refused) == "limit_open_uploads")
    // One byte of the first has come: that was told, and stays.
    #expect(try await bench.tus.patch(uploads[0], at: 0, "R").offset == 1)
    for number in 1...2 { #expect(try await create(bench, from: "198.51.100.\(number):1").status == .created) }
    // Somebody is at the second.
    try await bench.context.uploads.using(try bench.tus.id(uploads[1])) { session in
      _ = try await session.status()
      #expect(try await create(bench, from: other).status == .created)
    }
    #expect(try await bench.tus.head(uploads[0]).offset == 1)
    #expect(try await bench.tus.head(uploads[1]).status == 200)
    #expect(try await bench.tus.head(uploads[2]).status == 404)
    #expect(try await bench.tus.head(uploads[3]).status == 200)
    #expect(try bench.catalog.unfinishedUploads().count == 6)
    // Once nobody has more than the newcomer would, nothing gives way.
    for number in 3...5 { _ = try await create(bench, from: "198.51.100.\(number):1") }
    let full = try await create(bench, from: "198.51.100.77:1")
    #expect(try await code(full) == "too_many_uploads")
    #expect(try await bench.tus.head(uploads[0]).offset == 1)
    await bench.runner.stop()
  }

  @Test func anEmptyUploadIsGivenUpSooner() async throws {
    let bench = try bench {
      $0.uploadExpirySeconds = 100_000
      $0.emptyUploadExpirySeconds = 100
    }
    let (empty, begun) = (try await bench.tus.create(8), try await bench.tus.create(8))
    #expect(try await bench.tus.patch(begun, at: 0, "R").offset == 1)
    await bench.context.uploads.removeExpired(now: Timestamp(milliseconds: Timestamp.now.milliseconds + 200_000))
    #expect(try await bench.tus.head(empty).status == 404)
    #expect(try await bench.tus.head(begun).offset == 1)
  }

  @Test func aTrustedProxysClientsAreToldApart() async throws {
    let bench = try bench {
      $0.maximumOpenUploadsPerClient = 1
      $0.trustedProxies = [Network("192.0.2.0/24")!]
    }
    #expect(try await create(bench, from: crowd, fields: ["X-Forwarded-For": "203.0.113.1"]).status == .created)
    #expect(try await create(bench, from: other, fields: ["X-Forwarded-For": "203.0.113.1"]).status == .tooManyRequests)
    #expect(try await create(bench, from: crowd, fields: ["X-Forwarded-For": "203.0.113.2"]).status == .created)
    // Nobody else is believed.
    for address in ["203.0.113.3", "203.0.113.4"] {
      let answer = try await create(bench, from: "198.51.100.1:1", fields: ["X-Forwarded-For": address])
      #expect((answer.status == .created) == (address == "203.0.113.3"))
    }
  }
}

extension TestBench {
  /// Children that stand still, or have.
  fileprivate var heldCount: Int {
    ((try? String(contentsOfFile: folder.path + "/held", encoding: .utf8)) ?? "").count
  }

  /// Lets go all children that stand still, and those to come.
  fileprivate func releaseAll() throws {
    let path = folder.path + "/hold"
    try Data().write(to: URL(fileURLWithPath: folder.path + "/go"))
    // Whoever opens it finds an end: this pipe's when it is closed, or the empty file's in its place.
    let pipe = unsafe open(path, O_RDWR)
    defer { close(pipe) }
    try Data().write(to: URL(fileURLWithPath: path + "-over"))
    guard unsafe rename(path + "-over", path) == 0 else { throw POSIXError(.EIO) }
  }

  /// Which of the children that were started was the job's, counted from 0.
  fileprivate func order(of id: JobID) -> Int? { starts.firstIndex { $0.hasPrefix(id.text) } }

  /// A file for a child to look at.
  fileprivate func file(_ text: String) throws -> String {
    let path = folder.path + "/file-\(text)"
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    return path
  }
}
