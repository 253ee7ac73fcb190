import Foundation
import HTTP
import Storage
import Testing
import Webhooks

@testable import AudioService
@testable import Jobs

/// Work that outlives the request: jobs, conversions, and open uploads.
@Suite struct CrowdJobsTests: CrowdFixture {
  // MARK: Jobs and conversions

  private static let heldJobs = "[ $command = probe ] || read -r line < $folder/hold; finish"

  @Test func uploadsThatEndTogetherRespectTheirClientsLimit() async throws {
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

  @Test func anUploadInPiecesIsKeptIfTheQueueIsFull() async throws {
    let bench = try bench(Self.heldJobs) { $0.maximumQueuedJobsPerClient = 1 }
    let uploads = [try await bench.tus.create(4), try await bench.tus.create(4)]
    #expect(try await bench.tus.patch(uploads[0], at: 0, "RIFF").status == 204)
    let refused = try await bench.tus.patch(uploads[1], at: 0, "RIFF")
    #expect(refused.status == 429 && refused.says("limit_queued_jobs") && refused.fields["Retry-After"] != nil)
    #expect(try bench.catalog.recordings(limit: 9).count == 1)
    try bench.releaseAll()
    await bench.allEnd()
    let taken = try await bench.tus.patch(uploads[1], at: 4, "")
    #expect(taken.status == 204 && taken.fields["Stillwave-Recording"] != nil)
    #expect(try bench.catalog.recordings(limit: 9).count == 2)
    await bench.runner.stop()
  }

  private func denoise(_ bench: TestBench, _ source: Recording, from peer: String) async throws -> HTTPResponse {
    try await bench.respond(.post, "/v1/recordings/\(source.id)/denoise", from: peer)
  }

  @Test func anotherClientsJobIsNextAndTheCrowdIsRejected() async throws {
    let bench = try bench(#"[ -e $folder/go ] || read -r line < $folder/hold; finish"#) {
      $0.workerCount = 1
      $0.maximumQueuedJobsPerClient = 20
    }
    let source = try bench.recording()
    // All at once, because the limit applies to accepted requests, not to what each saw when it checked.
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
    // The crowd's first job was already running.
    #expect(bench.starts[1].hasPrefix(job.id.text))
    await bench.allEnd()
    // Its room is free again.
    #expect(try await denoise(bench, source, from: crowd).status == .accepted)
    await bench.runner.stop()
  }

  @Test func aRequestThatIsRefusedTakesNoRoom() async throws {
    let bench = try bench("read -r line < $folder/hold") { $0.maximumQueuedJobsPerClient = 1 }
    let source = try bench.recording()
    // The catalog refuses: the source has gone meanwhile.
    var room: TallyPlace? = try bench.runner.reserve(for: Client(key: "a"))
    withExtendedLifetime(room) {
      _ = #expect(throws: JobsError.clientQueueFull(limit: 1)) { try bench.runner.reserve(for: Client(key: "a")) }
    }
    room = nil
    _ = try bench.runner.reserve(for: Client(key: "a"))
    for _ in 0..<3 {
      let bad = try await bench.respond(
        .post, "/v1/recordings/\(source.id)/denoise", body: #"{"noise":{"start":70,"end":80}}"#, from: crowd)
      #expect(bad.status == .unprocessableContent)
    }
    #expect(try await denoise(bench, source, from: crowd).status == .accepted)
    await bench.runner.stop()
  }

  @Test func aSharedConversionDoesNotWaitForItsClientsOtherJobs() async throws {
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
      // One by one, so that the order is known.
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
    // The last of the crowd's jobs is the other client's first.
    #expect(order().count == 10 && order()[1] == asked.id.text)
    await bench.runner.stop()
  }

  @Test func clientsOfJobsSurviveARestart() async throws {
    let folder = try TemporaryFolder()
    let first = try TestBench(script: "exec sleep 1000", in: folder) { $0.workerCount = 1 }
    let source = try first.recording()
    for _ in 0..<5 { #expect(try await denoise(first, source, from: crowd).status == .accepted) }
    #expect(try await denoise(first, source, from: other).status == .accepted)
    let jobs = try first.catalog.unfinishedJobs()
    #expect(Set(jobs.map(\.client)).count == 2)
    let documents = try await first.respond(.get, "/v1/jobs").body.collect()
    #expect(!String(decoding: documents, as: UTF8.self).contains("client"))
    // A child that is starting would write its line after the file has been removed.
    try await first.eventually { first.starts.count == 1 }
    await first.runner.stop()

    try FileManager.default.removeItem(atPath: folder.path + "/starts")
    let second = try TestBench(in: folder) { $0.workerCount = 1 }
    try second.runner.resume()
    await second.allEnd()
    // Only one of the crowd's five precedes the other client's.
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

  @Test func onlyACrowdsEmptyUploadsAreRemovedForOthers() async throws {
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
    // One byte of the first upload has been received and reported, so it stays.
    #expect(try await bench.tus.patch(uploads[0], at: 0, "R").offset == 1)
    for number in 1...2 { #expect(try await create(bench, from: "198.51.100.\(number):1").status == .created) }
    // The second is in use.
    try await bench.context.uploads.using(try bench.tus.id(uploads[1])) { session in
      _ = try await session.status()
      #expect(try await create(bench, from: other).status == .created)
    }
    #expect(try await bench.tus.head(uploads[0]).offset == 1)
    #expect(try await bench.tus.head(uploads[1]).status == 200)
    #expect(try await bench.tus.head(uploads[2]).status == 404)
    #expect(try await bench.tus.head(uploads[3]).status == 200)
    #expect(try bench.catalog.unfinishedUploads().count == 6)
    // Once no client has more than the newcomer would have, no upload is removed.
    for number in 3...5 { _ = try await create(bench, from: "198.51.100.\(number):1") }
    let full = try await create(bench, from: "198.51.100.77:1")
    #expect(try await code(full) == "too_many_uploads")
    #expect(try await bench.tus.head(uploads[0]).offset == 1)
    await bench.runner.stop()
  }

  @Test func anEmptyUploadExpiresSooner() async throws {
    let bench = try bench {
      $0.uploadExpirySeconds = 100_000
      $0.emptyUploadExpirySeconds = 50_000
    }
    let (empty, begun) = (try await bench.tus.create(8), try await bench.tus.create(8))
    #expect(try await bench.tus.patch(begun, at: 0, "R").offset == 1)
    await bench.context.uploads.removeExpired(now: Timestamp(milliseconds: Timestamp.now.milliseconds + 75_000_000))
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
    // Others aren't believed.
    for address in ["203.0.113.3", "203.0.113.4"] {
      let answer = try await create(bench, from: "198.51.100.1:1", fields: ["X-Forwarded-For": address])
      #expect((answer.status == .created) == (address == "203.0.113.3"))
    }
  }
}
